"""Axes of a picture: seconds to pixels, bytes to pixels, ticks at round times; escaping of text."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from gpusnap.text import clean
from gpusnap.timefmt import rfc3339

MINUTE, HOUR, DAY = 60, 3600, 86400
_STEPS = (
    1,
    5,
    10,
    30,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    7 * DAY,
)


def text(value: str) -> str:
    """Text of a document inside markup: cleaned of what XML forbids, then escaped."""
    return escape(clean(value))


class Span(NamedTuple):
    """Seconds `start` to `end` over pixels `left` to `right`."""

    start: float
    end: float
    left: float
    right: float

    def x(self, time: float) -> float:
        share = (time - self.start) / (self.end - self.start)
        return self.left + min(1.0, max(0.0, share)) * (self.right - self.left)


class Ticks(NamedTuple):
    time: float
    label: str


def ticks(span: Span, most: int = 9) -> list[Ticks]:
    """Round moments in UTC; the day is said where it changes."""
    seconds = span.end - span.start
    step = next((step for step in _STEPS if seconds / step <= most), 30 * DAY)
    first = -(-span.start // step) * step
    found, day = [], ""
    moment = first
    while moment <= span.end:
        stamp = rfc3339(moment)
        label = stamp[11:19] if step < MINUTE else stamp[11:16] if step < DAY else ""
        if stamp[:10] != day:
            day = stamp[:10]
            label = f"{day} {label}".strip()
        found.append(Ticks(moment, label))
        moment += step
    return found


def number(value: float) -> str:
    """A coordinate in as few characters as a tenth of a pixel needs."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0")
