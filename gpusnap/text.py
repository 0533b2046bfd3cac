"""Cleaning of text that comes from the system: the only place where it happens.

Names, command lines and paths are bytes that others choose. JSON needs valid UTF-8, terminals must not be
driven by control characters, and a 100 kB argument must not make a 100 kB cell. Bytes that are not UTF-8 and
control characters become `\\xNN`; a backslash that was there already and would read as such an escape becomes
`\\x5c`. So two different names stay different after a round trip (psutil#515, and surrogates that `orjson`
refuses).
"""

from __future__ import annotations

MAX_TEXT = 4096


def clean(raw: bytes | str, limit: int = MAX_TEXT) -> str:
    """Valid, printable UTF-8 of at most `limit` characters; longer text ends in `…+N` (characters left out)."""
    if isinstance(raw, str):
        if len(raw) <= limit and "\\" not in raw and raw.isprintable():
            return raw  # nearly every text there is
        raw = raw.encode("utf-8", "surrogateescape" if _has_only_escapes(raw) else "surrogatepass")
    part = raw[: limit * 8]
    text = part.decode("utf-8", "backslashreplace") if b"\\" not in part else _keep_backslashes(part)
    text = printable(text)
    if len(raw) > limit * 8 or len(text) > limit:
        left_out = len(text) - limit + max(0, len(raw) - limit * 8)
        text = f"{text[:limit]}…+{left_out}"
    return text


def printable(text: str) -> str:
    """The text with whatever moves a cursor or hides as `\\xNN`; backslashes that are there stay as they are."""
    return text if text.isprintable() else "".join(map(_printable, text))


def whole_number(text: str) -> int | None:
    """What up to 19 ASCII digits say; None for anything else (`\u00b2` is a digit too, and int() refuses it)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _keep_backslashes(raw: bytes) -> str:
    """Decode text with backslashes of its own: those that look like our escapes are escaped themselves."""
    import re

    marked = re.sub(rb"\\(?=x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", lambda _: b"\\x5c", raw, flags=re.IGNORECASE)
    return marked.decode("utf-8", "backslashreplace")


def _has_only_escapes(text: str) -> bool:
    return all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in text)


def _printable(char: str) -> str:
    """Letters of any script pass; what moves a cursor or hides (Cc, Cf, Zl, Zp, private, unassigned) does not."""
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
