"""A series in one line of text: eight heights, columns by time, a dot where nothing was measured.

Down-sampled by minimum and maximum: where a column saw both ends of a swing, it shows the one that its left
neighbour does not, so that a sawtooth looks like one and no peak hides between two lows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.reservoir import Point

HEIGHTS = "▁▂▃▄▅▆▇█"
NOTHING = "·"
_SWING = 0.3


def sparkline(points: Sequence[Point], start: float, end: float, width: int, *, floor: float, top: float) -> str:
    """`width` characters for `start` to `end`; a point fills its column and those it spans, never a gap."""
    if width <= 0:
        return ""
    low: list[float | None] = [None] * width
    high: list[float | None] = [None] * width
    seconds = max(end - start, 1e-9)
    for point in points:
        first = _column(point.start, start, seconds, width)
        last = _column(point.end, start, seconds, width)
        for column in range(first, last + 1):
            held_low, held_high = low[column], high[column]
            low[column] = point.low if held_low is None else min(held_low, point.low)
            high[column] = point.high if held_high is None else max(held_high, point.high)
    span = top - floor
    drawn, before = [], None
    for least, most in zip(low, high, strict=True):
        if least is None or most is None:
            drawn.append(NOTHING)
            before = None
            continue
        swings = span > 0 and most - least >= _SWING * span
        is_low = swings and (before is None or before - least > most - before)
        before = least if is_low else most
        drawn.append(_height(before, floor, span))
    return "".join(drawn)


def _column(time: float, start: float, seconds: float, width: int) -> int:
    return min(width - 1, max(0, int((time - start) / seconds * width)))


def _height(value: float, floor: float, span: float) -> str:
    if span <= 0:
        return HEIGHTS[0]
    return HEIGHTS[min(len(HEIGHTS) - 1, max(0, int((value - floor) / span * len(HEIGHTS))))]
