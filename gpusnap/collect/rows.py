"""Facts -> the document's rows: every key present, every figure with its provenance entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.fields import ADAPTER_GROUPS, ADAPTER_TEXTS, ENGINES, PROCESS_FIGURES, PROCESS_TEXTS
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.model import Adapter, Holder, Process, SharedClient

NOT_EXPOSED = null("not-exposed")
_PLAIN_PROCESS_TEXTS = tuple(leaf for leaf in PROCESS_TEXTS if leaf not in ("model", "llm"))


class ProvenanceTable:
    """The document's top-level `provenance` list; rows with equal maps share an entry."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self._known: dict[tuple[str, ...], int] = {}

    def intern(self, leaves: dict[str, str]) -> int:
        key = (*leaves, *leaves.values())
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.entries)
            self.entries.append(leaves)
        return index


def process_row(
    adapter: str, pid: int, facts: Mapping[str, Reading], own: bool, table: ProvenanceTable
) -> Process:
    """`facts` maps leaves to readings; `model.layers`, `llm.*` carry provenance of what `model`, `llm` hold."""
    sources: dict[str, str] = {}
    figures: dict[str, object] = {}
    for leaf in PROCESS_FIGURES:
        reading = facts.get(leaf, NOT_EXPOSED)
        figures[leaf] = reading.value
        sources[leaf] = reading.provenance
    texts: dict[str, object] = {}
    for leaf in _PLAIN_PROCESS_TEXTS:
        reading = facts.get(leaf, NOT_EXPOSED)
        texts[leaf] = reading.value
        if reading.value is None or leaf == "runtimes":
            sources[leaf] = reading.provenance
    for leaf in ("model", "llm"):
        reading = facts.get(leaf, NOT_EXPOSED)
        texts[leaf] = reading.value
        if reading.value is None:
            sources[leaf] = reading.provenance
        else:
            prefix = leaf + "."
            sources.update((k, r.provenance) for k, r in facts.items() if k.startswith(prefix))
    for leaf in ("start_ticks", "ppid", "uid"):
        texts[leaf] = None
        if leaf in facts:
            texts[leaf] = facts[leaf].value
            if texts[leaf] is None:
                sources[leaf] = facts[leaf].provenance
    return cast(
        "Process",
        {
            "adapter": adapter,
            "pid": pid,
            "pid_namespace": facts["pid_namespace"].value,
            "start_ticks": texts["start_ticks"],
            "started_at": texts["started_at"],
            "ppid": texts["ppid"],
            "name": texts["name"],
            "exe": texts["exe"],
            "cmdline": texts["cmdline"],
            "cwd": texts["cwd"],
            "uid": texts["uid"],
            "user": texts["user"],
            "state": texts["state"],
            "container_id": texts["container_id"],
            "pod_uid": texts["pod_uid"],
            "systemd_unit": texts["systemd_unit"],
            "slurm_job_id": texts["slurm_job_id"],
            "self": own,
            "type": texts["type"],
            "vram_bytes": figures["vram_bytes"],
            "spill_bytes": figures["spill_bytes"],
            "paged_bytes": figures["paged_bytes"],
            "vram_shared_bytes": figures["vram_shared_bytes"],
            "shared_with": texts["shared_with"],
            "gpu_percent": figures["gpu_percent"],
            "engines_percent": {engine: figures[f"engines_percent.{engine}"] for engine in ENGINES},
            "cpu_percent": figures["cpu_percent"],
            "rss_bytes": figures["rss_bytes"],
            "category": facts["category"].value,
            "role": texts["role"],
            "runtimes": texts["runtimes"],
            "model": texts["model"],
            "llm": texts["llm"],
            "provenance": table.intern(sources),
        },
    )


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
    for leaf in leaves:
        path = f"{group}.{leaf}"
        value = row.put(path, row.facts.figures.get(path, NOT_EXPOSED), always=path != "memory.kind")
        if leaf.startswith("engines_percent."):
            engines[leaf.partition(".")[2]] = value
            values["engines_percent"] = engines
        else:
            values[leaf] = value
    return values


def _list(row: AdapterRow, leaf: str, value: list[Holder] | list[SharedClient] | Reading) -> object:
    return row.put(leaf, value) if isinstance(value, Reading) else value
