"""Where text goes: how wide it is, in colour or not, which signs it can show.

Everything that people read passes here before it is laid out: control characters of foreign documents are
escaped, signs that the stream can't carry are written in ASCII, and then sentences and tables are fitted to the
width. `width` None (a pipe) leaves every sentence and row on one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.signs import SEPARATOR, in_signs_of
from gpusnap.render.table import MIN_FLEX_WIDTH, one_line, render_table, render_whole_table
from gpusnap.render.wrapped import filled

if TYPE_CHECKING:
    from collections.abc import Sequence


class Screen:
    __slots__ = ("colour", "encoding", "width")

    def __init__(self, width: int | None = None, *, colour: bool = False, encoding: str = "utf-8") -> None:
        self.width = width
        self.colour = colour
        self.encoding = encoding

    def text(self, words: str) -> str:
        """One line in signs that can be shown."""
        return in_signs_of(self.encoding, one_line(words))

    def filled(self, words: str, indent: str = "", *, first: str | None = None) -> list[str]:
        """A sentence in as many lines as it needs; `first` is the first line's own indent."""
        start = self.text(indent if first is None else first)
        return filled(self.text(words), self.width, indent, first=start, separator=self.text(SEPARATOR))

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        align: str,
        *,
        flex: Sequence[int] = (),
        least: int = MIN_FLEX_WIDTH,
        drop: Sequence[int] = (),
        indent: str = "",
    ) -> list[str]:
        """One line a row; what does not fit is cut or left out, and that is said."""
        cells = [[self.text(cell) for cell in row] for row in rows]
        return render_table(
            header, cells, align, width=self.width, flex=flex, least=least, drop=drop, indent=indent
        )

    def whole_table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        align: str,
        *,
        wrap: Sequence[int] = (),
        indent: str = "",
    ) -> list[str]:
        """Nothing is cut: cells are wrapped, and where that is not enough each row is a paragraph."""
        cells = [[self.text(cell) for cell in row] for row in rows]
        return render_whole_table(header, cells, align, width=self.width, wrap=wrap, indent=indent)

    def painted(self, line: str, code: str) -> str:
        return f"\x1b[{code}m{line}\x1b[0m" if self.colour else line
