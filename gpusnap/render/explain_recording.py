"""The part of an explanation that tells of a recording: its frame, each card's curve, each process's verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.rows import program
from gpusnap.explain.story import frame
from gpusnap.render.card import title
from gpusnap.render.columns import display_width
from gpusnap.render.sparkline import sparkline
from gpusnap.render.units import format_bytes, format_pair_in_one_unit, pick_unit

if TYPE_CHECKING:
    from gpusnap.explain.explanation import Explained
    from gpusnap.explain.history import History
    from gpusnap.explain.reservoir import Point
    from gpusnap.explain.series import Judged
    from gpusnap.explain.tracks import CardTrack
    from gpusnap.render.screen import Screen

SPARK_WIDTH = 48
LEAST_SPARK_WIDTH = 16
_USED, _BUSY, _AFTER = "    used   ", "    busy   ", " " * 11
MOST_PROCESSES = 12


def recording_lines(explained: Explained, screen: Screen) -> list[str]:
    history = explained.history
    if history is None or history.timeline.first is None or history.timeline.last is None:
        return []
    lines = screen.filled(frame(history), "  ")
    columns = max(LEAST_SPARK_WIDTH, min(SPARK_WIDTH, (120 if screen.width is None else screen.width) - 60))
    # More columns than samples would draw holes where none is missing.
    columns = min(columns, max(1, history.timeline.count * 3 // 4))
    cards = {one.adapter: one for one in explained.judged if one.pid is None}
    for where, one in cards.items():
        lines += ["", *screen.filled(title(history.cards[where].last_row), "  ")]
        lines += _card(history, where, one, columns, screen)
    lines += _processes([one for one in explained.judged if one.pid is not None], history, screen)
    return lines


def _card(history: History, where: str, one: Judged, columns: int, screen: Screen) -> list[str]:
    track = history.cards[where]
    points = _points(track)
    if not points:
        return screen.filled("never measured", _AFTER, first=_USED)
    start, end = history.timeline.first or 0.0, history.timeline.last or 0.0
    top = max(point.high for point in points)
    drawn = sparkline(points, start, end, columns, floor=0.0, top=top)
    said = format_pair_in_one_unit(one.series.first, one.series.last)
    minima, peaks = one.verdict.minima, one.verdict.peaks
    lines = _curve(_USED, drawn, said, screen)
    if minima is not None and peaks is not None:
        lines += screen.filled(f"minima {_numbers(minima)}, peaks {_numbers(peaks)}", _AFTER)
    lines += _load(points, track, start, end, columns, screen)
    return [*lines, *screen.filled(f"{one.verdict.word}: {one.verdict.why}", "    ")]


def _curve(label: str, drawn: str, said: str, screen: Screen) -> list[str]:
    """The curve and what it says, below it where the line is too short for both."""
    whole = screen.text(f"{label}{drawn}   {said}")
    if screen.width is None or display_width(whole) <= screen.width:
        return [whole]
    return [*screen.filled(drawn, _AFTER, first=label), *screen.filled(said, _AFTER)]


def _points(track: CardTrack) -> list[Point]:
    return [point for series in track.used.values() for point in series.reservoir.points()]


def _load(
    points: list[Point], track: CardTrack, start: float, end: float, columns: int, screen: Screen
) -> list[str]:
    known = [point for point in points if point.load == point.load]
    if not known or track.busiest is None:
        return screen.filled("not measured", _AFTER, first=_BUSY)
    curve = [point._replace(low=point.load, high=point.load) for point in known]
    drawn = sparkline(curve, start, end, columns, floor=0.0, top=100.0)
    said = f"at most {track.busiest:.0f} %"
    if track.busiest == 0:
        said = f"0 % in all {track.loads:,} samples"
    elif track.idle:
        said += f", idle in {track.idle:,} of {track.loads:,} samples"
    return _curve(_BUSY, drawn, said, screen)


def _numbers(pair: tuple[float, float]) -> str:
    return format_pair_in_one_unit(round(pair[0]), round(pair[1]))


def _processes(judged: list[Judged], history: History, screen: Screen) -> list[str]:
    if not judged:
        return []
    cells = []
    shown = [one.series for one in judged[:MOST_PROCESSES]]
    unit = pick_unit(count for series in shown for count in (series.first, series.last, series.highest))
    for one in judged[:MOST_PROCESSES]:
        series = one.series
        slope = one.verdict.slope_per_hour
        cells.append(
            [
                str(one.pid),
                _program(one, history),
                f"{series.samples:,}",
                format_bytes(series.first, unit),
                format_bytes(series.last, unit),
                format_bytes(series.highest, unit),
                "-" if slope is None or one.verdict.word.startswith("not") else _per_hour(slope),
                one.verdict.word,
            ]
        )
    header = ["PID", "PROGRAM", "SAMPLES", "FIRST", "LAST", "PEAK", "MINIMA/H", "VERDICT"]
    lines = ["", *screen.whole_table(header, cells, "rlrrrrrl", wrap=[1, 7], indent="  ")]
    left = len(judged) - MOST_PROCESSES + history.forgotten
    return [*lines, f"  and {left:,} more processes"] if left > 0 else lines


def _per_hour(slope: float) -> str:
    return "0" if round(slope) == 0 else ("+" if slope > 0 else "") + format_bytes(round(slope))


def _program(one: Judged, history: History) -> str:
    for track in history.processes.values():
        if (track.adapter, track.pid, track.start_ticks) == (one.adapter, one.pid, one.start_ticks):
            return program(track.last_row) or "-"
    return "-"
