"""Sentences broken to the terminal's width, counted in its columns; into a pipe each stays on one line."""

from __future__ import annotations

from gpusnap.render.columns import display_width, head_of

# Where less than this is left of a line, its indent gives way.
_LEAST_ROOM = 20
_NARROW_INDENT = 2


def filled(
    text: str, width: int | None, indent: str, *, first: str | None = None, separator: str = " · "
) -> list[str]:
    """`first` is the first line's own indent. Parts that ` · ` separates stay whole as far as they fit."""
    start = indent if first is None else first
    own = text[: len(text) - len(text.lstrip(" "))]
    text, start, indent = text[len(own) :], start + own, indent + own
    if width is None or display_width(start + text) <= width:
        return [(start + text).rstrip()]
    if width - display_width(indent) < _LEAST_ROOM:
        indent = indent[:_NARROW_INDENT]
    if width - display_width(start) < _LEAST_ROOM:
        start = start.lstrip() if start.strip() else indent
    if width - display_width(start) < 1:
        start = indent = ""
    return _broken(_pieces(text, separator, width - display_width(indent)), width, start, indent)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; a word that is longer is broken."""
    return filled(text, width, "") if width >= _LEAST_ROOM else _broken(text.split(), width, "", "")


def _pieces(text: str, separator: str, room: int) -> list[str]:
    """What a line may end behind: a part with its separator, or where that is too long its words."""
    parts = text.split(separator)
    mark = separator.rstrip()
    pieces = [part + mark for part in parts[:-1]] + parts[-1:]
    found: list[str] = []
    for piece in pieces:
        if len(pieces) > 1 and display_width(piece) <= room:
            found.append(piece)
            continue
        words = piece.split()
        if len(words) > 1 and words[-1] == mark.strip():
            words[-2:] = [f"{words[-2]} {words[-1]}"]  # no line begins with a separator
        found += words
    return found


def _broken(pieces: list[str], width: int, start: str, indent: str) -> list[str]:
    lines: list[str] = []
    line, used, is_empty = start, display_width(start), True
    for piece in pieces:
        size = display_width(piece)
        if not is_empty and used + 1 + size > width:
            lines.append(line)
            line, used, is_empty = indent, display_width(indent), True
        while is_empty and used + size > width and size > 1:
            head = _breakable(piece, max(1, width - used))
            lines.append(line + head)
            piece = piece[len(head) :]
            line, used, size = indent, display_width(indent), display_width(piece)
        line = line + piece if is_empty else f"{line} {piece}"
        used, is_empty = used + size + (0 if is_empty else 1), False
    lines.append(line)
    return [line.rstrip() for line in lines]


def _breakable(word: str, width: int) -> str:
    """The beginning of a word that is too long, up to a `/` or `-` where one is near its end."""
    head = head_of(word, width)
    end = max(head.rfind(sign) for sign in "/-_") + 1
    return head[:end] if 2 * end >= len(head) else head
