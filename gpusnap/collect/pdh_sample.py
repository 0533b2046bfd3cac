"""One collection of Windows' GPU counters, sorted by adapter and process. Pure; `live_pdh.py` asks.

Raw form: {"counters": {PATH: [[instance, CStatus, value], ...] | {"error": status}}}. A value is a figure only
with CStatus 0 (valid) or 1 (new data).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap.collect.pdh_names import parse_instance
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpusnap.collect.pdh_names import Instance

ENGINE_PATH = "\\GPU Engine(*)\\Utilization Percentage"

# Statuses of pdhmsg.h.
ABSENT = frozenset({0xC0000BB8, 0xC0000BB9, 0x800007D1, 0x800007D5})
ACCESS_DENIED = 0xC0000BDB
# No rate yet: INVALID_DATA (twice), and the three by which a counter went backwards, as that of a reused pid does.
_NO_RATE = frozenset({0xC0000BBA, 0xC0000BC6, 0x800007D6, 0x800007D7, 0x800007D8})
_NAMES = {
    0xC0000BB8: "PDH_CSTATUS_NO_OBJECT",
    0xC0000BB9: "PDH_CSTATUS_NO_COUNTER",
    0xC0000BBA: "PDH_CSTATUS_INVALID_DATA",
    0xC0000BC6: "PDH_INVALID_DATA",
    0xC0000BDB: "PDH_ACCESS_DENIED",
    0x800007D1: "PDH_CSTATUS_NO_INSTANCE",
    0x800007D5: "PDH_NO_DATA",
    0x800007D8: "PDH_CALC_NEGATIVE_VALUE",
}
Usage = dict[str, Reading]


def status_name(status: int) -> str:
    return _NAMES.get(status, f"PDH 0x{status:08X}")


class Sample:
    """`processes`: (luid, pid) -> counter -> bytes; `adapters`: luid -> counter -> bytes; `engines`: luid ->
    engine -> pid -> percent, with the engine's type in `types`."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.errors: dict[str, int] = {}
        self.processes: dict[tuple[str, int], Usage] = {}
        self.adapters: dict[str, Usage] = {}
        self.engines: dict[str, dict[tuple[int, int], dict[int, Reading]]] = {}
        self.types: dict[tuple[str, tuple[int, int]], str] = {}
        for path, rows in raw.get("counters", {}).items():
            if isinstance(rows, dict):
                self.errors[path] = int(rows["error"])
            elif path == ENGINE_PATH:
                self._engines(rows)
            else:
                self._memory(path, rows)

    def luids(self) -> set[str]:
        return set(self.adapters) | set(self.engines) | {luid for luid, _ in self.processes}

    def pids(self) -> set[int]:
        return {pid for _, pid in self.processes} | {
            pid for engines in self.engines.values() for engine in engines.values() for pid in engine
        }

    def _memory(self, path: str, rows: list[list[Any]]) -> None:
        set_name, _, counter = path.strip("\\").partition("\\")
        source = f"pdh.{set_name.removesuffix('(*)')}.{counter}"
        for instance, reading in _readings(rows, source, as_rate=False):
            if instance.pid is None:
                usage = self.adapters.setdefault(instance.luid, {})
            else:
                usage = self.processes.setdefault((instance.luid, instance.pid), {})
            if instance.is_twin:  # two rows of one name: nobody says which is whose
                usage[counter] = null("ambiguous", "two rows of one name")
            else:
                usage[counter] = _sum(usage.get(counter), reading)

    def _engines(self, rows: list[list[Any]]) -> None:
        for instance, reading in _readings(rows, "pdh.GPU Engine.Utilization Percentage", as_rate=True):
            if instance.pid is None or instance.engine is None:
                continue
            by_pid = self.engines.setdefault(instance.luid, {}).setdefault(instance.engine, {})
            by_pid[instance.pid] = _sum(by_pid.get(instance.pid), reading)
            self.types[instance.luid, instance.engine] = instance.kind


def _readings(rows: list[list[Any]], source: str, *, as_rate: bool) -> Iterator[tuple[Instance, Reading]]:
    for name, status, value in rows:
        instance = parse_instance(name)
        if instance is not None:
            yield instance, _reading(status, value, source, as_rate=as_rate)


def _reading(status: int, value: float | None, source: str, *, as_rate: bool) -> Reading:
    if status not in (0, 1) or value is None:
        no_rate = as_rate and (status in (0, 1) or status in _NO_RATE)
        return null("needs-two-samples") if no_rate else null("failed", status_name(status))
    if value < 0:
        return null("out-of-range", f"{source} says {value}")
    return measured(value, source)


def _sum(known: Reading | None, more: Reading) -> Reading:
    """Parts of linked adapters (phys 0, 1, …) are one adapter's."""
    if known is None or known.value is None:
        return more if known is None else known
    if not isinstance(known.value, int | float) or not isinstance(more.value, int | float):
        return more
    return Reading(known.value + more.value, known.provenance)
