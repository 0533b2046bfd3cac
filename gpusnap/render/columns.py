"""Columns that text takes in a terminal, and the beginning of a text that fits into some of them."""

from __future__ import annotations


def display_width(text: str) -> int:
    """Columns that the text takes in a terminal: `日本` is 4, a combining mark is 0."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    width = wcswidth(text)
    return len(text) if width < 0 else width


def head_of(text: str, width: int) -> str:
    """As much of its beginning as `width` columns hold, and at least one character."""
    if text.isascii():
        return text[: max(1, width)]
    from wcwidth import wcwidth

    used = 0
    for place, char in enumerate(text):
        used += max(0, wcwidth(char))
        if used > width and place > 0:
            return text[:place]
    return text


def truncate(text: str, width: int) -> str:
    """The text in at most `width` columns; what was cut ends in `…`."""
    if display_width(text) <= width:
        return text
    if width <= 0:
        return ""
    if width == 1:
        return "…"
    head = head_of(text, width - 1)
    return (head if display_width(head) < width else "") + "…"
