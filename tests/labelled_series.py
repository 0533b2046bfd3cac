# mypy: disable-error-code="misc"
"""Generated memory series with their truth: what is a leak and what only looks like one.

Each series is a list of (seconds, bytes or None, load in percent or None). The truth comes from how a series
was made, never from gpusnap. `LEAK` series lose memory for good; `LOAD` series grow because and only while the
card works; `FINE` series do neither.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1024**2
GIB = 1024**3
LEAK, LOAD, FINE = "leak", "load", "fine"

Sample = tuple[float, "int | None", "float | None"]


class Labelled(NamedTuple):
    name: str
    truth: str
    samples: list[Sample]


def _series(
    count: int,
    every: float,
    value: Callable[[float], float],
    load: Callable[[float], float | None] = lambda _: 0.0,
) -> list[Sample]:
    return [
        (step * every, max(0, round(value(step / (count - 1)))), load(step / (count - 1))) for step in range(count)
    ]


def _square(share: float, cycles: int) -> bool:
    """The loaded half of a cycle."""
    return (share * cycles) % 1 >= 0.5


def leaks(seed: int) -> Iterator[Labelled]:
    rng = random.Random(seed)
    for growth in (0.3 * GIB, 1 * GIB, 4 * GIB, 20 * GIB):
        for sigma in (0, 5 * MIB, 40 * MIB):
            samples = _series(
                300,
                60,
                lambda x, g=growth, s=sigma: 2 * GIB + g * x + rng.gauss(0, s),
                lambda _: rng.choice([0, 50]),
            )
            yield Labelled(f"linear {growth / GIB:.1f} GiB, noise {sigma // MIB} MiB", LEAK, samples)
    for cycles, height in ((6, 3 * GIB), (20, 10 * GIB), (40, GIB)):
        for per_cycle in (40 * MIB, 290 * MIB):
            top = 2 * GIB + cycles * per_cycle + height

            def level(x: float, c: int = cycles, p: float = per_cycle, t: float = top) -> float:
                rest = 2 * GIB + math.floor(x * c) * p
                return (t if _square(x, c) else rest) + rng.gauss(0, 2 * MIB)

            samples = _series(460, 63, level, lambda x, c=cycles: 90.0 if _square(x, c) else 0.0)
            yield Labelled(f"step {per_cycle // MIB} MiB in each of {cycles} cycles, level peaks", LEAK, samples)
    for steps in (8, 15, 30):
        moments = sorted(rng.uniform(0.02, 0.98) for _ in range(steps))
        samples = _series(240, 30, lambda x, m=moments: GIB + 120 * MIB * sum(x >= at for at in m))
        yield Labelled(f"{steps} idle steps that stay", LEAK, samples)
    for cycles in (8, 16):
        samples = _series(
            400, 20, lambda x, c=cycles: 2 * GIB + 3 * GIB * x + (x * c % 1) * 2 * GIB + rng.gauss(0, 4 * MIB)
        )
        yield Labelled(f"sawtooth of {cycles} teeth on a rising floor", LEAK, samples)
    samples = _series(300, 60, lambda x: 4 * GIB + max(0.0, x - 0.5) * 8 * GIB + rng.gauss(0, 3 * MIB))
    yield Labelled("begins in the middle", LEAK, samples)
    samples = _series(400, 60, lambda x: 4 * GIB + 3 * GIB * x + rng.gauss(0, 3 * MIB), lambda _: 95.0)
    yield Labelled("steady under constant load", LEAK, samples)
    samples = _series(500, 60, lambda x: 4 * GIB + 3 * GIB * x + rng.gauss(0, 3 * MIB))
    yield Labelled("with a gap of a fifth", LEAK, samples[:200] + samples[300:])
    holes = [(t, None if rng.random() < 0.3 else value, load) for t, value, load in samples]
    yield Labelled("with 30 % unknown samples", LEAK, holes)
    long = _series(6000, 10, lambda x: 4 * GIB + 2 * GIB * x + rng.gauss(0, 20 * MIB))
    yield Labelled("6,000 samples", LEAK, long)
    samples = _series(40, 600, lambda x: 3 * GIB + 2 * GIB * x + rng.gauss(0, 5 * MIB))
    yield Labelled("40 samples", LEAK, samples)


def loads(seed: int) -> Iterator[Labelled]:
    rng = random.Random(seed + 1)
    for bursts in (5, 12, 25):
        held = [2.0 * GIB]

        def only_under_load(x: float, b: int = bursts, h: list[float] = held) -> float:
            if _square(x, b):
                h[0] += rng.uniform(5, 25) * MIB
            return h[0]

        samples = _series(400, 30, only_under_load, lambda x, b=bursts: 80.0 if _square(x, b) else 0.0)
        yield Labelled(f"grows in {bursts} bursts only", LOAD, samples)
    for top in (60, 95):
        samples = _series(
            300,
            30,
            lambda x, t=top: 2 * GIB + 60 * MIB * (t * x) + rng.gauss(0, 5 * MIB),
            lambda x, t=top: max(1.0, t * x + rng.gauss(0, 2)),
        )
        yield Labelled(f"memory follows a load that climbs to {top} %", LOAD, samples)
    for waves in (3, 6, 10):
        samples = _series(
            360,
            60,
            lambda x, w=waves: 3 * GIB + 4 * GIB * (0.5 - 0.5 * math.cos(2 * math.pi * w * x)) + rng.gauss(0, MIB),
            lambda x, w=waves: 100 * (0.5 - 0.5 * math.cos(2 * math.pi * w * x)),
        )
        yield Labelled(f"{waves} waves of load", LOAD, samples)


def fine(seed: int) -> Iterator[Labelled]:
    rng = random.Random(seed + 2)
    for sigma in (0, MIB, 20 * MIB, 200 * MIB):
        samples = _series(300, 60, lambda _, s=sigma: 6 * GIB + rng.gauss(0, s), lambda _: rng.choice([0, 30]))
        yield Labelled(f"plateau, noise {sigma // MIB} MiB", FINE, samples)
    for tau in (0.03, 0.08, 0.15):
        samples = _series(
            300, 20, lambda x, c=tau: 8 * GIB * (1 - math.exp(-x / c)) + rng.gauss(0, 4 * MIB), lambda _: 70.0
        )
        yield Labelled(f"warm-up, time constant {tau}", FINE, samples)
    for teeth in (3, 5, 12, 40):
        samples = _series(400, 15, lambda x, c=teeth: 2 * GIB + (x * c % 1) * 5 * GIB + rng.gauss(0, 3 * MIB))
        yield Labelled(f"sawtooth of {teeth} teeth", FINE, samples)
    for cycles in (2, 6, 20, 80):
        samples = _series(
            400,
            15,
            lambda x, c=cycles: (12 * GIB if _square(x, c) else 1.4 * GIB) + rng.gauss(0, 2 * MIB),
            lambda x, c=cycles: 99.0 if _square(x, c) else 0.0,
        )
        yield Labelled(f"{cycles} jobs that come and go", FINE, samples)
    for models in (1, 2, 3):
        moments = [(number + 1) / (models + 2) for number in range(models)]
        samples = _series(200, 30, lambda x, m=moments: GIB + 4 * GIB * sum(x >= at for at in m))
        yield Labelled(f"{models} models loaded, then level", FINE, samples)
    samples = _series(200, 30, lambda x: (9 * GIB if x < 0.5 else 3 * GIB) + rng.gauss(0, MIB))
    yield Labelled("falls by half", FINE, samples)
    samples = _series(300, 30, lambda x: 9 * GIB - 4 * GIB * x + rng.gauss(0, MIB))
    yield Labelled("falls steadily", FINE, samples)
    walk = [5.0 * GIB]

    def wander(_: float) -> float:
        walk[0] += 0.1 * (5 * GIB - walk[0]) + rng.gauss(0, 60 * MIB)
        return walk[0]

    yield Labelled("wanders about a level", FINE, _series(500, 10, wander))
    samples = _series(6, 60, lambda x: 2 * GIB + 4 * GIB * x)
    yield Labelled("six rising samples", FINE, samples)
    samples = _series(400, 30, lambda x: 2 * GIB + (8 * GIB if 0.3 <= x < 0.6 else 0) + rng.gauss(0, MIB))
    yield Labelled("level with a gap inside a job", FINE, samples[:150] + samples[220:])
    holes = [(t, None if rng.random() < 0.5 else value, load) for t, value, load in samples]
    yield Labelled("half of the samples unknown", FINE, holes)
    samples = _series(200, 30, lambda x: 7 * GIB if x > 0.02 else 0.4 * GIB)
    yield Labelled("a cache that fills at once", FINE, samples)
    warm = _series(
        400,
        30,
        lambda x: 3 * GIB + min(x / 0.2, 1.0) * 2 * GIB + (4 * GIB if _square(x, 16) else 0) + rng.gauss(0, MIB),
        lambda x: 90.0 if _square(x, 16) else 0.0,
    )
    yield Labelled("cycles whose floor warms up and stays", FINE, warm)
    for period in (7, 33):
        samples = _series(
            900,
            10,
            lambda x, p=period: 4 * GIB + (2.5 * GIB if round(x * 899) % p == 0 else 0) + rng.gauss(0, MIB),
        )
        yield Labelled(f"a spike at every sample {period}", FINE, samples)
    for filled in (0.8, 0.9):
        samples = _series(
            300, 10, lambda x, f=filled: 0.4 * GIB + min(x / f, 1.0) * 14 * GIB + rng.gauss(0, MIB), lambda _: 60.0
        )
        yield Labelled(f"fills steadily for {filled:.0%} of the time, then level", FINE, samples)
    for scale in (0.4, 1.2):
        samples = _series(
            400,
            30,
            lambda x, s=scale: 2 * GIB + s * GIB * math.log1p(399 * x) + rng.gauss(0, 10 * MIB),
            lambda _: 50.0,
        )
        yield Labelled(f"a cache that fills ever more slowly, {scale} GiB", FINE, samples)


def labelled(seed: int = 20261130) -> list[Labelled]:
    return [*leaks(seed), *loads(seed), *fine(seed)]
