"""What became of each process row: same, changed, appeared, exited, replaced, or unknown.

A row that is missing on one side has exited (or appeared) only where that side could have listed it. Where it
could not - the list failed, was partial, the card is lost or gone, the process has no start stamp, the machine
is another one - the row is `unknown`, stands alone with no changes, and a note says why. hidepid and a driver
that went away must never read as "all gone" (telegraf#15698).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from gpusnap import fields
from gpusnap.diff.delta import decides, lone_changes
from gpusnap.diff.match import index_by_identity
from gpusnap.diff.program import pair_programs

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from gpusnap.diff.delta import Differ, Row
    from gpusnap.diff.match import Boots, Pair
    from gpusnap.diff.notes import Notes
    from gpusnap.model import Adapter, Change, Process, ProcessDiff, Snapshot

# What a row on one side lists; its memory first, which is listed even when nobody measured it.
_LONE_LEAVES = fields.PROCESS_FIGURES


class Verdict(NamedTuple):
    """One row of the result beside the rows that it is about."""

    row: ProcessDiff
    before: Process | None
    after: Process | None


class Side:
    """One document's process rows by adapter; gpusnap's own are no part of any comparison."""

    def __init__(self, doc: Snapshot) -> None:
        self.listed = doc["processes"] is not None
        self.by_adapter: dict[str, list[Process]] = {}
        for row in doc["processes"] or ():
            if not row["self"]:
                self.by_adapter.setdefault(row["adapter"], []).append(row)

    def rows(self, card: Adapter | None) -> list[Process]:
        return self.by_adapter.get(card["id"], []) if card is not None else []

    def identities(self) -> frozenset[tuple[int, int]]:
        """(pid, start stamp) of every process on any card."""
        return frozenset(key for rows in self.by_adapter.values() for key in index_by_identity(rows))


class ProcessDiffer:
    """Compares the rows of one pair of cards after the other."""

    def __init__(self, before: Side, after: Side, boots: Boots, differ: Differ, notes: Notes) -> None:
        self._before = before
        self._after = after
        self._boots = boots
        self._differ = differ
        self._notes = notes

    def diff(self, pair: Pair, *, parents_matched: bool, min_bytes: int) -> list[Verdict]:
        """`parents_matched`: the card of this partition is on both sides, so a missing partition is no riddle."""
        old, new = self._before.rows(pair.before), self._after.rows(pair.after)
        old_index = index_by_identity(old) if self._boots == "same" else {}
        new_index = index_by_identity(new) if self._boots == "same" else {}
        found = []
        for identity, row in old_index.items():
            match = new_index.get(identity)
            if match is not None:
                found.append(self._matched(pair, row, match, min_bytes))
        paired = {id(verdict.before) for verdict in found} | {id(verdict.after) for verdict in found}
        lone_old = [row for row in old if id(row) not in paired]
        lone_new = [row for row in new if id(row) not in paired]
        found += self._lone(pair, lone_old, lone_new, parents_matched, appeared=False)
        found += self._lone(pair, lone_new, lone_old, parents_matched, appeared=True)
        return found

    def _matched(self, pair: Pair, old: Process, new: Process, min_bytes: int) -> Verdict:
        changes = self._differ.processes(cast("Row", old), cast("Row", new))
        status = "changed" if changes and decides(changes, min_bytes) else "same"
        return Verdict(_entry(status, pair.either["id"], new, changes), old, new)

    def _lone(
        self, pair: Pair, rows: list[Process], others: list[Process], parents_matched: bool, *, appeared: bool
    ) -> list[Verdict]:
        if not rows:
            return []
        missing_there = None
        if self._boots == "same":
            there = self._before if appeared else self._after
            card = pair.before if appeared else pair.after
            missing_there = None if card is None and parents_matched else _why_unlisted(there, card)
        unstamped = {row["pid"] for row in others if row["start_ticks"] is None}
        found = []
        for row in rows:
            why = self._why_unknown(row, unstamped) or missing_there
            if why is not None:
                self._notes.unknown_row(why, pair.either["id"], row["pid"], "before" if appeared else "after")
            found.append(self._alone(pair, row, known=why is None, appeared=appeared))
        return found

    def _why_unknown(self, row: Process, unstamped: set[int]) -> str | None:
        """A reason that lies in the row or in the two machines; another boot makes everything certain."""
        if self._boots == "other":
            return None
        if self._boots != "same":
            return self._boots
        if row["start_ticks"] is None or row["pid"] in unstamped:
            return "start"
        return None

    def _alone(self, pair: Pair, row: Process, *, known: bool, appeared: bool) -> Verdict:
        changes: dict[str, Change] = {}
        if known:
            sources = self._differ.sources
            entry = sources.after(cast("Row", row)) if appeared else sources.before(cast("Row", row))
            changes = lone_changes(cast("Row", row), entry, _LONE_LEAVES, appeared)
        status = ("appeared" if appeared else "exited") if known else "unknown"
        verdict = _entry(status, pair.either["id"], row, changes)
        return Verdict(verdict, None, row) if appeared else Verdict(verdict, row, None)

    def strays(self, before: Container[str], after: Container[str]) -> list[ProcessDiff]:
        """Rows on a card that their document does not have: readers don't re-check, so they stand as unknown."""
        found = []
        for side, cards, missing_side in ((self._before, before, "after"), (self._after, after, "before")):
            for adapter, rows in side.by_adapter.items():
                for row in rows if adapter not in cards else ():
                    self._notes.unknown_row("card-unlisted", adapter, row["pid"], missing_side)
                    found.append(_entry("unknown", adapter, row, {}))
        return found

    def pair_programs(self, pair: Pair, verdicts: list[Verdict]) -> list[Verdict]:
        """`--match program`: exited and appeared rows of one program and user become one `replaced`."""
        gone = {id(item.before): item for item in verdicts if item.row["status"] == "exited"}
        come = {id(item.after): item for item in verdicts if item.row["status"] == "appeared"}
        rows = pair_programs(
            [item.before for item in gone.values() if item.before is not None],
            [item.after for item in come.values() if item.after is not None],
        )
        replaced = []
        for old, new in rows:
            changes = self._differ.processes(cast("Row", old), cast("Row", new))
            entry = _entry("replaced", pair.either["id"], new, changes)
            entry["replaces"] = {"pid": old["pid"], "start_ticks": old["start_ticks"]}
            replaced.append(Verdict(entry, old, new))
        used = {id(row) for couple in rows for row in couple}
        kept = [item for item in verdicts if item.row["status"] not in ("exited", "appeared")]
        kept += [item for key, item in (*gone.items(), *come.items()) if key not in used]
        return kept + replaced


def _why_unlisted(side: Side, card: Adapter | None) -> str | None:
    """Why a row that is missing on this side may be there all the same; None: it would have been listed."""
    if card is None:
        return "card-missing"
    if card["health"] == "lost":
        return "card-lost"
    if not side.listed or card["processes_listed"] == "unavailable":
        return "list-unavailable"
    return "list-partial" if card["processes_listed"] == "partial" else None


def _entry(status: str, adapter: str, row: Process, changes: Mapping[str, Change]) -> ProcessDiff:
    return cast(
        "ProcessDiff",
        {
            "status": status,
            "adapter": adapter,
            "pid": row["pid"],
            "start_ticks": row["start_ticks"],
            "name": row["name"],
            "user": row["user"],
            "cmdline": row["cmdline"],
            "changes": changes,
            "replaces": None,
        },
    )
