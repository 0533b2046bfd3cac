"""A series of any length in bounded memory, kept by minimum and maximum and never by mean.

Up to `capacity` samples are held exactly. When they are more, neighbours merge into buckets that keep the
lowest value with its own time, the highest value, and the load. So a sawtooth's minima and a short peak
survive any down-sampling, and no value is ever made up. Unknown samples are not in here: they are counted by
the caller, and nothing is put in their place.
"""

from __future__ import annotations

from array import array
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPACITY = 2048
_COLUMNS = 7


class Point(NamedTuple):
    """A sample, or a run of neighbouring samples. Times in seconds, values in the series' own unit.

    `time` is when `low` was measured; `load` the highest load seen in the run, NaN where none was measured.
    """

    start: float
    end: float
    time: float
    low: float
    high: float
    load: float
    samples: float


class Reservoir:
    """Append-only; `points()` in time order."""

    __slots__ = ("_columns", "capacity", "samples", "widest")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.samples = 0
        # A hole wider than this is a gap: buckets do not merge across it. The caller may raise it.
        self.widest = float("inf")
        self._columns = tuple(array("d") for _ in range(_COLUMNS))

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, time: float, value: float, load: float | None = None) -> None:
        if len(self) >= self.capacity:
            self._halve(keep_gaps=True)
            if len(self) > self.capacity * 3 // 4:  # nearly every sample stands alone between gaps
                self._halve(keep_gaps=False)
        point = Point(time, time, time, value, value, nan if load is None else load, 1)
        for column, part in zip(self._columns, point, strict=True):
            column.append(part)
        self.samples += 1

    def points(self) -> list[Point]:
        return [Point(*row) for row in zip(*self._columns, strict=True)]

    def _halve(self, *, keep_gaps: bool) -> None:
        merged = tuple(array("d") for _ in range(_COLUMNS))
        for point in self._merged(keep_gaps=keep_gaps):
            for column, part in zip(merged, point, strict=True):
                column.append(part)
        self._columns = merged

    def _merged(self, *, keep_gaps: bool) -> Iterator[Point]:
        held: Point | None = None
        for point in self.points():
            if held is None:
                held = point
            elif keep_gaps and point.start - held.end > self.widest:
                yield held
                held = point
            else:
                yield merge(held, point)
                held = None
        if held is not None:
            yield held


def merge(left: Point, right: Point) -> Point:
    lower = left if left.low <= right.low else right
    return Point(
        left.start,
        right.end,
        lower.time,
        lower.low,
        max(left.high, right.high),
        _higher(left.load, right.load),
        left.samples + right.samples,
    )


def _higher(left: float, right: float) -> float:
    if isnan(left):
        return right
    return left if isnan(right) else max(left, right)
