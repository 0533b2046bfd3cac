"""The table of one card's difference: before → after and the signed change, in one unit, adding up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.diff_rows import ABSENT, UNKNOWN, collapse
from gpusnap.render.reasons import short
from gpusnap.render.rounding import round_two_columns, show_steps, steps
from gpusnap.render.units import format_delta, format_number, pick_unit

if TYPE_CHECKING:
    from gpusnap.render.diff_rows import CardDiff, Line

HEADER = ("STATUS", "PID", "USER", "PROGRAM", "BEFORE", "AFTER", "CHANGE")
ALIGN = "lrllrrr"
USER, PROGRAM = 2, 3


def table_of(card: CardDiff, min_bytes: int) -> list[list[str]]:
    """Cells of the lines of one card; the first is the biggest change."""
    shown, sums = collapse(card.lines, min_bytes)
    lines = [*shown, *sums, *card.account_lines()]
    unit = unit_of(lines)
    old, new = round_two_columns(
        [_or_nothing(line.before) for line in lines],
        [_or_nothing(line.after) for line in lines],
        (_or_nothing(card.used[0]), _or_nothing(card.used[1])),
        unit,
    )
    return [_cells(card, line, unit, pair) for line, pair in zip(lines, zip(old, new, strict=True), strict=True)]


def _or_nothing(count: int | None) -> int:
    """For the rounding alone: the cell of a figure that is not known shows a word, whatever was rounded."""
    return 0 if count is None else count


def unit_of(lines: list[Line]) -> str:
    """The unit of the biggest change, so that 40 MiB are not `<0.1 GiB`; of the biggest figure where none is."""
    deltas = [delta for line in lines if (delta := line.delta) is not None]
    if any(deltas):
        unit = pick_unit(deltas)
        return unit if unit in ("GiB", "MiB") else pick_unit((max(map(abs, deltas)), 1 << 20))
    return pick_unit(figure for line in lines for figure in (line.before, line.after))


def _cells(card: CardDiff, line: Line, unit: str, shown: tuple[int, int]) -> list[str]:
    before = _figure(line.before, line.before_there, shown[0], unit)
    after = _figure(line.after, line.after_there, shown[1], unit)
    if line.status == "unattributed":
        before, after = _bound(card, 0, line.before, before, unit), _bound(card, 1, line.after, after, unit)
    words = line.program
    if line.status in ("same", "smaller"):
        return [line.status, "", "", words, before, after, _change(line, shown, unit)]
    return [line.status, line.pid, line.user, words, before, after, _change(line, shown, unit)]


def _figure(count: int | None, there: bool, shown: int, unit: str) -> str:
    if count is None:
        return UNKNOWN if there else ABSENT
    if count == 0:
        return "0"
    return f"{show_steps(shown, unit) if shown else format_number(count, unit)} {unit}"


def _change(line: Line, shown: tuple[int, int], unit: str) -> str:
    """The difference of what the two cells show; a change too small for them is `<0.1`, never 0."""
    delta = line.delta
    if delta is None:
        return UNKNOWN
    step = shown[1] - shown[0]
    if step == 0 or steps(delta, unit) == 0:
        return format_delta(delta, unit)
    return f"{'+' if step > 0 else ''}{show_steps(step, unit)} {unit}"


def _bound(card: CardDiff, side: int, count: int | None, text: str, unit: str) -> str:
    """`up to` while something is unmeasured, `0 to X` where more is attributed than used."""
    row = (card.old, card.new)[side]
    if row is None:
        return text
    books = row["accounting"]
    if count is None:
        most = books["unattributed_max_bytes"]
        if most is None or most == 0:
            return UNKNOWN if most is None else "0"
        return f"0 to {format_number(most, unit)} {unit}"
    hidden = any(
        number is not None and number > 0 for number in (books["unmeasured_processes"], row["unreadable_pids"])
    )
    return f"up to {text}" if hidden and count > 0 else text


def footnotes(card: CardDiff) -> list[str]:
    """Why the memory of processes that came or went is unknown, counted; of others the details tell."""
    reasons: dict[str, int] = {}
    for row in card.rows:
        change = row["changes"].get("vram_bytes")
        if change is None or row["status"] not in ("appeared", "exited"):
            continue
        for side in ("before", "after"):
            value, why = change[side], change[f"{side}_provenance"]  # type: ignore[literal-required]
            if value is None and why != "null:none":
                words = short(why)
                reasons[words] = reasons.get(words, 0) + 1
    return (
        [f"{UNKNOWN}: " + ", ".join(f"{words} ({count})" for words, count in reasons.items())] if reasons else []
    )
