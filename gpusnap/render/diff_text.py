"""`diff` for people: a verdict, then a table a card that changed, then what else there is to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.card import head_lines
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
from gpusnap.render.table import escape_markdown, fits, one_line, render_markdown_table
from gpusnap.render.units import format_bytes, format_pair_in_one_unit

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot
    from gpusnap.render.screen import Screen

_INDENT = "   "
_HANGING = "  "
_BOLD = "1"


def diff_lines(
    result: Diff,
    before: Snapshot,
    after: Snapshot,
    screen: Screen,
    *,
    min_bytes: int = 0,
) -> list[str]:
    """The whole of it in any width; colour only repeats what stands first."""
    cards = _cards(result, before, after)
    lines = [screen.painted(line, _BOLD) for line in screen.filled(verdict(result, cards))]
    for card in _changed(cards):
        name, gap, said = heading(card).rpartition("   ")
        lines += ["", *(head_lines(name, said, screen) if gap else screen.filled(said))]
        rows = table_of(card, min_bytes)
        table = _table(rows, screen)
        first = 1 if table and table[0].split()[:1] == [HEADER[0]] else 0
        if first < len(table) and rows[0][-1] not in ("0", "unknown"):
            table[first] = screen.painted(table[first], _BOLD)
        lines += table
        for said in said_of(card, screen.width):
            lines += screen.filled(said, _INDENT + _HANGING, first=_INDENT)
    others = [card for card in cards if not has_changed(card)]
    if others and len(others) < len(cards):
        names = ", ".join(short_name(card, alone=False) for card in others)
        lines += ["", *screen.filled(f"Unchanged: {names}.")]
    warnings = _warnings(result, cards)
    if warnings:
        lines.append("")
    for text in warnings:
        lines += screen.filled(text, _HANGING, first="! ")
    return lines


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
        return f"{title(card)}   {'not read' if card.is_unread else status}"
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


def _table(rows: list[list[str]], screen: Screen) -> list[str]:
    """Where all columns don't fit, the user gives way: the change is what this is about."""
    narrow = [[*row[:USER], *row[USER + 1 :]] for row in (HEADER, *rows)]
    wide_enough = fits([HEADER, *rows], [PROGRAM], screen.width, _INDENT)
    if wide_enough or not fits(narrow, [PROGRAM - 1], screen.width, _INDENT):
        return screen.whole_table(HEADER, rows, ALIGN, wrap=[PROGRAM], indent=_INDENT)
    align = ALIGN[:USER] + ALIGN[USER + 1 :]
    return screen.whole_table(narrow[0], narrow[1:], align, wrap=[PROGRAM - 1], indent=_INDENT)


def _warnings(result: Diff, cards: list[CardDiff]) -> list[str]:
    """Each with its card's name where there are several."""
    names = {card.id: short_name(card, alone=False) for card in cards} if len(cards) > 1 else {}
    found = []
    for warning in result["warnings"]:
        name = names.get(warning["adapter"] or "")
        found.append(warning["message"] if name is None else f"{name}: {warning['message']}")
    return found
