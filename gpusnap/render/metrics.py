"""The metrics of a snapshot: names, types, helps and samples, for both of Prometheus' text formats.

Gauges in base units with the unit in the name. A figure that was not measured has no sample (a 0 would be a lie,
and NaN breaks sums); `gpusnap_unmeasured` counts what is missing by field and reason instead. Series by process
are many and short-lived, so they are made only on request and never more than `PIDS`; the usual ones are by
program and user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.figures import value_at
from gpusnap.fields import ADAPTER_FIGURES, PROCESS_FIGURES
from gpusnap.reading import reason_of
from gpusnap.render.program import program_of
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpusnap.model import Adapter, Process, Snapshot

PIDS = 200

Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    """`name` without `_total`; `kind` is gauge, counter or info."""

    name: str
    kind: str
    says: str


class Sample(NamedTuple):
    family: str
    labels: Labels
    value: int | float


# leaf of an adapter -> family.
_ADAPTER: tuple[tuple[str, Family], ...] = (
    ("memory.total_bytes", Family("gpusnap_adapter_memory_total_bytes", "gauge", "Memory of the adapter.")),
    ("memory.used_bytes", Family("gpusnap_adapter_memory_used_bytes", "gauge", "Memory in use.")),
    ("memory.free_bytes", Family("gpusnap_adapter_memory_free_bytes", "gauge", "Memory that is free.")),
    (
        "memory.reserved_bytes",
        Family("gpusnap_adapter_memory_reserved_bytes", "gauge", "Memory the driver keeps."),
    ),
    (
        "memory.shared_used_bytes",
        Family(
            "gpusnap_adapter_shared_memory_used_bytes", "gauge", "System memory that the adapter uses (GTT, WDDM)."
        ),
    ),
    (
        "accounting.attributed_bytes",
        Family("gpusnap_adapter_memory_attributed_bytes", "gauge", "Memory that listed processes hold."),
    ),
    (
        "accounting.unattributed_bytes",
        Family("gpusnap_adapter_memory_unattributed_bytes", "gauge", "Used memory that no listed process holds."),
    ),
    (
        "accounting.unmeasured_processes",
        Family("gpusnap_adapter_unmeasured_processes", "gauge", "Listed processes without a memory figure."),
    ),
    ("load.gpu_percent", Family("gpusnap_adapter_load_percent", "gauge", "Time in which the adapter worked.")),
    (
        "load.memory_bandwidth_percent",
        Family(
            "gpusnap_adapter_memory_bandwidth_percent", "gauge", "Time in which its memory was read or written."
        ),
    ),
    (
        "temperature.gpu_celsius",
        Family("gpusnap_adapter_temperature_celsius", "gauge", "Temperature of the chip."),
    ),
    (
        "temperature.memory_celsius",
        Family("gpusnap_adapter_memory_temperature_celsius", "gauge", "Temperature of its memory."),
    ),
    ("power.draw_watts", Family("gpusnap_adapter_power_watts", "gauge", "Power draw.")),
    ("power.limit_watts", Family("gpusnap_adapter_power_limit_watts", "gauge", "Power limit in force.")),
    (
        "power.energy_joules",
        Family("gpusnap_adapter_energy_joules", "counter", "Energy used since the driver's start."),
    ),
)
_ECC = Family("gpusnap_adapter_ecc_errors", "counter", "Memory errors; volatile: since the driver's start.")
_INFO = Family("gpusnap_adapter", "info", "What the adapter is.")
_HEALTHY = Family("gpusnap_adapter_healthy", "gauge", "1 if its health is ok, 0 if degraded, lost or in error.")
_PROGRAM = Family("gpusnap_program_memory_used_bytes", "gauge", "Memory of an adapter by program and user.")
_PROCESSES = Family("gpusnap_program_processes", "gauge", "Processes of a program and user on an adapter.")
_PROCESS = Family("gpusnap_process_memory_used_bytes", "gauge", "Memory of one process on an adapter.")
_TRUNCATED = Family("gpusnap_processes_truncated", "gauge", "Processes left out of the series by process.")
_UNMEASURED = Family("gpusnap_unmeasured", "gauge", "Figures that were not measured, by field and reason.")
_BACKEND = Family("gpusnap_backend_up", "gauge", "1 if a backend works, 0 if it failed, was denied or timed out.")
_TAKEN = Family("gpusnap_snapshot_timestamp_seconds", "gauge", "When the snapshot was taken.")
_DURATION = Family("gpusnap_snapshot_duration_seconds", "gauge", "How long taking it took.")

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        _INFO,
        *(family for _, family in _ADAPTER),
        _ECC,
        _HEALTHY,
        _PROGRAM,
        _PROCESSES,
        _PROCESS,
        _TRUNCATED,
        _UNMEASURED,
        _BACKEND,
        _TAKEN,
        _DURATION,
    )
}


def samples_of(document: Snapshot, *, per_pid: bool = False, most: int = PIDS) -> Iterator[Sample]:
    """All samples of one snapshot, in no order of families."""
    for card in document["adapters"]:
        yield from _adapter(card)
    yield from _programs(document)
    if per_pid:
        yield from _pids(document, most)
    yield from _unmeasured(document)
    for row in document["backends"]:
        if row["status"] != "absent":
            yield Sample(_BACKEND.name, (("backend", row["name"]),), int(row["status"] == "ok"))
    yield Sample(_TAKEN.name, (), parse_rfc3339(document["taken_at"]))
    yield Sample(_DURATION.name, (), document["duration_seconds"])


def _adapter(card: Adapter) -> Iterator[Sample]:
    labels: Labels = (("adapter", card["id"]),)
    about = {
        "index": card["index"],
        "vendor": card["vendor"],
        "model": card["model"],
        "kind": card["kind"],
        "pci_address": card["pci_address"],
        "driver": card["driver"],
        "driver_version": card["driver_version"],
        "parent": card["parent"],
    }
    told = tuple((key, "" if value is None else str(value)) for key, value in about.items())
    yield Sample(_INFO.name, (*labels, *told), 1)
    for leaf, family in _ADAPTER:
        value = value_at(card, leaf)
        if isinstance(value, int | float):
            yield Sample(family.name, labels, value)
    for leaf in ("corrected_volatile", "uncorrected_volatile", "corrected_aggregate", "uncorrected_aggregate"):
        count = card["ecc"].get(leaf)
        if isinstance(count, int):
            kind, _, scope = leaf.partition("_")
            yield Sample(_ECC.name, (*labels, ("kind", kind), ("scope", scope)), count)
    if card["health"] != "unknown":
        yield Sample(_HEALTHY.name, labels, int(card["health"] == "ok"))


def _programs(document: Snapshot) -> Iterator[Sample]:
    """Sums of measured figures; a program none of whose processes was measured has no memory sample."""
    groups: dict[Labels, list[Process]] = {}
    for row in _rows(document):
        labels: Labels = (
            ("adapter", row["adapter"]),
            ("program", program_of(row) or ""),
            ("user", row["user"] or ""),
            ("category", row["category"]),
        )
        groups.setdefault(labels, []).append(row)
    for labels, rows in groups.items():
        yield Sample(_PROCESSES.name, labels, len(rows))
        known = [row["vram_bytes"] for row in rows if row["vram_bytes"] is not None]
        if known:
            yield Sample(_PROGRAM.name, labels, sum(known))


def _pids(document: Snapshot, most: int) -> Iterator[Sample]:
    rows = [row for row in _rows(document) if row["vram_bytes"] is not None]
    rows.sort(key=lambda row: -(row["vram_bytes"] if row["vram_bytes"] is not None else 0))
    for row in rows[:most]:
        start = "" if row["start_ticks"] is None else str(row["start_ticks"])
        labels = (
            ("adapter", row["adapter"]),
            ("pid", str(row["pid"])),
            ("start_ticks", start),
            ("program", program_of(row) or ""),
            ("user", row["user"] or ""),
        )
        if row["vram_bytes"] is not None:
            yield Sample(_PROCESS.name, labels, row["vram_bytes"])
    yield Sample(_TRUNCATED.name, (), max(0, len(rows) - most))


def _rows(document: Snapshot) -> list[Process]:
    return [row for row in document["processes"] or () if not row["self"]]


def _unmeasured(document: Snapshot) -> Iterator[Sample]:
    counts: dict[tuple[str, str], int] = {}
    table = document["provenance"]
    for name, rows, leaves in (
        ("adapter", document["adapters"], frozenset(ADAPTER_FIGURES)),
        ("process", document["processes"] or (), frozenset(PROCESS_FIGURES)),
    ):
        for row in rows:
            index = row["provenance"]
            entry: Mapping[str, str] = table[index] if 0 <= index < len(table) else {}
            for leaf, source in entry.items():
                reason = reason_of(source)
                if reason is not None and (leaf in leaves or leaf.startswith("accounting.")):
                    counts[(f"{name}.{leaf}", reason)] = counts.get((f"{name}.{leaf}", reason), 0) + 1
    for (field, reason), count in sorted(counts.items()):
        yield Sample(_UNMEASURED.name, (("field", field), ("reason", reason)), count)


def line(name: str, labels: Labels, value: int | float, timestamp: str = "") -> str:
    """`name{adapter="..."} 5 1796040000.000`; a label's value is escaped as both formats ask."""
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{'{' + inside + '}' if inside else ''} {_number(value)}{' ' + timestamp if timestamp else ''}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: int | float) -> str:
    return str(value) if isinstance(value, int) else repr(round(value, 6))
