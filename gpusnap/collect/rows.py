"""Facts -> the document's rows: every key present, every figure with its provenance entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gpusnap.fields import (
    ADAPTER_GROUPS,
    ADAPTER_TEXTS,
    ENGINES,
    PROCESS_FIGURES,
    PROCESS_IDENTITY,
    PROCESS_KEYS,
    PROCESS_TEXTS,
)
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.model import Adapter, Holder, Process, SharedClient

NOT_EXPOSED = null("not-exposed")
# The leaves of a process row, those of its engines first: they stand in a dictionary of their own.
_ENGINE_LEAVES = {f"engines_percent.{engine}": engine for engine in ENGINES}
_OTHER_LEAVES = tuple(
    leaf for leaf in (*PROCESS_FIGURES, *PROCESS_TEXTS, *PROCESS_IDENTITY) if leaf not in _ENGINE_LEAVES
)
_LEAVES = (*_ENGINE_LEAVES, *_OTHER_LEAVES)
# The keys in document order; every value is put in its place.
_PROCESS_ROW: dict[str, Any] = dict.fromkeys(PROCESS_KEYS)
_ALWAYS_SOURCED = frozenset({*PROCESS_FIGURES, "runtimes"})


class ProvenanceTable:
    """The document's top-level `provenance` list; rows with equal maps share an entry."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self._known: dict[tuple[str, ...], int] = {}
        self._known_processes: dict[tuple[str, ...], int] = {}
        self._same: dict[int, int] = {}

    def intern(self, leaves: dict[str, str]) -> int:
        key = (*leaves, *leaves.values())
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.entries)
            self.entries.append(leaves)
        return index

    def intern_process(self, provenances: tuple[str, ...]) -> int:
        """Of a process's leaves in their order: hundreds of rows have the same, so that few maps are made."""
        index = self._known_processes.get(provenances)
        if index is None:
            index = self._known_processes[provenances] = self.intern(_process_sources(provenances))
        return index

    def intern_same(self, leaves: dict[str, str]) -> int:
        """The same for a map that many rows share as one object, which somebody keeps for the whole sample."""
        index = self._same.get(id(leaves))
        if index is None:
            index = self._same[id(leaves)] = self.intern(leaves)
        return index


def _process_sources(provenances: Sequence[str]) -> dict[str, str]:
    """A figure always has its entry, a text while it is null."""
    sources = dict(zip(_LEAVES, provenances, strict=True))
    return {
        leaf: sources[leaf]
        for leaf in (*PROCESS_FIGURES, *PROCESS_TEXTS, *PROCESS_IDENTITY)
        if leaf in _ALWAYS_SOURCED or sources[leaf].startswith("null:")
    }


def process_row(
    adapter: str, pid: int, facts: Mapping[str, Reading], own: bool, table: ProvenanceTable
) -> Process:
    """`facts` maps leaves to readings; `model.layers`, `llm.*` carry provenance of what `model`, `llm` hold."""
    row = _PROCESS_ROW.copy()
    row["adapter"], row["pid"], row["self"] = adapter, pid, own
    row["pid_namespace"], row["category"] = facts["pid_namespace"].value, facts["category"].value
    get, sources = facts.get, []
    engines = row["engines_percent"] = {}
    for leaf, engine in _ENGINE_LEAVES.items():
        reading = get(leaf, NOT_EXPOSED)
        engines[engine] = reading.value
        sources.append(reading.provenance)
    for leaf in _OTHER_LEAVES:
        reading = get(leaf, NOT_EXPOSED)
        row[leaf] = reading.value
        sources.append(reading.provenance)
    if row["model"] is None and row["llm"] is None:
        row["provenance"] = table.intern_process(tuple(sources))
    else:
        inside = {k: r.provenance for k, r in facts.items() if k.startswith(("model.", "llm."))}
        row["provenance"] = table.intern(_process_sources(sources) | inside)
    return cast("Process", row)


class AdapterRow:
    """An adapter's row in the making: readings until the provenance map is complete."""

    __slots__ = ("facts", "sources", "values")

    def __init__(self, facts: AdapterFacts) -> None:
        self.facts = facts
        self.values: dict[str, object] = {}
        self.sources: dict[str, str] = {}

    def put(self, leaf: str, reading: Reading, *, always: bool = True) -> object:
        if always or reading.value is None:
            self.sources[leaf] = reading.provenance
        return reading.value

    def text(self, leaf: str, default: object = None) -> object:
        value = self.facts.identity.get(leaf, default)
        if isinstance(value, Reading):
            return self.put(leaf, value, always=False)
        if value is None and leaf in ADAPTER_TEXTS:
            absent = leaf in ("parent", "partition")
            self.sources[leaf] = "null:none" if absent else "null:not-exposed"
        return value


def adapter_row(
    facts: AdapterFacts,
    *,
    processes_listed: str | Reading,
    accounting: Mapping[str, Reading],
    by_category: Mapping[str, Reading],
    holders: list[Holder] | Reading,
    table: ProvenanceTable,
) -> Adapter:
    row = AdapterRow(facts)
    document: dict[str, object] = {"id": facts.identity["id"], "index": facts.identity.get("index")}
    for leaf in (
        "vendor",
        "model",
        "kind",
        "uuid",
        "pci_address",
        "driver",
        "driver_version",
        "parent",
        "partition",
    ):
        document[leaf] = row.text(leaf)
    for group, leaves in ADAPTER_GROUPS.items():
        document[group] = _group(row, group, leaves)
    document["health"] = facts.identity.get("health") or "unknown"
    document["power_state"] = facts.identity.get("power_state") or "unknown"
    listed = isinstance(processes_listed, str)
    document["processes_listed"] = processes_listed if listed else "unavailable"
    if isinstance(processes_listed, Reading):
        row.sources["processes_listed"] = processes_listed.provenance
    document["unreadable_pids"] = facts.unreadable_pids if listed else None
    document["holders"] = _list(row, "holders", holders)
    shared = facts.shared_clients if facts.shared_clients is not None else NOT_EXPOSED
    document["shared_clients"] = _list(row, "shared_clients", shared)
    document["accounting"] = {
        **{leaf: row.put(f"accounting.{leaf}", reading) for leaf, reading in accounting.items()},
        "by_category": {
            key: row.put(f"accounting.by_category.{key}", reading) for key, reading in by_category.items()
        },
    }
    document["provenance"] = table.intern(row.sources)
    return cast("Adapter", document)


def _group(row: AdapterRow, group: str, leaves: tuple[str, ...]) -> dict[str, object]:
    values: dict[str, object] = {}
    engines: dict[str, object] = {}
    get, sources = row.facts.figures.get, row.sources
    for leaf in leaves:
        path = f"{group}.{leaf}"
        reading = get(path, NOT_EXPOSED)
        if reading.value is None or path != "memory.kind":
            sources[path] = reading.provenance
        if leaf in _ENGINE_LEAVES:
            engines[_ENGINE_LEAVES[leaf]] = reading.value
            values["engines_percent"] = engines
        else:
            values[leaf] = reading.value
    return values


def _list(row: AdapterRow, leaf: str, value: list[Holder] | list[SharedClient] | Reading) -> object:
    return row.put(leaf, value) if isinstance(value, Reading) else value
