"""A series whose minima rise for good: a leak, step by step or steadily. Only a recording can say so.

`series.judge_all` holds the verdicts; this file words those that are leaks. llama.cpp#23446, vllm#8413.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.series import Judged, subject_of
from gpusnap.explain.verdict import LEAK, STEP_LEAK
from gpusnap.explain.words import clock, minute
from gpusnap.render.units import format_bytes, format_duration, format_pair_in_one_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(history: History, judged: list[Judged]) -> Iterator[Found]:
    """`leak`: growth that does not come in cycles."""
    for one in judged:
        if one.verdict.word == LEAK and one.leads:
            yield _found(history, one)


def find_steps_in_history(history: History, judged: list[Judged]) -> Iterator[Found]:
    """`step-leak`: each cycle, or each of many steps, leaves something behind."""
    for one in judged:
        if one.verdict.word == STEP_LEAK and one.leads:
            yield _found(history, one)


def _found(history: History, one: Judged) -> Found:
    verdict = one.verdict
    slope = verdict.slope_per_hour
    per_hour = "" if slope is None else f"{format_bytes(round(slope))} an hour"
    evidence = []
    if verdict.word == STEP_LEAK:
        typical, low, high, rises = steps(verdict.rises)
        unit = "a cycle" if verdict.cycles else "a step"
        evidence.append(
            f"minima +{format_bytes(typical)} {unit} ({rises} of {len(verdict.rises)}, "
            f"{format_pair_in_one_unit(low, high).replace(' → ', ' to ')}), {_load_words(one)}"
        )
        if verdict.peaks is not None and verdict.cycles:
            evidence.append(f"peaks {_pair(verdict.peaks)}")
    else:
        evidence.append(f"minima {_pair(verdict.minima)}: +{per_hour}, {verdict.why}")
    evidence.append(f"{one.series.samples:,} samples, {one.series.unknown} unknown")
    evidence += _began(history, one)
    evidence += one.notes
    grown = round(verdict.growth) if verdict.growth is not None else None
    kind = "a step leak" if verdict.word == STEP_LEAK else "a leak"
    seconds = one.series.last_time - (verdict.since if verdict.since is not None else one.series.first_time)
    since = ""
    if verdict.since is not None:
        early = "at or before " if one.began_before() else ""
        since = f", begun {early}{clock(verdict.since, one.series.last_time)}"
    if verdict.word == STEP_LEAK and verdict.cycles:
        loss = f"loses about {format_bytes(typical)} with each of {verdict.cycles} load cycles"
    else:
        loss = f"loses about {per_hour or format_bytes(grown)}"
    return found(
        verdict.word,
        "warning",
        subject_of(one),
        f"{one.what}: {format_bytes(grown)} lost for good in {format_duration(seconds)}",
        evidence,
        _advice(history, one),
        headline=f"{one.card_name} {loss}: {kind} in {one.what}{since}",
    )


def steps(rises: list[float]) -> tuple[int, int, int, int]:
    """The typical step, the smallest and largest real one, and how many of all were real."""
    real = sorted(rise for rise in rises if rise > 0.1 * max(rises))
    return round(real[len(real) // 2]), round(real[0]), round(real[-1]), len(real)


def _load_words(one: Judged) -> str:
    peaks = one.verdict.peaks
    if peaks is None or not one.verdict.cycles:
        return "not with load"
    level = abs(peaks[1] - peaks[0]) < 0.5 * (one.verdict.growth or 0.0)
    return "not with load: peaks are level" if level else "peaks rise too"


def _began(history: History, one: Judged) -> list[str]:
    """What started or changed around the sample at which it began."""
    since = one.verdict.since
    if since is None:
        return []
    near = 3 * (history.timeline.interval() or 60.0)
    events = [
        f"{event.name or 'a process'} (pid {event.pid}) {'started' if event.kind == 'start' else 'exited'}"
        for event in history.events
        if abs(event.time - since) <= near and event.adapter == one.adapter and event.pid != one.pid
    ]
    around = "; then " + ", ".join(events[:3]) if events else ""
    early = "or before " if one.began_before() else ""
    return [f"begun at {early}the sample of {minute(since)}{around}"]


def _advice(history: History, one: Judged) -> list[str]:
    report = f"Report it with: gpusnap explain {quote(history.source)} --format html"
    if one.pid is None:
        return ["No listed process keeps it: compare the driver's version with its release notes.", report]
    return ["It is that process's own figure that rises; its restart frees it.", report]


def _pair(values: tuple[float, float] | None) -> str:
    return "?" if values is None else format_pair_in_one_unit(round(values[0]), round(values[1]))
