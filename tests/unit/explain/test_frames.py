"""Columns of a picture: bounded, by minimum and maximum, nothing merged across what was not measured."""

from __future__ import annotations

from gpusnap.explain.frames import MEMORY, MOST_COLUMNS, Frames
from gpusnap.explain.history import History
from gpusnap.explain.reservoir import Point, Reservoir
from gpusnap.render.sparkline import sparkline
from tests.builders import GIB, MIB, START, adapter, process, snapshot


def frames_of(used: list[int | str], *, gap_at: int | None = None) -> Frames:
    history = History(pictures=True)
    for step, value in enumerate(used):
        late = 5000 if gap_at is not None and step >= gap_at else 0
        row = process(7, value - 100 * MIB if isinstance(value, int) else value)
        history.add(
            snapshot(
                [adapter(total=16 * GIB, used=value)],
                [row],
                at=START + 10 * step + late,
                uptime=10.0 * step + late,
            )
        )
    assert history.frames is not None
    return history.frames


def test_few_samples_are_columns_each() -> None:
    (columns,) = frames_of([GIB] * 50).cards.values()
    assert len(columns) == 50


def test_many_samples_merge_and_the_extremes_stay_whole() -> None:
    used: list[int | str] = [4 * GIB] * 3000
    used[1234], used[2345] = 15 * GIB, GIB
    (columns,) = frames_of(used).cards.values()
    assert len(columns) <= MOST_COLUMNS
    highest = max(column.high.used for column in columns if column.high is not None)
    lowest = min(column.low.used for column in columns if column.low is not None)
    assert (highest, lowest) == (15 * GIB, GIB)
    peak = next(column.high for column in columns if column.high is not None and column.high.used == 15 * GIB)
    # A stack that is drawn was measured: its parts belong to that very sample.
    assert peak.time == START + 12340
    assert peak.parts[0].bytes == 15 * GIB - 100 * MIB


def test_one_unknown_sample_among_thousands_is_still_a_column_of_its_own() -> None:
    used: list[int | str] = [4 * GIB] * 3000
    used[1500] = "null:device-busy"
    (columns,) = frames_of(used).cards.values()
    unknown = [column for column in columns if column.unknown is not None]
    assert [(column.start, column.unknown) for column in unknown] == [(START + 15000, "the device was busy")]
    assert all(column.low is None for column in unknown)


def test_a_card_that_is_unknown_in_every_other_sample_has_no_more_columns_than_others() -> None:
    used: list[int | str] = [4 * GIB if step % 2 else "null:device-busy" for step in range(4000)]
    used[2001] = 15 * GIB
    (columns,) = frames_of(used).cards.values()
    assert len(columns) <= MOST_COLUMNS
    assert max(column.high.used for column in columns if column.high is not None) == 15 * GIB
    assert all(column.holes[MEMORY] == "the device was busy" for column in columns[:100])


def test_no_column_spans_a_gap() -> None:
    (columns,) = frames_of([4 * GIB] * 3000, gap_at=1501).cards.values()
    assert not any(column.start < START + 15005 < column.end for column in columns)


def points(values: list[float], every: float = 1.0) -> list[Point]:
    reservoir = Reservoir()
    for step, value in enumerate(values):
        reservoir.add(step * every, value)
    return reservoir.points()


def test_a_sparkline_has_a_height_for_each_value_and_a_dot_for_none() -> None:
    assert sparkline(points([0, 1, 2, 3, 4, 5, 6, 7]), 0, 8, 8, floor=0, top=7) == "▁▂▃▄▅▆▇█"
    holes = [point for point in points([1] * 8) if point.time not in (3, 4)]
    assert sparkline(holes, 0, 8, 8, floor=0, top=1) == "███··███"


def test_a_sawtooth_that_is_finer_than_the_columns_still_looks_like_one() -> None:
    teeth = [0.0 if step % 2 else 10.0 for step in range(800)]
    assert sparkline(points(teeth), 0, 800, 8, floor=0, top=10) == "▁█▁█▁█▁█"


def test_a_peak_in_every_second_column_is_seen_in_each_of_them() -> None:
    # The first half of each ten seconds up, the rest down: with a column for five, an odd one would see lows only.
    swings = [10.0 if step % 10 in (1, 2) else 0.0 for step in range(200)]
    assert sparkline(points(swings), 0, 200, 40, floor=0, top=10) == "▁▁" + "█▁" * 19


def test_a_level_line_is_level() -> None:
    assert sparkline(points([5.0] * 20), 0, 20, 5, floor=5, top=5) == "▁▁▁▁▁"
