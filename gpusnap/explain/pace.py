"""How fast a series rises, whether it still does, and how much of it came back. Pure arithmetic on points."""

from __future__ import annotations

import itertools
from math import sqrt
from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.theil_sen import theil_sen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.reservoir import Point


def slope_of(points: Sequence[Point]) -> float | None:
    """Bytes an hour, of the minima."""
    per_second = theil_sen([(point.time, point.low) for point in points])
    return None if per_second is None else per_second * 3600


def growth(points: Sequence[Point]) -> float:
    slope = theil_sen([(point.time, point.low) for point in points])
    return 0.0 if slope is None else slope * (points[-1].time - points[0].time)


def late(points: Sequence[Point], slope: float | None) -> float:
    """The second half's slope over the whole's: 1 where growth is steady, near 0 after a warm-up."""
    late = slope_of(points[len(points) // 2 :])
    return late / slope if late is not None and slope is not None and slope > 0 else 0.0


def has_settled(points: Sequence[Point], slope: float | None, sigma: float) -> bool:
    """The last stretch is nearly level, where the noise lets that be seen: something was filled up."""
    since = points[-1].time - at.END_SHARE * (points[-1].time - points[0].time)
    end = [point for point in points if point.time >= since]
    last = slope_of(end)
    if len(end) < 3 or last is None or slope is None:
        return False
    expected = slope / 3600 * (end[-1].time - end[0].time)
    # The deviation of what a straight line through n noisy points says that it rose.
    return last < at.END_PACE * slope and expected > 4 * sigma * sqrt(12 / len(end))


def fallen(lows: Sequence[float], sigma: float) -> float:
    """By how much the minima fell, all in all; what the noise may have done is none of it.

    A single minimum between two close peaks may lie high: it counts as high as the higher one beside it.
    """
    limit = at.GROWTH_NOISE * sigma
    beside = zip(lows, lows[1:], lows[2:], strict=False)
    cut = [lows[0], *(min(middle, max(left, right)) for left, middle, right in beside), lows[-1]]
    falls = (before - after for before, after in itertools.pairwise(cut))
    return sum(fall for fall in falls if fall > limit)
