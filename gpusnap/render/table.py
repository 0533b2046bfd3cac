"""Tables for people: aligned columns fitted to a width; and the same as Markdown.

`tabulate` lays out (it knows East Asian width through `wcwidth`); what gives way in a narrow terminal is decided
here. A list (`ps`) keeps one line a row: cells are cut, then columns left out, which is said. What explains loses
nothing: cells are wrapped, and where that is not enough each row is a paragraph of `header value` pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.columns import display_width, truncate
from gpusnap.render.wrapped import filled, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_FLEX_WIDTH = 8
MIN_WRAP_WIDTH = 8
SEPARATOR_WIDTH = 2
MAX_LINE = 1 << 20
_ALIGN = {"l": "left", "r": "right", "c": "center"}


def render_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: str,
    *,
    width: int | None = None,
    flex: Sequence[int] = (),
    least: int = MIN_FLEX_WIDTH,
    drop: Sequence[int] = (),
    indent: str = "",
) -> list[str]:
    """One line a row; `align` has one of `lrc` a column.

    Columns of `flex` are cut in that order, down to `least`; where that is not enough those of `drop` are left
    out, which the last line says; what still overflows is cut at the end of the line.
    """
    if not rows:
        return []
    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    if width is None:
        return _laid_out(cells, align, indent)
    room = width - len(indent)
    kept = list(range(len(header)))
    for column in (*drop, None):
        if column is None or _least_width(cells, kept, flex, least) <= room:
            break
        kept.remove(column)
    for column in flex:
        if column in kept:
            _cut(cells, kept, column, room, least)
    lines = _laid_out([[row[column] for column in kept] for row in cells], "".join(align[i] for i in kept), indent)
    lines = [truncate(line, width) for line in lines]
    left_out = [header[column] for column in range(len(header)) if column not in kept]
    if left_out:
        lines += filled(f"not shown in {width} columns: {', '.join(left_out)}", width, indent)
    return lines


def render_whole_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: str,
    *,
    width: int | None = None,
    wrap: Sequence[int] = (),
    indent: str = "",
) -> list[str]:
    """Cells of the columns `wrap` take several lines where the table is too wide; no character is lost."""
    if not rows:
        return []
    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    if width is None or _wrap(cells, wrap, width - len(indent)):
        return _laid_out(cells, align, indent)
    return _paragraphs(header, rows, width, indent)


def fits(rows: Sequence[Sequence[str]], wrap: Sequence[int], width: int | None, indent: str) -> bool:
    """Whether a whole table of these rows would be one, and no paragraphs."""
    return width is None or _wrap([list(row) for row in rows], wrap, width - len(indent))


def _laid_out(cells: Sequence[Sequence[str]], align: str, indent: str) -> list[str]:
    from tabulate import tabulate

    # The header goes in as a row: tabulate pads its own headers by two columns that nobody asked for.
    text = tabulate(cells, tablefmt="plain", colalign=[_ALIGN[letter] for letter in align], disable_numparse=True)
    return [(indent + line).rstrip() for line in text.splitlines()]


def _widths(cells: Sequence[Sequence[str]], columns: Sequence[int]) -> list[int]:
    return [max(display_width(row[column]) for row in cells) for column in columns]


def _least_width(cells: Sequence[Sequence[str]], kept: Sequence[int], flex: Sequence[int], least: int) -> int:
    widths = _widths(cells, kept)
    narrow = [min(size, least) if column in flex else size for column, size in zip(kept, widths, strict=True)]
    return sum(narrow) + SEPARATOR_WIDTH * (len(kept) - 1)


def _cut(cells: list[list[str]], kept: Sequence[int], column: int, room: int, least: int) -> None:
    """Cut the column as far as the table overflows, but not below `least` columns."""
    widths = _widths(cells, kept)
    overflow = sum(widths) + SEPARATOR_WIDTH * (len(kept) - 1) - room
    if overflow > 0:
        size = max(least, widths[list(kept).index(column)] - overflow)
        for row in cells:
            row[column] = truncate(row[column], size)


def _wrap(cells: list[list[str]], wrap: Sequence[int], room: int) -> bool:
    """Break cells so that the table fits; the widest of the columns gives way first. False where it can't fit."""
    widths = _widths(cells, range(len(cells[0])))
    overflow = sum(widths) + SEPARATOR_WIDTH * (len(widths) - 1) - room
    while overflow > 0:
        open_columns = [column for column in wrap if widths[column] > MIN_WRAP_WIDTH]
        if not open_columns:
            return False
        widest = max(open_columns, key=lambda column: widths[column])
        second = max([widths[column] for column in open_columns if column != widest], default=MIN_WRAP_WIDTH)
        step = min(overflow, max(1, widths[widest] - max(second, MIN_WRAP_WIDTH)))
        widths[widest] -= step
        overflow -= step
    for row in cells:
        for column in wrap:
            if display_width(row[column]) > widths[column]:
                row[column] = "\n".join(wrapped(row[column], widths[column]))
    return True


def _paragraphs(header: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: str) -> list[str]:
    """`pid 882 · program ollama · first 0.9 GiB`: a row over several lines, each pair whole where it fits."""
    lines: list[str] = []
    for row in rows:
        pairs = [f"{name.lower()} {one_line(cell)}" for name, cell in zip(header, row, strict=True) if cell]
        lines += filled(" · ".join(pairs), width, indent + "  ", first=indent)
    return lines


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
