"""i915's performance counters: the load of the whole card, kernel contexts included.

Source: drivers/gpu/drm/i915/i915_pmu.c; events `rcs0-busy` ... count nanoseconds. Opening one needs CAP_PERFMON
(or perf_event_paranoid 0); without it the `drm` backend's sum over processes stands. xe's counters are left alone:
an open engine event holds a forcewake, so it would keep the card awake (event_gt_forcewake in xe_pmu.c).
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

_SOURCES = "bus/event_source/devices"
# `vecs0-busy` has no place in the document.
_CLASSES = {"rcs": "rcs", "bcs": "bcs", "vcs": "vcs", "ccs": "ccs"}


class Pmu:
    """The open counters of one card. `is_open` is False where they are not allowed or not there."""

    def __init__(self, host: Host, address: str, *, integrated: bool) -> None:
        name = "i915" if integrated else f"i915_{address.replace(':', '_')}"
        self._counters: list[tuple[str, PerfCounter]] = []
        self._last: list[tuple[int, int]] = []
        try:
            self._open(host, f"{_SOURCES}/{name}")
        except (OSError, Unsupported):
            self.close()
        self.is_open = bool(self._counters)

    def _open(self, host: Host, folder: str) -> None:
        kind = text(host.sys, f"{folder}/type", 64)
        if kind is None or not kind.isdigit():
            return
        cpu = text(host.sys, f"{folder}/cpumask", 64)
        for event in sorted(host.sys.listdir(f"{folder}/events")):
            engine = event.removesuffix("-busy").rstrip("0123456789")
            config = text(host.sys, f"{folder}/events/{event}", 64)
            if not event.endswith("-busy") or engine not in _CLASSES or config is None:
                continue
            try:
                number = int(config.removeprefix("config="), 16)
            except ValueError:
                continue
            cpu_number = int(cpu) if cpu is not None and cpu.isdigit() else 0
            self._counters.append((engine, host.perf_counter(int(kind), number, cpu_number)))

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
        leaves: dict[str, Reading] = {}
        for leaf in ENGINES:
            wanted = [i for i, (engine, _) in enumerate(self._counters) if ENGINE_LEAVES[engine] == leaf]
            leaves[f"engines_percent.{leaf}"] = _mean([self._busy(i, last, now) for i in wanted])
        return {f"load.{leaf}": reading for leaf, reading in with_gpu(leaves).items()}

    def _busy(self, index: int, last: list[tuple[int, int]], now: list[tuple[int, int]]) -> float | None:
        if index >= len(last):
            return None
        spent, enabled = now[index][0] - last[index][0], now[index][1] - last[index][1]
        return 100 * spent / enabled if enabled > 0 else None


def _mean(shares: list[float | None]) -> Reading:
    if not shares:
        return null("not-exposed", "no such engine in the i915 PMU")
    known = [value for value in shares if value is not None]
    if len(known) < len(shares):
        return null("needs-two-samples")
    return share(sum(known) / len(known), "i915.pmu")
