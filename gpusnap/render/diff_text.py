"""`diff` for people: a verdict, then a table a card that changed, then what else there is to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.diff_details import (
    argument_lines,
    card_details,
    loaded_models,
    process_details,
    rest_line,
)
from gpusnap.render.diff_rows import CardDiff
from gpusnap.render.diff_table import ALIGN, HEADER, PROGRAM, USER, footnotes, table_of
from gpusnap.render.diff_verdict import has_changed, short_name, title, verdict
from gpusnap.render.table import escape_markdown, one_line, render_markdown_table, render_table, truncate
from gpusnap.render.units import format_bytes, format_pair_in_one_unit

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot

_INDENT = "   "
_BOLD, _END = "\x1b[1m", "\x1b[0m"


def diff_lines(
    result: Diff,
    before: Snapshot,
    after: Snapshot,
    *,
    width: int | None = None,
    min_bytes: int = 0,
    colour: bool = False,
) -> list[str]:
    """Lines of at most `width` columns; colour only repeats what stands first."""
    cards = _cards(result, before, after)
    head = verdict(result, cards)
    lines = [_cut(head, width)]
    if colour:
        lines = [f"{_BOLD}{lines[0]}{_END}"]
    for card in _changed(cards):
        lines += ["", _cut(heading(card), width)]
        rows = table_of(card, min_bytes)
        table = _table(rows, width)
        if colour and len(table) > 1 and rows[0][-1] not in ("0", "unknown"):
            table[1] = f"{_BOLD}{table[1]}{_END}"
        lines += table
        lines += [_cut(_INDENT + line, width) for line in said_of(card, width)]
    others = [card for card in cards if not has_changed(card)]
    if others and len(others) < len(cards):
        names = ", ".join(short_name(card, alone=False) for card in others)
        lines += ["", _cut(f"Unchanged: {names}.", width)]
    warnings = _warnings(result, cards)
    return [*lines, "", *(_cut(f"! {text}", width) for text in warnings)] if warnings else lines


def diff_markdown(result: Diff, before: Snapshot, after: Snapshot, *, min_bytes: int = 0) -> list[str]:
    """The same for a ticket: nothing is cut, and no name can break out of its cell."""
    cards = _cards(result, before, after)
    sides = " → ".join(
        f"`{one_line(side['source']).replace('`', '')}` ({side['taken_at']})"
        for side in (result["before"], result["after"])
    )
    lines = [f"**{escape_markdown(verdict(result, cards))}**", "", sides]
    for card in _changed(cards):
        lines += ["", f"### {escape_markdown(heading(card))}", ""]
        lines += render_markdown_table(HEADER, table_of(card, min_bytes), ALIGN)
        said = said_of(card, None)
        if said:
            lines += ["", *(f"- {escape_markdown(line.strip())}" for line in said)]
    warnings = _warnings(result, cards)
    return [*lines, "", *(f"> {escape_markdown(text)}  " for text in warnings)] if warnings else lines


def heading(card: CardDiff) -> str:
    """`GPU 0  NVIDIA GeForce RTX 4080 SUPER   used 2.5 → 11.6 GiB`."""
    status = card.card["status"]
    if status != "matched":
        return f"{title(card)}   {status}"
    of = " of unified memory" if card.is_unified else ""
    if card.used == (None, None):
        return f"{title(card)}   {'unified memory' if card.is_unified else 'used unknown'}"
    if card.delta == 0:
        return f"{title(card)}   {format_bytes(card.used[1])}{of} used, as before"
    return f"{title(card)}   used {format_pair_in_one_unit(*card.used)}{of}"


def said_of(card: CardDiff, width: int | None) -> list[str]:
    rest = rest_line(card)
    lines = [] if rest is None else [rest]
    lines += [*card_details(card), *loaded_models(card), *process_details(card)]
    return [*lines, *argument_lines(card, width), *footnotes(card)]


def _cards(result: Diff, before: Snapshot, after: Snapshot) -> list[CardDiff]:
    return [CardDiff(result, before, after, card) for card in result["adapters"]]


def _changed(cards: list[CardDiff]) -> list[CardDiff]:
    """Those that changed, the biggest change first; they keep their order where nothing tells them apart."""
    moved = [card for card in cards if has_changed(card)]
    return sorted(moved, key=lambda card: -abs(card.delta or 0))


def _table(rows: list[list[str]], width: int | None) -> list[str]:
    """Where all columns don't fit, the user gives way: the change is what this is about."""
    lines = render_table(HEADER, rows, ALIGN, width=width, flex=PROGRAM, indent=_INDENT)
    if not any(line.endswith("…") for line in lines):
        return lines
    narrow = [[*row[:USER], *row[USER + 1 :]] for row in (list(HEADER), *rows)]
    align = ALIGN[:USER] + ALIGN[USER + 1 :]
    return render_table(narrow[0], narrow[1:], align, width=width, flex=PROGRAM - 1, indent=_INDENT)


def _warnings(result: Diff, cards: list[CardDiff]) -> list[str]:
    """Each with its card's name where there are several."""
    names = {card.id: short_name(card, alone=False) for card in cards} if len(cards) > 1 else {}
    found = []
    for warning in result["warnings"]:
        name = names.get(warning["adapter"] or "")
        found.append(warning["message"] if name is None else f"{name}: {warning['message']}")
    return found


def _cut(line: str, width: int | None) -> str:
    """One printable line: a document of somebody else may hold what ours never do."""
    line = one_line(line)
    return line if width is None else truncate(line, width)
