"""An explanation for people: the answer, the account of each card, findings, where the numbers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.rows import held_bytes, program, rows_of
from gpusnap.explain.sources import by_layer, within_reach
from gpusnap.render.card import card_lines
from gpusnap.render.explain_process import process_lines
from gpusnap.render.explain_recording import recording_lines
from gpusnap.render.table import render_table
from gpusnap.render.units import format_bytes, pick_unit
from gpusnap.render.wrapped import filled

if TYPE_CHECKING:
    from gpusnap.explain.explanation import Explained
    from gpusnap.model import Adapter, Figure, Finding, Snapshot

MOST_ROWS = 10
_MARKS = {"critical": "‼", "warning": "!", "notice": "·", "info": "i"}
_COLOURS = {"critical": "1;31", "warning": "33", "notice": "36", "info": "2"}
_CODE_WIDTH = 16


def explain_lines(
    explained: Explained, *, width: int | None, sources: bool = False, colour: bool = False, command: str = ""
) -> list[str]:
    """Text; `width` None (a pipe) leaves every sentence on one line."""
    document = explained.document
    lines = [*filled(document["answer"], width, ""), ""]
    if explained.history is not None:
        lines += [*recording_lines(explained, width), ""]
    elif document["subject"]["kind"] == "process":
        lines += [*_of_process(explained), ""]
    else:
        for card in explained.cards:
            lines += card_lines(explained.snapshot, card, width, colour=colour)
            cause = (explained.likely or {}).get(card["id"])
            if cause is not None:
                rest = format_bytes(card["accounting"]["unattributed_bytes"])
                lines += filled(
                    f"unattributed {'up to ' if _is_bounded(card) else ''}{rest}: {cause}", width, " " * 7
                )
            lines += _processes(explained.snapshot, card, width, full=len(explained.cards) <= 2)
            lines.append("")
    for finding in document["findings"]:
        lines += finding_lines(finding, width, colour=colour)
    if document["findings"]:
        lines.append("")
    if sources:
        lines += source_lines(document["figures"], width)
    else:
        lines.append(f"Where each number comes from: gpusnap explain {command}{' ' if command else ''}--sources")
    return lines


def _is_bounded(card: Adapter) -> bool:
    unmeasured, unreadable = card["accounting"]["unmeasured_processes"], card["unreadable_pids"]
    return (unmeasured is not None and unmeasured > 0) or (unreadable is not None and unreadable > 0)


def _of_process(explained: Explained) -> list[str]:
    pid = explained.document["subject"]["pid"]
    rows = [row for row in explained.snapshot["processes"] or () if row["pid"] == pid]
    return process_lines(explained.snapshot, explained.document, rows, explained.aside)


def _processes(snapshot: Snapshot, card: Adapter, width: int | None, *, full: bool) -> list[str]:
    rows = rows_of(snapshot, card["id"])
    if not full or not rows:
        return []
    held = [held_bytes(card, row) for row in rows[:MOST_ROWS]]
    unit = pick_unit(held)
    cells = [
        [str(row["pid"]), row["user"] or "-", format_bytes(size, unit), program(row) or "-", row["role"] or "-"]
        for row, size in zip(rows, held, strict=False)
    ]
    lines = render_table(
        ["PID", "USER", "HOLDS", "PROGRAM", "ROLE"], cells, "rlrll", width=width, flex=4, indent="       "
    )
    if len(rows) > MOST_ROWS:
        lines.append(f"       and {len(rows) - MOST_ROWS} more: gpusnap ps")
    return lines


def finding_lines(finding: Finding, width: int | None, *, colour: bool = False) -> list[str]:
    """`! code  title`, then evidence and advice below the title."""
    mark = _MARKS[finding["severity"]]
    code = finding["code"]
    head = f"  {mark} {code:<{_CODE_WIDTH}} "
    indent = " " * (4 + _CODE_WIDTH + 1)
    if len(code) > _CODE_WIDTH:
        lines = [f"  {mark} {code}", *filled(finding["title"], width, indent)]
    else:
        title = filled(finding["title"], width, indent)
        lines = [head + title[0].lstrip(), *title[1:]]
    if colour:
        lines[0] = f"\x1b[{_COLOURS[finding['severity']]}m{lines[0]}\x1b[0m"
    for said in finding["evidence"]:
        lines += filled(said, width, indent)
    for said in finding["advice"]:
        lines += filled(said, width, indent + "  ", first=indent + "→ ")
    return lines


def source_lines(figures: list[Figure], width: int | None) -> list[str]:
    """The six layers, each with the figures that rest on it."""
    lines = ["Where the numbers come from, the surest first:"]
    for number, (title, own) in enumerate(by_layer(figures), start=1):
        lines += filled(title, width, "     ", first=f"  {number}  ")
        lines += _figure_table(own, width)
    unknown = within_reach(figures)
    if unknown:
        lines.append("  not known here, but to somebody with more rights, at another moment or with an option:")
        lines += _figure_table(unknown, width)
    return lines


def _figure_table(figures: list[Figure], width: int | None) -> list[str]:
    cells = [[figure["field"], shown(figure), figure["says"]] for figure in figures]
    return render_table(["figure", "value", "source"], cells, "lrl", width=width, flex=2, indent="     ")


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
