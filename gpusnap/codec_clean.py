"""Texts of a document that others wrote: what would drive a terminal is escaped before anything shows it.

gpusnap's own documents are clean (`text.py`); a file that somebody sent need not be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gpusnap.text import printable

if TYPE_CHECKING:
    from gpusnap.model import Snapshot

_ESCAPES = (b"\\u", b"\\n", b"\\r", b"\\t", b"\\b", b"\\f")
_ASCII = bytes(range(128))


def with_printable_text(document: Snapshot, data: bytes) -> Snapshot:
    """The document decoded from `data`; it is walked only where those bytes may hold such a character.

    JSON has no other control character of ASCII as it is; of the rest, only what is left without ASCII counts.
    """
    escaped = b"\\" in data and any(escape in data for escape in _ESCAPES)
    raw = b"\x7f" in data or not (data.isascii() or data.translate(None, _ASCII).decode().isprintable())
    return cast("Snapshot", _printable(document)) if escaped or raw else document


def _printable(value: Any) -> object:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return value
