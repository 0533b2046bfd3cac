"""An explanation for people: the answer, the account of each card, findings, where the numbers come from."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from gpusnap.explain.rows import held_bytes, program, rows_of
from gpusnap.explain.sources import by_layer, within_reach
from gpusnap.render.card import INDENT, card_lines
from gpusnap.render.explain_process import process_lines
from gpusnap.render.explain_recording import recording_lines
from gpusnap.render.identity import has_unlike_cards, identity
from gpusnap.render.units import format_bytes, pick_unit

if TYPE_CHECKING:
    from gpusnap.explain.explanation import Explained
    from gpusnap.model import Adapter, Figure, Finding
    from gpusnap.render.screen import Screen

MOST_ROWS = 10
MOST_ROWS_OF_MANY = 5
_FEW_CARDS = 2
_NARROW = 64
_HEADER = ("PID", "USER", "HOLDS", "PROGRAM", "ROLE")
_MARKS = {"critical": "‼", "warning": "!", "notice": "·", "info": "i"}
_COLOURS = {"critical": "1;31", "warning": "33", "notice": "36", "info": "2"}
_CODE_WIDTH = 16


def explain_lines(
    explained: Explained, screen: Screen, *, sources: bool = False, command: str = "", replay: str | None = None
) -> list[str]:
    """Text: the whole of it in any width. `command` is what was asked; `replay` the kept machine, for `ps`."""
    document = explained.document
    lines = [*screen.filled(document["answer"]), ""]
    if explained.history is not None:
        lines += [*recording_lines(explained, screen), ""]
    elif document["subject"]["kind"] == "process":
        lines += [*_of_process(explained, screen), ""]
    else:
        for card in explained.cards:
            lines += [*_of_card(explained, card, replay, screen), ""]
    for finding in document["findings"]:
        lines += finding_lines(finding, screen)
    if document["findings"]:
        lines.append("")
    if sources:
        return lines + source_lines(document["figures"], screen)
    asked = f"{command} --sources" if command else "--sources"
    return lines + screen.filled(f"Where each number comes from: gpusnap explain {asked}")


def _of_card(explained: Explained, card: Adapter, replay: str | None, screen: Screen) -> list[str]:
    lines = card_lines(explained.snapshot, card, screen)
    if explained.document["subject"]["kind"] == "adapter" or has_unlike_cards(explained.snapshot):
        for said in identity(explained.snapshot, card):
            lines += screen.filled(said, INDENT)
    cause = (explained.likely or {}).get(card["id"])
    if cause is not None:
        rest = format_bytes(card["accounting"]["unattributed_bytes"])
        lines += screen.filled(f"unattributed {'up to ' if _is_bounded(card) else ''}{rest}: {cause}", INDENT)
    most = MOST_ROWS if len(explained.cards) <= _FEW_CARDS else MOST_ROWS_OF_MANY
    return lines + _processes(explained, card, most, _where(explained, card, replay), screen)


def _is_bounded(card: Adapter) -> bool:
    unmeasured, unreadable = card["accounting"]["unmeasured_processes"], card["unreadable_pids"]
    return (unmeasured is not None and unmeasured > 0) or (unreadable is not None and unreadable > 0)


def _of_process(explained: Explained, screen: Screen) -> list[str]:
    pid = explained.document["subject"]["pid"]
    rows = [row for row in explained.snapshot["processes"] or () if row["pid"] == pid]
    return process_lines(explained.snapshot, explained.document, rows, screen, explained.aside)


def _processes(explained: Explained, card: Adapter, most: int, where: str, screen: Screen) -> list[str]:
    """The biggest ones of a card, and how to see the others."""
    rows = rows_of(explained.snapshot, card["id"])
    if not rows:
        return []
    held = [held_bytes(card, row) for row in rows[:most]]
    unit = pick_unit(held)
    cells = [
        [str(row["pid"]), row["user"] or "-", format_bytes(size, unit), program(row) or "-", row["role"] or "-"]
        for row, size in zip(rows, held, strict=False)
    ]
    lines = screen.whole_table(_HEADER, cells, "rlrll", wrap=[3, 4], indent=INDENT)
    if len(rows) > most:
        lines += screen.filled(f"and {len(rows) - most} more: gpusnap ps {where}", INDENT)
    return lines


def _where(explained: Explained, card: Adapter, replay: str | None) -> str:
    """`--adapter 3`, by its id where the number is not its own; the file or folder that it was read from."""
    alike = [row for row in explained.snapshot["adapters"] if row["index"] == card["index"]]
    name = card["id"] if card["index"] is None or len(alike) > 1 else card["index"]
    source = explained.document["subject"]["source"]
    if source is not None:
        return f"--from {quote(source)} --adapter {name}"
    return f"--adapter {name}" if replay is None else f"--replay {quote(replay)} --adapter {name}"


def finding_lines(finding: Finding, screen: Screen) -> list[str]:
    """`! code  title`, then evidence and advice below the title; in a narrow terminal the code stands alone."""
    code, head = finding["code"], screen.text(f"  {_MARKS[finding['severity']]} {finding['code']}")
    is_narrow = screen.width is not None and screen.width < _NARROW
    indent = " " * (4 if is_narrow else 4 + _CODE_WIDTH + 1)
    if is_narrow or len(code) > _CODE_WIDTH:
        lines = [*screen.filled(head.strip(), indent, first="  "), *screen.filled(finding["title"], indent)]
    else:
        lines = screen.filled(finding["title"], indent, first=f"{head:<{len(indent)}}")
    lines[0] = screen.painted(lines[0], _COLOURS[finding["severity"]])
    for said in finding["evidence"]:
        lines += screen.filled(said, indent)
    for said in finding["advice"]:
        lines += screen.filled(said, indent + "  ", first=indent + "→ ")
    return lines


def source_lines(figures: list[Figure], screen: Screen) -> list[str]:
    """The six layers, each with the figures that rest on it."""
    lines = screen.filled("Where the numbers come from, the surest first:")
    for number, (title, own) in enumerate(by_layer(figures), start=1):
        lines += screen.filled(title, "     ", first=f"  {number}  ")
        lines += _figure_table(own, screen)
    unknown = within_reach(figures)
    if unknown:
        said = "not known here, but to somebody with more rights, at another moment or with an option:"
        lines += [*screen.filled(said, "  "), *_figure_table(unknown, screen)]
    return lines


def _figure_table(figures: list[Figure], screen: Screen) -> list[str]:
    cells = [[figure["field"], shown(figure), figure["says"]] for figure in figures]
    return screen.whole_table(["figure", "value", "source"], cells, "lrl", wrap=[0, 2], indent="     ")


def shown(figure: Figure) -> str:
    """A figure with its unit; what is not known is `-`, never 0."""
    value = figure["value"]
    if value is None:
        return "-"
    if figure["unit"] == "bytes" and isinstance(value, int):
        return format_bytes(value)
    units = {"percent": " %", "celsius": " °C", "watts": " W", "joules": " J", "mhz": " MHz", "tokens": " tokens"}
    number = f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
    return number + units.get(figure["unit"], "")
