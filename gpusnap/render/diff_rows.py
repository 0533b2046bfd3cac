"""What a person reads of one card's difference: lines whose columns add up to what the card uses.

The difference names what changed; the figures that did not change stand only in the two snapshots, so both are
asked here. Text and Markdown show the same lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.render.program import program_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpusnap.model import Adapter, AdapterDiff, Diff, Process, ProcessDiff, Snapshot

ABSENT = "-"
UNKNOWN = "unknown"
_COME_AND_GONE = ("appeared", "exited", "replaced")
_RANK = {"appeared": 0, "exited": 1, "replaced": 2, "changed": 3, "unknown": 4}


class Line(NamedTuple):
    """One line of a card's table. A figure is None where `before_there`/`after_there` says "not measured"."""

    status: str
    pid: str
    user: str
    program: str
    before: int | None
    after: int | None
    before_there: bool = True
    after_there: bool = True

    @property
    def delta(self) -> int | None:
        """None where a side that is there was not measured."""
        if (self.before is None and self.before_there) or (self.after is None and self.after_there):
            return None
        if self.status == "unknown":
            return None
        return (self.after or 0) - (self.before or 0)

    @property
    def weight(self) -> int:
        """By what lines are sorted: the change, or what is known of it."""
        delta = self.delta
        if delta is not None:
            return abs(delta)
        return max(self.before or 0, self.after or 0)


class CardDiff:
    """One card of the difference with its rows in both snapshots."""

    def __init__(self, result: Diff, before: Snapshot, after: Snapshot, card: AdapterDiff) -> None:
        self.card = card
        self.id = card["after_id"] or card["before_id"] or ""
        self.old = _card(before, card["before_id"])
        self.new = _card(after, card["after_id"])
        self.parent = _card(before if self.new is None else after, self.either["parent"])
        self.has_partitions = any(row["parent"] == self.id for row in (*before["adapters"], *after["adapters"]))
        self.is_unified = self.either["memory"]["kind"] == "unified"
        self.is_unread = any(
            note["code"] == "card-unread" and note["adapter"] == self.id for note in result["warnings"]
        )
        self.rows = [row for row in result["processes"] if row["adapter"] == self.id]
        self.rest = next((item for item in result["unattributed"] if item["adapter"] == self.id), None)
        self._old_rows = _rows(before, card["before_id"])
        self._new_rows = _rows(after, card["after_id"])
        self.lines = self._lines()

    @property
    def used(self) -> tuple[int | None, int | None]:
        """On unified memory with what it uses of the system's, since that is where its processes' memory is."""
        leaves = ("used_bytes", "shared_used_bytes") if self.is_unified else ("used_bytes",)
        old, new = (
            _known_sum(card["memory"] if card is not None else None, leaves) for card in (self.old, self.new)
        )
        return old, new

    @property
    def delta(self) -> int | None:
        old, new = self.used
        return None if old is None or new is None else new - old

    @property
    def either(self) -> Adapter:
        card = self.new or self.old
        assert card is not None  # noqa: S101 - a card of the difference is on a side
        return card

    def pair_of(self, row: ProcessDiff) -> tuple[Process | None, Process | None]:
        """The rows that a row of the difference is about."""
        key = (row["pid"], row["start_ticks"])
        replaces = row["replaces"]
        old_key = (replaces["pid"], replaces["start_ticks"]) if replaces is not None else key
        old = None if row["status"] == "appeared" else self._old_rows.get(old_key)
        return old, None if row["status"] == "exited" else self._new_rows.get(key)

    def _lines(self) -> list[Line]:
        """Process lines, biggest change first; an unknown pid that is on both sides is one line."""
        known = [row for row in self.rows if row["status"] != "unknown"]
        found = [self._line(row["status"], *self.pair_of(row)) for row in known]
        claimed = {(row["pid"], row["start_ticks"]) for row in known}
        old, new = (
            {key[0]: row for key, row in rows.items() if key not in claimed}
            for rows in (self._old_rows, self._new_rows)
        )
        pids = {row["pid"] for row in self.rows if row["status"] == "unknown"}
        found += [self._line("unknown", old.get(pid), new.get(pid)) for pid in sorted(pids)]
        return sorted(found, key=lambda line: (-line.weight, _RANK.get(line.status, len(_RANK))))

    def account_lines(self) -> list[Line]:
        """What belongs to no row: shared, reserved inside used, unattributed.

        None where the account is of another memory than the lines: on unified memory, and of a card whose memory
        stands on its partitions.
        """
        lines: list[Line] = []
        if self.is_unified or self.has_partitions or self.old is None or self.new is None:
            return lines
        for name, leaf in (("shared", "shared_bytes"), ("reserved", "reserved_bytes"), ("unattributed", None)):
            old, new = (_account(card, leaf or "unattributed_bytes") for card in (self.old, self.new))
            if leaf is None or old or new:
                lines.append(Line(name, "", "", "", old, new))
        return lines

    def _line(self, status: str, old: Process | None, new: Process | None) -> Line:
        row = new or old
        if row is None:
            return Line(status, ABSENT, ABSENT, ABSENT, None, None)
        pid = str(row["pid"])
        if status == "replaced" and old is not None:
            pid = f"{old['pid']} → {pid}"
        leaves = ("vram_bytes", "spill_bytes") if self.is_unified else ("vram_bytes",)
        before, after = _known_sum(old, leaves), _known_sum(new, leaves)
        there = (old is not None, new is not None)
        return Line(status, pid, row["user"] or ABSENT, program_of(row) or ABSENT, before, after, *there)


def collapse(lines: Iterable[Line], min_bytes: int) -> tuple[list[Line], list[Line]]:
    """Lines to show one by one, and sums of those that did not change or changed by less than `min_bytes`.

    A row that is `changed` in the difference passed that threshold there already.
    """
    shown: list[Line] = []
    same: list[Line] = []
    small: list[Line] = []
    for line in lines:
        delta = line.delta
        if line.status == "same":
            (small if delta else same).append(line)
        elif line.status in _COME_AND_GONE and delta is not None and abs(delta) < min_bytes:
            small.append(line)
        else:
            shown.append(line)
    sums = [_sum(name, group) for name, group in (("smaller", small), ("same", same)) if group]
    return shown, sums


def _sum(name: str, lines: list[Line]) -> Line:
    unmeasured = sum(line.before is None and line.before_there for line in lines)
    words = f"{len(lines)} process" + ("" if len(lines) == 1 else "es")
    if unmeasured:
        words += f", {unmeasured} unmeasured"
    before, after = (
        sum(figure or 0 for figure in side) for side in ([x.before for x in lines], [x.after for x in lines])
    )
    known = unmeasured < len(lines)
    return Line(name, "", "", words, before if known else None, after if known else None)


def _card(doc: Snapshot, identity: str | None) -> Adapter | None:
    return next((card for card in doc["adapters"] if card["id"] == identity), None)


def _rows(doc: Snapshot, identity: str | None) -> dict[tuple[int, int | None], Process]:
    rows = (row for row in doc["processes"] or () if row["adapter"] == identity and not row["self"])
    return {(row["pid"], row["start_ticks"]): row for row in rows}


def _known_sum(values: Mapping[str, object] | None, leaves: tuple[str, ...]) -> int | None:
    """Of what was measured; None where nothing was."""
    known = [value for leaf in leaves if values is not None and isinstance(value := values[leaf], int)]
    return sum(known) if known else None


def _account(card: Adapter | None, leaf: str) -> int | None:
    return None if card is None else card["accounting"][leaf]  # type: ignore[literal-required]
