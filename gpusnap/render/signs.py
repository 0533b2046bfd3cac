"""Text in the signs that a stream can carry: where it has no `→` or `█`, ASCII says the same.

A name that an encoding has no letters for is escaped, not replaced: two names that differ stay different.
"""

from __future__ import annotations

import codecs

# One letter for one, so that what was laid out keeps its columns.
_LETTERS = {"·": ".", "×": "x", "…": "~", "–": "-", "—": "-", "µ": "u"}
_BLOCKS = dict(zip("▁▂▃▄▅▆▇█▓▒░", "_,-~=+*#%=-", strict=True))
# Longer than what they stand for: to be changed before text is laid out.
_WORDS = {"→": "->", "‼": "!!", "≤": "<=", "≥": ">=", "└": "`-", "°C": "C", "°": ""}
SEPARATOR = " · "
_ASCII_SEPARATOR = " | "


def carries_all(encoding: str) -> bool:
    """UTF-8 and its kin: nothing has to be changed."""
    try:
        return codecs.lookup(encoding).name.startswith("utf")
    except LookupError:
        return False


def in_signs_of(encoding: str, text: str) -> str:
    """The text as far as the encoding goes; `█▓▒░·` becomes `#%=-.`, ` · ` becomes ` | `."""
    if text.isascii() or carries_all(encoding):
        return text
    if not _carries(encoding, SEPARATOR):
        if text.lstrip().startswith("· "):  # the mark of a notice
            text = text.replace("· ", "* ", 1)
        text = text.replace(SEPARATOR, _ASCII_SEPARATOR)
    # A curve half of blocks and half of letters says nothing.
    blocks = {} if _carries(encoding, "".join(_BLOCKS)) else _BLOCKS
    for sign, words in (*_WORDS.items(), *_LETTERS.items(), *blocks.items()):
        if sign in text and (sign in blocks or not _carries(encoding, sign)):
            text = text.replace(sign, words)
    return text if _carries(encoding, text) else _escaped(encoding, text)


def _carries(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _escaped(encoding: str, text: str) -> str:
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")
