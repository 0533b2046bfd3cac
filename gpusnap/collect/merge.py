"""Several backends' views of one adapter or process become one, leaf by leaf.

Adapters join by key (the PCI address). A leaf is the first backend's that measured it, in registry order; where
none did, the first reason that says more than "not exposed". Figures are never added across backends: KFD and
fdinfo count the same bytes, they overlap almost fully.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import AdapterFacts, ProcessFacts
from gpusnap.reading import Reading, null, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.harvest import Harvest
    from gpusnap.model import Warning_

# Backends that only say that something is there, where nobody else did.
_LAST_RESORT = frozenset({"pci"})


def merge_adapters(harvests: Iterable[Harvest]) -> list[AdapterFacts]:
    """One AdapterFacts a key, in the order of the backends; what only a last resort saw stands last."""
    merged: dict[str, AdapterFacts] = {}
    for harvest in sorted(harvests, key=lambda harvest: harvest.backend["name"] in _LAST_RESORT):
        for facts in harvest.adapters:
            known = merged.get(facts.key)
            if known is None:
                merged[facts.key] = facts
            else:
                _join(known, facts)
    return list(merged.values())


def _join(known: AdapterFacts, more: AdapterFacts) -> None:
    uuid = more.identity.get("uuid")
    if known.identity.get("uuid") is None and isinstance(uuid, Reading) and uuid.value is not None:
        # Windows tells the PCI address first, the driver its UUID: that is the card's `id`.
        known.identity["id"], known.identity["index"] = more.identity["id"], more.identity["index"]
    for leaf, value in more.identity.items():
        mine = known.identity.get(leaf)
        if leaf in ("health", "power_state"):
            if mine in (None, "unknown"):
                known.identity[leaf] = value
        elif mine is None or (isinstance(mine, Reading) and mine.value is None and value is not None):
            known.identity[leaf] = value
    for leaf, reading in more.figures.items():
        if leaf == "memory.reserved_bytes" and _counts_otherwise(known, more):
            continue
        known.figures[leaf] = better(known.figures.get(leaf), reading)
    known.beside = {**more.beside, **known.beside}
    if more.lists_processes:
        _join_lists(known, more)
    if known.shared_clients is None or (
        isinstance(known.shared_clients, Reading) and more.shared_clients is not None
    ):
        known.shared_clients = more.shared_clients
    known.unified_only = known.unified_only or more.unified_only


def use_final_ids(
    warnings: list[Warning_], names: list[tuple[AdapterFacts, object]], merged: list[AdapterFacts]
) -> None:
    """A backend's own name of an adapter becomes the one that the document has."""
    ids = {facts.key: str(facts.identity["id"]) for facts in merged}
    final = {str(name): ids[facts.key] for facts, name in names}
    for note in warnings:
        if note["adapter"] is not None:
            note["adapter"] = final.get(note["adapter"], note["adapter"])


def _counts_otherwise(known: AdapterFacts, more: AdapterFacts) -> bool:
    """Whether used is known of another source: a reserved part is inside or outside of its own source's used only.

    NVML's on Windows, where the system's counters say what is used.
    """
    mine, other = (facts.figures.get("memory.used_bytes") for facts in (known, more))
    if mine is None or other is None or mine.value is None or other.value is None:
        return False
    return mine.provenance.partition(".")[0] != other.provenance.partition(".")[0]


def _join_lists(known: AdapterFacts, more: AdapterFacts) -> None:
    """Several lists of one adapter: one that the device does not have makes the others no less complete."""
    if not known.lists_processes:
        known.lists_processes = True
        known.processes_listed = more.processes_listed
    else:
        known.processes_listed = _listed(known.processes_listed, more.processes_listed)
    if known.unreadable_pids is None or more.unreadable_pids is None:
        known.unreadable_pids = None
    else:
        known.unreadable_pids = max(known.unreadable_pids, more.unreadable_pids)


def _listed(one: str | Reading, other: str | Reading) -> str | Reading:
    if isinstance(one, Reading) and isinstance(other, Reading):
        return one if reason_of(one.provenance) not in ("not-supported", "not-exposed") else other
    for missing, there in ((one, other), (other, one)):
        if isinstance(missing, Reading):
            absent = reason_of(missing.provenance) in ("not-supported", "not-exposed")
            return there if absent else "partial"
    return "partial" if "partial" in (one, other) else "complete"


def better(known: Reading | None, more: Reading) -> Reading:
    """The measured one; of two nulls the one that says more than "not exposed"."""
    if known is None:
        return more
    if known.value is not None or more.value is None:
        vague = known.value is None and known.provenance.startswith("null:not-exposed")
        return more if vague and not more.provenance.startswith("null:not-exposed") else known
    return more


def merge_processes(harvests: Iterable[Harvest]) -> list[ProcessFacts]:
    """One ProcessFacts for each (adapter, pid); a pid that `proc` shows is believed over the driver's."""
    merged: dict[tuple[str, int], ProcessFacts] = {}
    for harvest in harvests:
        for facts in harvest.processes:
            key = (facts.adapter_key, facts.pid)
            known = merged.get(key)
            if known is None:
                merged[key] = facts
                continue
            for leaf, reading in facts.figures.items():
                known.figures[leaf] = better(known.figures.get(leaf), reading)
            known.committed = {**facts.committed, **known.committed}
            if facts.pid_space == "here":
                known.pid_space = "here"
    return list(merged.values())


NO_LIST = null("not-exposed", "no backend lists its processes")
