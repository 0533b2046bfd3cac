"""The Theil-Sen slope: the exact median of the slopes of all pairs of points, in bounded memory.

Two thousand points have two million pairs, 60 MB of Python floats. So the median is bracketed by counting: the
pairs with a slope of at most `s` are those that `y - s * x` puts in the other order, and a sorted list counts
them in n log n. Once few pairs are left inside the bracket these alone are looked at.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from math import inf, nextafter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ENOUGH_PAIRS = 4096


def theil_sen(points: Sequence[tuple[float, float]]) -> float | None:
    """Median slope of all pairs with different x; None where there is none. `points` need no order."""
    points = sorted(points)
    pairs = _pairs(points)
    if pairs == 0:
        return None
    lower = _kth(points, (pairs - 1) // 2, pairs)
    return lower if pairs % 2 else (lower + _kth(points, pairs // 2, pairs)) / 2


def _kth(points: Sequence[tuple[float, float]], rank: int, pairs: int) -> float:
    """The slope with `rank` slopes before it."""
    low, high = _bounds(points)
    low = nextafter(low, -inf)
    below, upto_high = 0, pairs
    while upto_high - below > ENOUGH_PAIRS:
        split = low + (high - low) / 2
        if not low < split < high:
            return high  # all that is left inside is this one number, as on a level series
        upto = _count(points, split)
        if upto <= rank:
            low, below = split, upto
        else:
            high, upto_high = split, upto
    slopes = sorted(_between(points, low, high))
    # Counting and dividing round differently: a pair on the bracket's edge may fall on its other side.
    return slopes[min(max(0, rank - below), len(slopes) - 1)] if slopes else high


def monotony(values: Sequence[float]) -> float:
    """Goodman and Kruskal's gamma over time: 1 never down, -1 never up, 0 neither. Equal pairs do not count."""
    seen: list[float] = []
    up = down = 0
    for value in values:
        left = bisect_left(seen, value)
        up += left
        down += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    return (up - down) / (up + down) if up + down else 0.0


def _pairs(points: Sequence[tuple[float, float]]) -> int:
    """Pairs whose x differ; points are sorted."""
    total, run = 0, 0
    for position, (x, _) in enumerate(points):
        run = run + 1 if position and x == points[position - 1][0] else 0
        total += position - run
    return total


def _bounds(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """All slopes lie between the steepest and the flattest of neighbouring points (sorted by x)."""
    steps = _neighbour_slopes(points)
    return min(steps), max(steps)


def _neighbour_slopes(points: Sequence[tuple[float, float]]) -> list[float]:
    columns: dict[float, list[float]] = {}
    for x, y in points:
        columns.setdefault(x, []).append(y)
    xs = sorted(columns)
    slopes = []
    for left, right in itertools.pairwise(xs):
        width = right - left
        slopes.append((max(columns[right]) - min(columns[left])) / width)
        slopes.append((min(columns[right]) - max(columns[left])) / width)
    return slopes


def _count(points: Sequence[tuple[float, float]], slope: float) -> int:
    """Pairs with different x and a slope of at most `slope`."""
    seen: list[float] = []
    total, position = 0, 0
    while position < len(points):
        x = points[position][0]
        column = []
        while position < len(points) and points[position][0] == x:
            column.append(points[position][1] - slope * x)
            position += 1
        for rest in column:
            total += len(seen) - bisect_left(seen, rest)
        for rest in column:
            insort(seen, rest)
    return total


def _between(points: Sequence[tuple[float, float]], low: float, high: float) -> list[float]:
    """Slopes above `low` and up to `high`."""
    found = []
    for position, (x, y) in enumerate(points):
        for other_x, other_y in points[position + 1 :]:
            if other_x != x:
                slope = (other_y - y) / (other_x - x)
                if low < slope <= high:
                    found.append(slope)
    return found
