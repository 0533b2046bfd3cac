"""One file below /sys as a reading: the number in it, or why there is none.

Kernel attributes end in a newline; a number that lost its own was torn and is no figure.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from gpusnap.reading import Reading, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.host import Tree

# The document holds no integer that JSON readers would round.
MAX_INTEGER = 2**53

# What the kernel's refusals mean on a device attribute.
_REASONS = {
    errno.ENOENT: "not-exposed",
    errno.ENOTDIR: "not-exposed",
    errno.EACCES: "no-permission",
    errno.EPERM: "no-permission",
    errno.EOPNOTSUPP: "not-supported",
    errno.EINVAL: "not-supported",
    524: "not-supported",  # ENOTSUPP, which the kernel must not leak and does
    errno.EBUSY: "device-busy",
    errno.EAGAIN: "device-busy",
    errno.ENODEV: "device-lost",
    errno.ENXIO: "device-lost",
    errno.ETIMEDOUT: "timeout",
}
# Spellings of the kernel where Python has another or none.
_NAMES = {errno.EOPNOTSUPP: "EOPNOTSUPP", 524: "ENOTSUPP"}


def why(error: OSError, source: str, special: Mapping[int, str] | None = None) -> Reading:
    """The null reading for an OSError; `special` overrides what an errno means for one driver."""
    number = error.errno or 0
    reason = (special or {}).get(number) or _REASONS.get(number, "failed")
    if reason == "not-exposed":
        return null(reason, source)
    return null(reason, f"{source}: {_NAMES.get(number) or errno.errorcode.get(number, number)}")


def text(tree: Tree, path: str, limit: int = 4096) -> str | None:
    """The file's text without its newline, cleaned; None where it is missing, unreadable, torn or empty."""
    try:
        raw = tree.read(path, limit)
    except OSError:
        return None
    return (clean(raw.strip(), 256) or None) if raw.endswith(b"\n") else None


def number(
    tree: Tree,
    path: str,
    source: str,
    *,
    scale: float | None = None,
    special: Mapping[int, str] | None = None,
) -> Reading:
    """The decimal number in a file; `scale` multiplies it into the document's unit."""
    try:
        raw = tree.read(path, 64)
    except OSError as error:
        return why(error, source, special)
    value = integer(raw)
    if value is None:
        return unknown_format(source, raw)
    if abs(value) >= MAX_INTEGER:
        return null("out-of-range", f"{source} says {value}"[:80])
    return measured(value if scale is None else tidy(value * scale), source)


def size(tree: Tree, path: str, source: str) -> Reading:
    """A number of bytes: never below 0."""
    reading = number(tree, path, source)
    if isinstance(reading.value, int) and reading.value < 0:
        return null("out-of-range", f"{source} says {reading.value}")
    return reading


def integer(raw: bytes) -> int | None:
    """b"17\\n" -> 17; None for anything that is not one whole line with a decimal number."""
    if not raw.endswith(b"\n"):
        return None
    digits = raw.strip()
    if not digits.removeprefix(b"-").isdigit() or len(digits) > 24:
        return None
    return int(digits)


def tidy(value: float) -> float | int:
    """Millionths and thousandths of a unit without the noise of binary fractions."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def unknown_format(source: str, raw: bytes) -> Reading:
    shown = clean(raw[:40].strip(), 40)
    return null("unknown-format", f"{source}: {shown!r}")


def link_name(tree: Tree, path: str) -> str | None:
    """The last part of a link's target (`driver` -> `amdgpu`); None where there is no such link."""
    try:
        return tree.readlink(path).rsplit("/", 1)[-1]
    except OSError:
        return None
