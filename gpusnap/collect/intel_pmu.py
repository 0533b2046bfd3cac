"""i915's performance counters: the load of the whole card, kernel contexts included.

Source: drivers/gpu/drm/i915/i915_pmu.c; events `rcs0-busy` ... count nanoseconds. Opening one needs CAP_PERFMON
(or perf_event_paranoid 0); without it the `drm` backend's sum over processes stands. An open counter keeps no card
awake, so it stays open between samples; xe's (`xe_pmu.py`) are another matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.drm_engines import ENGINE_LEAVES, share, with_gpu
from gpusnap.collect.sysfs import text
from gpusnap.fields import ENGINES
from gpusnap.host import Unsupported
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.host import Host, PerfCounter

SOURCES = "bus/event_source/devices"
# `vecs0-busy` has no place in the document.
_CLASSES = {"rcs": "rcs", "bcs": "bcs", "vcs": "vcs", "ccs": "ccs"}


class Pmu:
    """The open counters of one card. `is_open` is False where they are not allowed or not there."""

    def __init__(self, host: Host, address: str, *, integrated: bool) -> None:
        name = "i915" if integrated else f"i915_{address.replace(':', '_')}"
        self._counters: list[tuple[str, PerfCounter]] = []
        self._last: list[tuple[int, int]] = []
        try:
            self._open(host, f"{SOURCES}/{name}")
        except (OSError, Unsupported):
            self.close()
        self.is_open = bool(self._counters)

    def _open(self, host: Host, folder: str) -> None:
        kind = text(host.sys, f"{folder}/type", 64)
        if kind is None or not kind.isdigit():
            return
        cpu = cpu_of(host, folder)
        for event in sorted(host.sys.listdir(f"{folder}/events")):
            engine = event.removesuffix("-busy").rstrip("0123456789")
            config = text(host.sys, f"{folder}/events/{event}", 64)
            if not event.endswith("-busy") or engine not in _CLASSES or config is None:
                continue
            try:
                number = int(config.removeprefix("config="), 16)
            except ValueError:
                continue
            self._counters.append((engine, host.perf_counter(int(kind), number, cpu)))

    def close(self) -> None:
        for _, counter in self._counters:
            counter.close()
        self._counters = []

    def load(self) -> dict[str, Reading]:
        """load.* leaves since the last call; the mean of a class's engines."""
        try:
            now = [counter.read() for _, counter in self._counters]
        except OSError:  # the card is gone
            self.is_open = False
            return {}
        last, self._last = self._last, now
        shares = [(engine, self._busy(place, last, now)) for place, (engine, _) in enumerate(self._counters)]
        return load_leaves(shares, "i915")

    def _busy(self, index: int, last: list[tuple[int, int]], now: list[tuple[int, int]]) -> float | None:
        if index >= len(last):
            return None
        spent, enabled = now[index][0] - last[index][0], now[index][1] - last[index][1]
        return 100 * spent / enabled if enabled > 0 else None


def cpu_of(host: Host, folder: str) -> int:
    """The processor through which a system-wide PMU is asked."""
    cpu = text(host.sys, f"{folder}/cpumask", 64)
    return int(cpu) if cpu is not None and cpu.isdigit() else 0


def load_leaves(shares: list[tuple[str, float | None]], driver: str) -> dict[str, Reading]:
    """load.* leaves from each engine's share; an engine without one has no second sample yet."""
    leaves: dict[str, Reading] = {}
    for leaf in ENGINES:
        wanted = [percent for engine, percent in shares if ENGINE_LEAVES[engine] == leaf]
        leaves[f"engines_percent.{leaf}"] = _mean(wanted, driver)
    return {f"load.{leaf}": reading for leaf, reading in with_gpu(leaves).items()}


def _mean(shares: list[float | None], driver: str) -> Reading:
    if not shares:
        return null("not-exposed", f"no such engine in the {driver} PMU")
    known = [value for value in shares if value is not None]
    if len(known) < len(shares):
        return null("needs-two-samples")
    return share(sum(known) / len(known), f"{driver}.pmu")
