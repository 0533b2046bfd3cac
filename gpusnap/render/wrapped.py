"""Sentences broken to the terminal's width; into a pipe each stays on one line."""

from __future__ import annotations

import textwrap


def filled(text: str, width: int | None, indent: str, *, first: str | None = None) -> list[str]:
    """`first` is the first line's own indent."""
    if width is None or width <= len(indent) + 20:
        return [(first if first is not None else indent) + text]
    return textwrap.wrap(
        text,
        width,
        initial_indent=first if first is not None else indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
