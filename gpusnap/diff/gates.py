"""Gates for pipelines: whether there is a difference, and whether a card or a process grew too much.

Unknown is not "fine": a figure that a gate needs and nobody measured fails it, and so does a comparison in which
no card could be paired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.diff.delta import decides
from gpusnap.diff.leaves import SPILL, USED, VRAM
from gpusnap.reading import reason_of
from gpusnap.render.program import program_of
from gpusnap.render.reasons import short
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from gpusnap.model import Adapter, AdapterDiff, Diff, Process, ProcessDiff, Snapshot

# A card that has no local memory of its own, or whose memory stands on its partitions, has no such figure to need.
_NO_SUCH_FIGURE = frozenset(("unified-memory", "partitioned"))
_SIDES: tuple[Literal["before_provenance", "after_provenance"], ...] = ("before_provenance", "after_provenance")


def has_differences(result: Diff, min_bytes: int = 0) -> bool:
    """`--exit-code`: a card came or went, a row is `changed`, or the set of processes is another one.

    Rows that can't be told (`unknown`) are no difference by themselves: what they hold is in the card's account.
    """
    for card in result["adapters"]:
        if card["status"] in ("appeared", "disappeared") or decides(card["changes"], min_bytes):
            return True
    return any(_is_difference(row, min_bytes) for row in result["processes"])


def _is_difference(row: ProcessDiff, min_bytes: int) -> bool:
    if row["status"] in ("changed", "replaced"):
        return decides(row["changes"], min_bytes)
    if row["status"] not in ("appeared", "exited"):
        return False
    held = [row["changes"][leaf]["delta"] for leaf in (VRAM, SPILL) if leaf in row["changes"]]
    vram = row["changes"][VRAM]
    if held[0] is None and {reason_of(vram[side] or "") for side in _SIDES} == {"none", "unified-memory"}:
        held = held[1:] or [None]  # what it holds of the system's stands in its place
    return any(delta is None or abs(delta) >= min_bytes for delta in held)


class Growth:
    """Checks of one comparison against a limit; each failure is a phrase for people."""

    def __init__(self, result: Diff, before: Snapshot, after: Snapshot) -> None:
        self._result = result
        self._before = _Side(before, "before")
        self._after = _Side(after, "after")
        self._matched = [card for card in result["adapters"] if card["status"] in ("matched", "lost")]

    def of_cards(self, limit: int) -> list[str]:
        """Growth of used, strictly above the limit, of each card."""
        verdicts = [(card, self._card(card, limit)) for card in self._result["adapters"]]
        if all(verdict is None or card not in self._matched for card, verdict in verdicts):
            return ["no card is in both snapshots with a figure to compare"]
        return [f"{self._name(card)}: {verdict}" for card, verdict in verdicts if verdict]

    def of_processes(self, limit: int) -> list[str]:
        """Growth of one row, strictly above the limit; on unified memory of what it holds of the system's."""
        if not self._matched:
            return ["no card is in both snapshots"]
        failures = []
        for side in (self._before, self._after):
            if not side.lists_processes:
                failures.append(f"the {side.name} snapshot could not list processes")
        for card in self._matched:
            failures += [f"{self._name(card)}: {words}" for words in self._unlisted(card)]
        return failures + [words for row in self._result["processes"] if (words := self._row(row, limit))]

    def _card(self, card: AdapterDiff, limit: int) -> str | None:
        """None: it has no such figure; empty: passed; else why not."""
        if card not in self._matched:
            return f"is only in the {'after' if card['status'] == 'appeared' else 'before'} snapshot"
        old, new = self._before.cards[str(card["before_id"])], self._after.cards[str(card["after_id"])]
        used = old["memory"]["used_bytes"], new["memory"]["used_bytes"]
        whys = self._before.source(old, USED), self._after.source(new, USED)
        if used == (None, None) and all(reason_of(why or "") in _NO_SUCH_FIGURE for why in whys):
            return None
        if used[0] is None or used[1] is None:
            side, why = ("before", whys[0]) if used[0] is None else ("after", whys[1])
            return f"used was not measured {side} ({short(why)})"
        return _too_much("used grew", used[1] - used[0], limit)

    def _unlisted(self, card: AdapterDiff) -> Iterator[str]:
        for side, identity in ((self._before, card["before_id"]), (self._after, card["after_id"])):
            row = side.cards[str(identity)]
            why = side.source(row, "processes_listed")
            if row["processes_listed"] == "unavailable" and reason_of(why or "") not in _NO_SUCH_FIGURE:
                yield f"processes could not be listed {side.name} ({short(why)})"

    def _row(self, row: ProcessDiff, limit: int) -> str:
        """Empty: passed, or gone, which is no growth."""
        old, new = self._pair_of(row)
        name = f"{program_of(new or old or {}) or 'process'} {row['pid']}"
        if row["status"] == "exited":
            return ""
        if row["status"] == "unknown" or new is None:
            return f"{name}: can't be told to be the same process"
        was = 0 if old is None else self._before.held(old)
        now = self._after.held(new)
        if was is None or now is None:
            side, there = (self._before, old) if was is None and old is not None else (self._after, new)
            return f"{name}: memory was not measured {side.name} ({short(side.source(there, VRAM))})"
        words = _too_much("grew", now - was, limit)
        return f"{name}: {words}" if words else ""

    def _pair_of(self, row: ProcessDiff) -> tuple[Process | None, Process | None]:
        ids = next((card for card in self._matched if card["after_id"] == row["adapter"]), None)
        old_card = row["adapter"] if ids is None else str(ids["before_id"])
        was = row["replaces"] or row
        old = (
            None
            if row["status"] == "appeared"
            else self._before.rows.get((old_card, was["pid"], was["start_ticks"]))
        )
        return old, self._after.rows.get((row["adapter"], row["pid"], row["start_ticks"]))

    def _name(self, card: AdapterDiff) -> str:
        row = self._after.cards.get(str(card["after_id"])) or self._before.cards[str(card["before_id"])]
        number = "" if row["index"] is None else f" {row['index']}"
        return f"GPU{number} ({card['model'] or row['vendor']})"


class _Side:
    """One snapshot: its cards, its rows, where its figures come from."""

    def __init__(self, doc: Snapshot, name: str) -> None:
        self.name = name
        self.lists_processes = doc["processes"] is not None
        self.cards = {card["id"]: card for card in doc["adapters"]}
        self.rows = {
            (row["adapter"], row["pid"], row["start_ticks"]): row
            for row in doc["processes"] or ()
            if not row["self"]
        }
        self._provenance = doc["provenance"]

    def source(self, row: Adapter | Process, leaf: str) -> str | None:
        index = row["provenance"]
        return self._provenance[index].get(leaf) if 0 <= index < len(self._provenance) else None

    def held(self, row: Process) -> int | None:
        """VRAM; where memory is unified, the system memory that stands in its place."""
        if row["vram_bytes"] is None and reason_of(self.source(row, VRAM) or "") == "unified-memory":
            return row["spill_bytes"]
        return row["vram_bytes"]


def _too_much(verb: str, growth: int, limit: int) -> str:
    """Strictly above; plain bytes too, since 256.0 MiB may be one byte more than 256 MiB."""
    if growth <= limit:
        return ""
    return f"{verb} by {format_bytes(growth)} ({growth} bytes), above {format_bytes(limit)} ({limit} bytes)"
