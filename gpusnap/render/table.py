"""Tables for people: aligned columns, cut to a width, never wrapped; and the same as Markdown.

`tabulate` lays out (it knows East Asian width through `wcwidth`); what must give way when the terminal is
narrow is decided here: the one flexible column first, then the end of the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_FLEX_WIDTH = 8
SEPARATOR_WIDTH = 2
MAX_LINE = 1 << 20
_ALIGN = {"l": "left", "r": "right", "c": "center"}


def display_width(text: str) -> int:
    """Columns that the text takes in a terminal: `日本` is 4, a combining mark is 0."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    width = wcswidth(text)
    return len(text) if width < 0 else width


def truncate(text: str, width: int) -> str:
    """The text in at most `width` columns; what was cut ends in `…`."""
    if display_width(text) <= width:
        return text
    if width <= 0:
        return ""
    if text.isascii():
        return text[: width - 1] + "…"
    from wcwidth import wcwidth

    taken, used = [], 0
    for char in text:
        used += max(0, wcwidth(char))
        if used > width - 1:
            break
        taken.append(char)
    return "".join(taken) + "…"


def render_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: str,
    *,
    width: int | None = None,
    flex: int | None = None,
    least: int = MIN_FLEX_WIDTH,
    indent: str = "",
) -> list[str]:
    """Lines of a table; `align` has one of `lrc` a column, `flex` is the column cut first, down to `least`.

    What still overflows is cut at the end of the line.
    """
    if not rows:
        return []
    from tabulate import tabulate

    cells: list[list[str]] = [[one_line(cell) for cell in row] for row in (header, *rows)]
    if width is not None and flex is not None:
        _shrink(cells, flex, width - len(indent), least)
    # The header goes in as a row: tabulate pads its own headers by two columns that nobody asked for.
    text = tabulate(
        cells,
        tablefmt="plain",
        colalign=[_ALIGN[letter] for letter in align],
        disable_numparse=True,
    )
    lines = [(indent + line).rstrip() for line in text.splitlines()]
    return lines if width is None else [truncate(line, width) for line in lines]


def render_markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """A pipe table for a ticket; `|`, backslashes and `<` of a cell are escaped, so that no cell breaks out."""
    from tabulate import tabulate

    if not rows:
        return []
    text = tabulate(
        [[escape_markdown(cell) for cell in row] for row in rows],
        headers=[escape_markdown(cell) for cell in header],
        tablefmt="pipe",
        colalign=[_ALIGN[letter] for letter in align],
        disable_numparse=True,
    )
    return text.splitlines()


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: a program may be called `**` or `<img src=x>`."""
    escaped = one_line(text)
    for char in "\\`*_|[]<>#~":
        escaped = escaped.replace(char, "\\" + char)
    return escaped


def one_line(cell: str) -> str:
    """Text of the document was cleaned when it was taken; a foreign document may still hold control characters."""
    if cell.isprintable():
        return cell
    from gpusnap.text import clean

    return clean(cell, MAX_LINE)


def _shrink(cells: list[list[str]], flex: int, width: int, least: int) -> None:
    """Cut the flexible column as far as the table overflows, but not below `least` characters."""
    widths = [max(display_width(row[column]) for row in cells) for column in range(len(cells[0]))]
    overflow = sum(widths) + SEPARATOR_WIDTH * (len(widths) - 1) - width
    if overflow <= 0:
        return
    room = max(least, widths[flex] - overflow)
    for row in cells:
        row[flex] = truncate(row[flex], room)
