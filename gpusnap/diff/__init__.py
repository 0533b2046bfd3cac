"""The comparison of two snapshots: a pure function from two documents to a third.

It may be asked about any two: another boot, another machine, other cards, lists that failed. What can't be told
is `unknown` with a warning, never a forced pair and never "all gone, all new".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap import __version__, fields
from gpusnap.diff import leaves
from gpusnap.diff.delta import Differ, Sources, lone_changes
from gpusnap.diff.match import compare_boots, match_adapters
from gpusnap.diff.notes import (
    Notes,
    elapsed_seconds,
    note_boots,
    note_cards,
    note_clocks,
    note_sources,
    note_unread_cards,
)
from gpusnap.diff.processes import ProcessDiffer, Side
from gpusnap.diff.unattributed import diff_unattributed

if TYPE_CHECKING:
    from typing import Literal

    from gpusnap.diff.delta import Row
    from gpusnap.diff.match import Pair
    from gpusnap.model import AdapterDiff, Diff, DiffSide, ProcessDiff, Snapshot

DIFF_SCHEMA = "gpusnap.diff/1"
# What a card that is on one side only lists; its used memory first, known or not.
_LONE_LEAVES = (
    leaves.USED,
    *(f"memory.{name}" for name in fields.ADAPTER_GROUPS["memory"] if name not in ("used_bytes", "kind")),
    *(f"accounting.{name}" for name in fields.ACCOUNTING),
    *(f"accounting.by_category.{name}" for name in fields.CATEGORIES),
)


def diff(
    before: Snapshot,
    after: Snapshot,
    *,
    before_source: str = "before",
    after_source: str = "after",
    match: Literal["identity", "program"] = "identity",
    min_bytes: int = 0,
) -> Diff:
    """What changed; changes of bytes below `min_bytes` are listed but make no row `changed`."""
    boots = compare_boots(before, after)
    elapsed = elapsed_seconds(boots, before, after)
    pairs = match_adapters(before["adapters"], after["adapters"], same_boot=boots == "same")
    notes = Notes()
    note_boots(notes, boots, before, after)
    note_clocks(notes, elapsed, before, after)
    note_cards(notes, pairs)
    note_unread_cards(notes, pairs, before, after)

    sources = Sources(before["provenance"], after["provenance"])
    differ = Differ(sources, other_boot=boots != "same", backwards=elapsed is not None and elapsed < 0)
    old_side, new_side = Side(before), Side(after)
    processes = ProcessDiffer(old_side, new_side, boots, differ, notes)
    cards: list[AdapterDiff] = []
    rows: list[ProcessDiff] = []
    unattributed = []
    survivors = new_side.identities()
    for pair in pairs:
        verdicts = processes.diff(pair, parents_matched=_parent_is_matched(pair, pairs), min_bytes=min_bytes)
        if match == "program":
            verdicts = processes.pair_programs(pair, verdicts)
        cards.append(_card(pair, differ))
        rows += sorted((verdict.row for verdict in verdicts), key=_biggest_first)
        if pair.is_matched:
            unattributed.append(diff_unattributed(pair, verdicts, sources, boots, survivors))
    strays = processes.strays(*({card["id"] for card in doc["adapters"]} for doc in (before, after)))
    rows += sorted(strays, key=_biggest_first)
    note_sources(notes, sources.changed())
    return {
        "schema": DIFF_SCHEMA,
        "version": __version__,
        "before": _side(before, before_source),
        "after": _side(after, after_source),
        "elapsed_seconds": elapsed,
        "adapters": cards,
        "processes": rows,
        "unattributed": unattributed,
        "warnings": notes.list(),
    }


def _card(pair: Pair, differ: Differ) -> AdapterDiff:
    old, new = pair.before, pair.after
    if old is not None and new is not None:
        changes = differ.adapters(cast("Row", old), cast("Row", new))
        status = "lost" if new["health"] == "lost" else "matched"
    else:
        row = cast("Row", pair.either)
        entry = differ.sources.after(row) if old is None else differ.sources.before(row)
        changes = lone_changes(row, entry, _LONE_LEAVES, old is None)
        status = "appeared" if old is None else "disappeared"
    return {
        "status": cast("Literal['matched', 'appeared', 'disappeared', 'lost']", status),
        "matched_by": pair.by,
        "before_id": old["id"] if old is not None else None,
        "after_id": new["id"] if new is not None else None,
        "model": pair.either["model"] or (old["model"] if old is not None else None),
        "index_changed": old is not None and new is not None and old["index"] != new["index"],
        "changes": changes,
    }


def _parent_is_matched(pair: Pair, pairs: list[Pair]) -> bool:
    """A partition that is on one side only was made or removed, if its card is on both."""
    parent = pair.either["parent"]
    if pair.is_matched or parent is None:
        return False
    for other in pairs:
        card = other.before if pair.after is None else other.after
        if card is not None and card["id"] == parent:
            return other.is_matched and not other.is_lost
    return False


def _side(doc: Snapshot, source: str) -> DiffSide:
    return {
        "source": source,
        "taken_at": doc["taken_at"],
        "boot_id": doc["boot_id"],
        "hostname": doc["host"]["hostname"],
        "labels": doc["labels"],
    }


def _biggest_first(row: ProcessDiff) -> tuple[int, int, int, str]:
    """Within a card: the biggest change of memory, then by pid, so that no order of the input shows."""
    change = row["changes"].get(leaves.VRAM)
    delta = change["delta"] if change is not None else None
    start = row["start_ticks"]
    return -abs(int(delta or 0)), row["pid"], -1 if start is None else start, row["status"]
