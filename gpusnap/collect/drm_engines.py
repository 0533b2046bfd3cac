"""How busy a client kept its engines between two samples.

Source: drm-usage-stats.rst. `drm-engine-X` counts nanoseconds (it may step back: the larger value stands); xe
counts cycles beside a total. `drm-engine-capacity-X` says how many such engines there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.fields import ENGINES
from gpusnap.reading import Reading, computed, null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.drm_clients import Client
    from gpusnap.collect.drm_fdinfo import FdInfo

# The document's engines by the drivers' names. Intel's video engines decode and encode.
ENGINE_LEAVES = {
    "gfx": "graphics",
    "render": "graphics",
    "rcs": "graphics",
    "bin": "graphics",
    "fragment": "graphics",
    "vertex-tiler": "graphics",
    "panthor": "graphics",
    "gpu": "graphics",
    "compute": "compute",
    "ccs": "compute",
    "csd": "compute",
    "dma": "copy",
    "copy": "copy",
    "bcs": "copy",
    "tfu": "copy",
    "dec": "video_decode",
    "video": "video_decode",
    "vcs": "video_decode",
    "enc": "video_encode",
    "enc_1": "video_encode",
}
LOAD_LEAVES = ("gpu_percent", *(f"engines_percent.{engine}" for engine in ENGINES))
# amdgpu prints an engine only once it was used.
_AMDGPU_ENGINES = ("gfx", "compute", "dma", "dec", "enc")
# The two clock reads around a counter are not one: a busy engine may read as a little more than all of it.
_JITTER_PERCENT = 5.0
# Three centuries of nanoseconds: a counter of all ones, or one that went below 0.
_NO_COUNTER = 2**63
NO_SUCH_ENGINE = "null:not-exposed no such engine"
_NO_ENGINE = null("not-exposed", "no such engine in fdinfo")


class Sample:
    """One client's counters at one time."""

    __slots__ = ("cycles", "engines", "taken", "total_cycles")

    def __init__(self, info: FdInfo, taken: float, before: Sample | None) -> None:
        self.taken = taken
        self.engines: dict[str, int] = _larger(info.engines, before.engines if before is not None else {})
        self.cycles: dict[str, int] = _larger(info.cycles, before.cycles if before is not None else {})
        self.total_cycles = _larger(info.total_cycles, {})


def _larger(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: max(count, before.get(name, 0)) for name, count in now.items() if count < _NO_COUNTER}


class EngineRates:
    """Keeps every client's last counters; `update` gives each client its load since then."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Sample] = {}

    def update(self, clients: Iterable[Client], taken: dict[tuple[str, str], float], off: set[str]) -> None:
        """`taken`: when each client was read; `off`: devices whose engine counters are switched off."""
        samples: dict[tuple[str, str], Sample] = {}
        for client in clients:
            why = _no_counters(client, off)
            if why is not None or client.info is None:
                client.rates = dict.fromkeys(LOAD_LEAVES, client.memory.spill if why is None else why)
                continue
            key = (client.device, client.id)
            before = self._last.get(key)
            now = samples[key] = Sample(client.info, taken[key], before)
            client.rates = _leaves(_by_engine(client.info, before, now))
        self._last = samples


def _no_counters(client: Client, off: set[str]) -> Reading | None:
    if client.info is None:
        return client.memory.spill  # why it could not be read
    if not client.info.has_keys:
        return null("not-exposed", "no drm keys in fdinfo")
    if client.device in off:
        return null("not-exposed", "profiling is off")
    if client.info.old_format:  # an average since the client's start (amdgpu_fdinfo.c, 5.14): not its load
        return null("not-exposed", "fdinfo before 5.19 has no counters")
    return None


def _by_engine(info: FdInfo, before: Sample | None, now: Sample) -> dict[str, Reading]:
    names = list(dict.fromkeys([*info.engines, *info.cycles]))
    if info.driver == "amdgpu":
        names += [name for name in _AMDGPU_ENGINES if name not in names]
    return {name: _busy(name, info, before, now) for name in names}


def _busy(name: str, info: FdInfo, before: Sample | None, now: Sample) -> Reading:
    if before is None or now.taken <= before.taken:
        return null("needs-two-samples")
    capacity = max(1, info.capacities.get(name, 1))
    whole: float | None = (now.taken - before.taken) * 1e9
    if name in info.cycles and name in info.total_cycles:
        source, raw = f"fdinfo.drm-cycles-{name}", max(info.cycles[name], info.total_cycles[name])
        spent = _spent(name, before.cycles, now.cycles)
        whole = _spent(name, before.total_cycles, now.total_cycles)
    else:
        source, raw = f"fdinfo.drm-engine-{name}", info.engines.get(name, 0)
        spent = _spent(name, before.engines, now.engines, omits_idle=info.driver == "amdgpu")
    if raw >= _NO_COUNTER:
        return null("out-of-range", f"{source} says {raw}")
    if spent is None or whole is None:
        return null("needs-two-samples")
    if whole <= 0:
        return null("failed", f"{source}: its total did not move")
    return share(100 * spent / whole / capacity, source)


def _spent(name: str, before: dict[str, int], now: dict[str, int], *, omits_idle: bool = False) -> int | None:
    """None where a sample lacks the counter; a driver that `omits_idle` leaves it out as long as it is 0."""
    first, second = before.get(name), now.get(name)
    if omits_idle and first is None:
        return 0 if second is None else second
    return None if first is None or second is None else second - first


def share(percent: float, source: str) -> Reading:
    """A share of an engine's time; what is clearly more than all of it is no figure."""
    if percent > 100 + _JITTER_PERCENT:
        return null("out-of-range", f"{source}: {percent:.0f} %")
    return computed(round(min(percent, 100.0), 1), source)


def _leaves(by_engine: dict[str, Reading]) -> dict[str, Reading]:
    """Each leaf is the busiest of its engines."""
    found: dict[str, Reading] = {}
    for leaf in ENGINES:
        parts = [reading for name, reading in by_engine.items() if ENGINE_LEAVES.get(name) == leaf]
        found[f"engines_percent.{leaf}"] = busiest(parts) if parts else _NO_ENGINE
    return with_gpu(found)


def with_gpu(leaves: dict[str, Reading]) -> dict[str, Reading]:
    """The GPU is as busy as the busier of its graphics and compute engines."""
    main = [leaves[leaf] for leaf in ("engines_percent.graphics", "engines_percent.compute")]
    main = [reading for reading in main if not reading.provenance.startswith(NO_SUCH_ENGINE)]
    leaves["gpu_percent"] = busiest(main) if main else _NO_ENGINE
    return leaves


def busiest(readings: list[Reading]) -> Reading:
    """The largest of several; unknown when one is, since that one may be the largest."""
    largest = readings[0]
    for reading in readings:
        if not isinstance(reading.value, int | float):
            return reading
        if isinstance(largest.value, int | float) and reading.value > largest.value:
            largest = reading
    return largest


def together(readings: list[Reading]) -> Reading:
    """Several clients' load of one engine; unknown when one client's is, unless it has no such engine."""
    known = [reading for reading in readings if reading is not _NO_ENGINE]
    if not known:
        return readings[0]
    total = 0.0
    for reading in known:
        if not isinstance(reading.value, int | float):
            return reading
        total += reading.value
    return share(total, known[0].provenance.partition(":")[2])


def of_device(clients: list[Client]) -> dict[str, Reading]:
    """The device's load as the sum of its clients'; right only where every process could be read."""
    leaves = {
        leaf: together([client.rates[leaf] for client in clients]) for leaf in LOAD_LEAVES if leaf != "gpu_percent"
    }
    return {f"load.{leaf}": reading for leaf, reading in with_gpu(leaves).items()}
