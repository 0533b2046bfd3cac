"""What a series looks like: its noise, its cycles with their minima, jumps and bend. Pure arithmetic on points."""

from __future__ import annotations

import itertools
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.reservoir import Point

# The lower quartile of |difference of two Gaussian samples| is 0.3186 * sqrt(2) of their deviation. The
# quartile, not the median: a series that is at another level at every second sample still has its noise told.
_QUARTILE_TO_SIGMA = 1 / (0.3186 * 2**0.5)


def noise(values: Sequence[float]) -> float:
    """The deviation of neighbouring samples; 0 where a quarter of them do not move at all."""
    steps = sorted(abs(right - left) for left, right in itertools.pairwise(values))
    return steps[len(steps) // 4] * _QUARTILE_TO_SIGMA if steps else 0.0


class Cycles(NamedTuple):
    troughs: list[int]
    peaks: list[int]


def cycles(points: Sequence[Point], swing: float) -> Cycles:
    """Indices of the minima and maxima between which the series turns by at least `swing`.

    The first low counts as a trough once the series has risen from it. The last one counts when the series
    came down to it and stayed for two samples: it may still be falling otherwise.
    """
    troughs: list[int] = []
    peaks: list[int] = []
    low = high = 0
    rising = False
    for index, point in enumerate(points):
        if rising:
            if point.high > points[high].high:
                high = index
            if points[high].high - point.low >= swing:
                peaks.append(high)
                rising, low = False, index
        if not rising:
            if point.low < points[low].low:
                low = index
            if point.high - points[low].low >= swing and index > low:
                troughs.append(low)
                rising, high = True, index
    if not rising and peaks and len(points) - low >= 2 and points[-1].low - points[low].low < swing / 2:
        troughs.append(low)
    return Cycles(troughs, peaks)


def jumps(values: Sequence[float], smallest: float) -> list[int]:
    """Indices at which the value is at least `smallest` above the one before."""
    return [index for index in range(1, len(values)) if values[index] - values[index - 1] >= smallest]


def level(values: Sequence[float]) -> float:
    return median(values)


def head_and_tail(values: Sequence[float]) -> tuple[float, float]:
    """The levels of the first and the last tenth (at least three values each)."""
    width = max(3, len(values) // 10)
    return level(values[:width]), level(values[-width:])


def hinge(points: Sequence[tuple[float, float]]) -> int:
    """Where a flat series begins to rise: the index that fits "level, then a line" the best (0: at once)."""
    best, best_error = 0, float("inf")
    count = len(points)
    step = max(1, count // 128)
    for split in range(0, count - 2, step):
        error = _hinge_error(points, split)
        if error < best_error * (1 - 1e-9):
            best, best_error = split, error
    return best


def _hinge_error(points: Sequence[tuple[float, float]], split: int) -> float:
    """Squared error of y = a + b * max(0, x - x[split])."""
    pivot = points[split][0]
    shifted = [(max(0.0, x - pivot), y) for x, y in points]
    count = len(shifted)
    mean_x = sum(x for x, _ in shifted) / count
    mean_y = sum(y for _, y in shifted) / count
    spread = sum((x - mean_x) ** 2 for x, _ in shifted)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in shifted) / spread if spread else 0.0
    return sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in shifted)
