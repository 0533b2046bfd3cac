"""Sizes and durations for people: the only place that writes or parses them.

The document holds plain bytes and seconds; people see MiB and GiB (binary units, one decimal for GiB and
above) and read one unit a column, so `pick_unit` chooses for a whole column or sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
BINARY_UNITS = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1))
_DIVISOR = dict(BINARY_UNITS)
_PARSED_UNITS = {
    "": 1,
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_PARSED_SECONDS = {
    "ms": (1, 1000),
    "": (1, 1),
    "s": (1, 1),
    "m": (60, 1),
    "min": (60, 1),
    "h": (3600, 1),
    "d": (86400, 1),
}
# No integer of the document passes 2^53: JavaScript and jq round above it.
MAX_INTEGER = 1 << 53
# A hundred years: what is longer is a slip, and the system's own clocks and sleeps end at some such number.
_MAX_MILLISECONDS = 100 * 365 * 86400 * 1000

NOT_MEASURED = "-"


def pick_unit(counts: Iterable[int | None]) -> str:
    """The unit in which the largest of these is at least 1; nulls don't count, nothing at all is bytes.

    TiB are not picked: people compare cards in GiB, whatever their sum.
    """
    largest = max((abs(count) for count in counts if count is not None), default=0)
    for unit, divisor in BINARY_UNITS[1:]:
        # 1023.96 MiB would read "1024 MiB".
        if largest >= divisor - divisor // 2048:
            return unit
    return "B"


def decimals_of(unit: str) -> int:
    return 1 if unit in ("GiB", "TiB") else 0


def format_number(count: int, unit: str) -> str:
    """The number alone: 9663676416, GiB -> `9.0`; a measured zero is `0`, a trace of something never is.

    What would round to zero is written `<0.1`, so that text never shows 0 for what is not 0.
    """
    if count == 0:
        return "0"
    decimals = decimals_of(unit)
    shown = f"{abs(count) / _DIVISOR[unit]:,.{decimals}f}"
    sign = "-" if count < 0 else ""
    if float(shown.replace(",", "")) == 0:
        return f"{sign}<{10**-decimals:.{decimals}f}"
    return sign + shown


def apportion(counts: Sequence[int], total: int | None, unit: str) -> list[str]:
    """Each count as a number in the unit, rounded so that the figures add up to the rounded total.

    The largest remainders are rounded up (Hamilton's method). Counts that don't sum up to the total are each
    rounded on their own.
    """
    step = {"GiB": GIB / 10, "MiB": MIB}.get(unit)
    if step is None or total is None or sum(counts) != total:
        return [format_number(count, unit) for count in counts]
    steps = [int(count / step) for count in counts]
    missing = round(total / step) - sum(steps)
    by_rest = sorted(range(len(counts)), key=lambda index: steps[index] - counts[index] / step)
    for index in by_rest[: max(0, missing)]:
        steps[index] += 1
    return [
        (f"{number / 10:,.1f}" if unit == "GiB" else f"{number:,}") if number else trace(count, unit)
        for number, count in zip(steps, counts, strict=True)
    ]


def trace(count: int, unit: str) -> str:
    """What a sum left no digit for: `0`, or `<0.1` for what is not 0."""
    decimals = decimals_of(unit)
    return "0" if count == 0 else f"<{10**-decimals:.{decimals}f}"


def format_bytes(count: int | None, unit: str | None = None) -> str:
    """9663676416 -> `9.0 GiB`, 0 -> `0 B`; None -> `-`, which is never 0."""
    if count is None:
        return NOT_MEASURED
    unit = unit or pick_unit((count,))
    return f"{format_number(count, unit)} {unit}"


def format_delta(delta: int | None, unit: str | None = None) -> str:
    """A signed change: `+9.0 GiB`, `-256 MiB`, plain `0`; None -> `-`."""
    if delta is None:
        return NOT_MEASURED
    if delta == 0:
        return "0"
    return ("+" if delta > 0 else "") + format_bytes(delta, unit)


def format_pair_in_one_unit(before: int | None, after: int | None) -> str:
    """`2.5 → 11.6 GiB`; a side that was not measured is `unknown`: `0.7 GiB → unknown`.

    Two different figures that would read the same in GiB are told in MiB.
    """
    unit = pick_unit((before, after))
    if before is not None and after is not None and MIB <= abs(after - before) < GIB // 10:
        unit = "MiB" if unit == "GiB" else unit
    if before is None and after is None:
        return "unknown"
    if before is None:
        return f"unknown → {format_bytes(after, unit)}"
    if after is None:
        return f"{format_bytes(before, unit)} → unknown"
    return f"{format_number(before, unit)} → {format_number(after, unit)} {unit}"


def format_of_total(used: int | None, total: int | None) -> str:
    """`15.6 of 16.0 GiB`, both in the unit of the total."""
    if total is None:
        return format_bytes(used)
    unit = pick_unit((total,))
    return f"{NOT_MEASURED if used is None else format_number(used, unit)} of {format_number(total, unit)} {unit}"


def format_duration(seconds: float | None) -> str:
    """Two parts for a sentence: `4 min 10 s`, `8 h 00 min`, `2 d 4 h`, `0.25 s`; None -> `-`."""
    if seconds is None:
        return NOT_MEASURED
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 10 and seconds != int(seconds):
        shown = f"{seconds:.2f}".rstrip("0").rstrip(".")
        return f"{shown} s" if shown != "0" else "under 0.01 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def format_age(seconds: float | None) -> str:
    """The same for a column: `42s`, `12m`, `3h12m`, `2d04h`; None -> `-`."""
    if seconds is None or seconds < 0:
        return NOT_MEASURED
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def parse_size(text: str) -> int:
    """`256MiB`, `1.5GiB`, `1GB`, `4096` -> bytes; ValueError says what was expected.

    `16G` is refused: half of the tools mean 10^9 by it and half mean 2^30.
    """
    number, unit = _split(text)
    divisor = _PARSED_UNITS.get(unit.lower())
    if divisor is None or (not unit and "." in number):
        raise ValueError(f"{text!r} is not a size: expected plain bytes or 256MiB, 1.5GiB, 1GB")
    return _exact(text, number, divisor, 1, "a size: expected plain bytes or 256MiB, 1.5GiB, 1GB")


def parse_duration(text: str) -> float:
    """`50ms`, `10s`, `5m`, `8h`, `2d` or plain seconds -> seconds; ValueError says what was expected."""
    number, unit = _split(text)
    scale = _PARSED_SECONDS.get(unit.lower())
    expected = "a duration: expected seconds or 50ms, 10s, 5m, 8h"
    if scale is None:
        raise ValueError(f"{text!r} is not {expected}")
    # In whole milliseconds, so that 0.1 s and 100 ms are the same number.
    milliseconds = _exact(text, number, scale[0] * 1000, scale[1], expected)
    if milliseconds > _MAX_MILLISECONDS:
        raise ValueError(f"{text!r} is too large")
    return milliseconds / 1000


def _split(text: str) -> tuple[str, str]:
    """`"1.5 GiB"` -> `("1.5", "GiB")`; only ASCII digits and one point count as a number."""
    stripped = text.strip()
    end = 0
    while end < len(stripped) and stripped[end] in "0123456789.":
        end += 1
    return stripped[:end], stripped[end:].strip()


def _exact(text: str, number: str, factor: int, divisor: int, expected: str) -> int:
    """number × factor / divisor, rounded half up, without the detour over floats that loses bytes."""
    whole, point, fraction = number.partition(".")
    if not number or number == "." or "." in fraction or (point and not (whole and fraction)) or len(number) > 40:
        raise ValueError(f"{text!r} is not {expected}")
    scale: int = 10 ** len(fraction)
    count = (2 * int(whole + fraction) * factor + scale * divisor) // (2 * scale * divisor)
    if count > MAX_INTEGER:
        raise ValueError(f"{text!r} is too large")
    return count
