"""What a series of memory figures says: leak, step-leak, grows-under-load, sawtooth, plateau, or not enough.

Judged are the minima, never the peaks: memory that comes back was not lost. A series with cycles is judged by
its troughs, one without by all its points. Whatever has slowed down is a warm-up, whatever grows only while
the card works is said to grow under load (vllm#8413), and a few samples prove nothing.
"""

from __future__ import annotations

import itertools
from math import isnan
from typing import TYPE_CHECKING

from gpusnap.explain import pace, shape
from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.load_split import LoadSplit
from gpusnap.explain.theil_sen import monotony
from gpusnap.explain.words import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.reservoir import Point

LEAK, STEP_LEAK, UNDER_LOAD = "leak", "step-leak", "grows-under-load"
PLATEAU, SAWTOOTH, CACHE, RESIDUAL = "plateau", "sawtooth", "cache", "residual"
UNKNOWN = "not enough to tell"
LEAKS = frozenset({LEAK, STEP_LEAK})
GROWTH = frozenset({LEAK, STEP_LEAK, UNDER_LOAD})


class Verdict:
    """The word and what it rests on. Bytes and seconds; `since` is the time of a sample.

    `from_first`: it was under way at the first sample already, so that it began then or before.
    """

    __slots__ = (
        "cycles",
        "from_first",
        "growth",
        "minima",
        "peaks",
        "rises",
        "since",
        "slope_per_hour",
        "why",
        "word",
    )

    def __init__(self, word: str, why: str, slope_per_hour: float | None = None) -> None:
        self.word = word
        self.why = why
        self.slope_per_hour = slope_per_hour
        self.growth: float | None = None
        self.since: float | None = None
        self.from_first = False
        self.minima: tuple[float, float] | None = None
        self.peaks: tuple[float, float] | None = None
        self.cycles = 0
        self.rises: list[float] = []


def judge(points: Sequence[Point], split: LoadSplit | None = None) -> Verdict:
    """`points` of one process, or of one card within one boot, in time order."""
    split = split or LoadSplit()
    samples = sum(point.samples for point in points)
    if samples < at.SAMPLES or points[-1].time <= points[0].time:
        return Verdict(
            UNKNOWN, f"{count_of(round(samples), 'sample')}; {at.SAMPLES} are needed", pace.slope_of(points)
        )
    lows = [point.low for point in points]
    spread = max(point.high for point in points) - min(lows)
    sigma = shape.noise(lows)
    if spread < max(at.GROWTH_BYTES, at.LEVEL_NOISE * sigma):
        return _finish(Verdict(PLATEAU, "level", pace.slope_of(points)), points)
    swing = max(at.SWING_BYTES, at.SWING_SHARE * spread, at.SWING_NOISE * sigma)
    found = shape.cycles(points, swing)
    if len(found.troughs) < at.CYCLES:
        # Minima that rose to near level peaks leave small late cycles: look again with a finer comb.
        finer = shape.cycles(points, max(at.SWING_BYTES, at.FINE_SWING_NOISE * sigma))
        found = finer if len(finer.troughs) > len(found.troughs) else found
    if len(found.troughs) >= at.CYCLES:
        return _finish(_judge_cycles(points, found, sigma), points)
    if found.peaks and _falls(points, found) >= 0.4 * spread:
        return _finish(_judge_humps(points, found), points)
    return _finish(_judge_rise(points, sigma, split), points)


def _judge_cycles(points: Sequence[Point], found: shape.Cycles, sigma: float) -> Verdict:
    troughs = [points[index] for index in found.troughs]
    lows = [point.low for point in troughs]
    slope = pace.slope_of(troughs)
    verdict = Verdict(SAWTOOTH, "its minima are level", slope)
    verdict.cycles = len(found.peaks)
    verdict.minima = lows[0], lows[-1]
    verdict.peaks = points[found.peaks[0]].high, points[found.peaks[-1]].high
    growth = pace.growth(troughs)
    if growth < max(at.GROWTH_BYTES, at.GROWTH_NOISE * sigma) or monotony(lows) < at.MONOTONY:
        return verdict
    if pace.late(troughs, slope) < at.LATE_PACE:
        verdict.why = "its minima rose at first and are level since"
        return verdict
    if pace.fallen(lows, sigma) > at.FALLEN_SHARE * growth:
        verdict.why = "its minima rise and fall"
        return verdict
    if _follows_load(troughs):
        verdict.word, verdict.why = UNDER_LOAD, "its minima follow the load"
        return verdict
    verdict.growth = growth
    verdict.rises = [after - before for before, after in itertools.pairwise(lows)]
    first = _first_rise(lows, sigma)
    verdict.since, verdict.from_first = troughs[first].time, first == 0
    if _grows_at_rest(points, found) >= 0.5 * growth:
        verdict.word, verdict.why = LEAK, "its minima rise, also between the cycles"
    elif sum(rise > 0.1 * max(verdict.rises) for rise in verdict.rises) < at.CYCLES_RISEN * len(verdict.rises):
        verdict.word, verdict.why = UNKNOWN, "its minima rose, but not with most of its cycles"
    else:
        verdict.word, verdict.why = STEP_LEAK, "each cycle leaves something behind"
    return verdict


def _judge_humps(points: Sequence[Point], found: shape.Cycles) -> Verdict:
    """One to three rises and falls: enough to see that memory came back, too few for a trend."""
    verdict = Verdict(
        UNKNOWN, f"{count_of(len(found.peaks), 'cycle')}; {at.CYCLES} are needed", pace.slope_of(points)
    )
    verdict.cycles = len(found.peaks)
    first, last = shape.head_and_tail([point.low for point in points])
    verdict.minima = min(point.low for point in points[: found.peaks[0] + 1]), last
    if last - first < at.GROWTH_BYTES:
        verdict.word, verdict.why = SAWTOOTH, "it came back to where it began"
    return verdict


def _judge_rise(points: Sequence[Point], sigma: float, split: LoadSplit) -> Verdict:
    lows = [point.low for point in points]
    slope = pace.slope_of(points)
    first, last = shape.head_and_tail(lows)
    growth = last - first
    smallest = max(at.GROWTH_BYTES, at.GROWTH_NOISE * sigma)
    if growth < smallest:
        return Verdict(PLATEAU, "no growth from its beginning to its end", slope)
    late = pace.late(points, slope)
    if late < at.SETTLED_PACE:
        return Verdict(PLATEAU, "it rose at first and is level since", slope)
    windows = _windows(points)
    if late < at.LATE_PACE or monotony([point.low for point in windows]) < at.MONOTONY:
        return Verdict(UNKNOWN, "it rose, but not steadily", slope)
    verdict = Verdict(LEAK, "it rises steadily and never comes back", slope)
    verdict.growth = growth
    verdict.minima = first, last
    if split.grows_only_loaded(sigma):
        verdict.word, verdict.why = UNDER_LOAD, "it rises only in samples with load"
        return verdict
    if _follows_load(windows):
        verdict.word, verdict.why = UNDER_LOAD, "it follows the load"
        return verdict
    # What rose before the first level, the median of a tenth, was reached is no part of the growth.
    beginning = max(3, len(lows) // 10) // 2
    steps = [step for step in shape.jumps(lows, max(16 * at.MIB, at.SWING_NOISE * sigma)) if step > beginning]
    sizes = [lows[index] - lows[index - 1] for index in steps]
    if sum(sizes) >= 0.8 * growth and len(steps) <= len(lows) // 4:
        if len(steps) < at.STEPS:
            return Verdict(UNKNOWN, f"it rose in {count_of(len(steps), 'step')}; {at.STEPS} are needed", slope)
        verdict.word, verdict.why, verdict.rises = STEP_LEAK, "it rises in steps and never comes back", sizes
        verdict.since = points[steps[0]].start
        # A step before it may have come no later before the first sample than steps come after each other.
        pauses = [points[after].start - points[before].start for before, after in itertools.pairwise(steps)]
        verdict.from_first = verdict.since - points[0].start <= max(pauses)
        return verdict
    if late < at.STEADY_PACE or pace.has_settled(points, slope, sigma):
        return Verdict(UNKNOWN, "it rose, but ever more slowly", slope)
    pivot = shape.hinge([(point.time, point.low) for point in windows])
    verdict.since, verdict.from_first = windows[pivot].time, pivot == 0
    # The rate of loss is that since it began, not that over the level hours before.
    verdict.slope_per_hour = pace.slope_of([point for point in points if point.time >= windows[pivot].time])
    return verdict


def _finish(verdict: Verdict, points: Sequence[Point]) -> Verdict:
    if verdict.minima is None:
        verdict.minima = shape.head_and_tail([point.low for point in points])
    if verdict.peaks is None:
        verdict.peaks = shape.head_and_tail([point.high for point in points])
    return verdict


def _windows(points: Sequence[Point], most: int = 48) -> list[Point]:
    """The lowest point of each of at most `most` stretches of equal length in samples."""
    width = max(1, -(-len(points) // most))
    return [
        min(points[start : start + width], key=lambda point: point.low) for start in range(0, len(points), width)
    ]


def _follows_load(points: Sequence[Point]) -> bool:
    """The load itself climbed together with the memory."""
    known = [point for point in points if not isnan(point.load)]
    if len(known) < max(at.CYCLES, len(points) * 4 // 5):
        return False
    loads = [point.load for point in known]
    first, last = shape.head_and_tail(loads)
    return last - first >= 10 and monotony(loads) >= at.MONOTONY


def _falls(points: Sequence[Point], found: shape.Cycles) -> float:
    return max(points[peak].high - min(point.low for point in points[peak:]) for peak in found.peaks)


def _first_rise(lows: Sequence[float], sigma: float) -> int:
    """The last trough that is still at the first level."""
    limit = lows[0] + max(at.MIB, at.GROWTH_NOISE * sigma)
    for index, low in enumerate(lows):
        if low > limit and all(later > limit for later in lows[index:]):
            return max(0, index - 1)
    return 0


def _grows_at_rest(points: Sequence[Point], found: shape.Cycles) -> float:
    """Growth inside the low stretches of the cycles: what was lost without a cycle's doing."""
    total = 0.0
    edges = [0, *found.peaks, len(points)]
    for start, end in itertools.pairwise(edges):
        stretch = points[start:end]
        floor = min(point.low for point in stretch)
        ceiling = max(point.high for point in stretch)
        rest = [point for point in stretch if point.high <= floor + 0.3 * (ceiling - floor)]
        if len(rest) >= 3:
            total += max(0.0, pace.growth(rest))
    return total
