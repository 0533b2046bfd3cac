"""What lies over the areas: gaps and unknown stretches with their reason, events, findings, hover texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.frames import MEMORY
from gpusnap.explain.words import clock, minute
from gpusnap.render.svg_scale import number, text
from gpusnap.render.units import format_bytes, format_duration, format_of_total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.explanation import Explained
    from gpusnap.explain.frames import Column, Stack
    from gpusnap.explain.history import Event, History
    from gpusnap.render.svg_scale import Span

MOST_EVENTS = 120
MOST_HOVERS = 360
_HOVER_PARTS = 6


def marks(
    explained: Explained,
    history: History,
    where: str,
    columns: Sequence[Column],
    span: Span,
    plot: float,
    base: float,
    prefix: str,
) -> list[str]:
    shapes = missing(history, columns, MEMORY, span, plot, base, prefix)
    for reboot in history.timeline.reboots:
        shapes.append(
            _line("reboot", reboot.end, f"reboot, first sample at {minute(reboot.end)}", span, plot, base)
        )
    for step in history.timeline.steps:
        said = f"the wall clock was set by {step.seconds:+.0f} s at {minute(step.time)}"
        shapes.append(_line("clock", step.time, said, span, plot, base))
    shapes += [_event(event, span, base) for event in _largest(history, where)]
    for one in explained.judged:
        if one.adapter == where and one.leads and one.verdict.since is not None:
            early = " or before" if one.began_before() else ""
            said = f"{one.verdict.word}: {one.what}, since {minute(one.verdict.since)}{early}"
            x, y = span.x(one.verdict.since), plot + 8
            path = f"M{number(x)} {number(y - 6)}l6 6l-6 6l-6 -6z"
            shapes.append(f'<path class="finding" d="{path}"><title>{text(said)}</title></path>')
    return shapes


def missing(
    history: History,
    columns: Sequence[Column],
    lane: str,
    span: Span,
    top: float,
    base: float,
    prefix: str,
) -> list[str]:
    """Gaps, and samples without the figure of a lane, hatched with the reason."""
    shapes = []
    for gap in history.timeline.gaps():
        said = (
            f"gap of {format_duration(gap.seconds)} from {minute(gap.start)} to "
            f"{clock(gap.end, gap.start)}: {gap.reason}"
        )
        shapes.append(_band("gap", gap.start, gap.end, said, span, top, base, prefix))
    for start, end, reason in _unknown(columns, lane):
        said = f"not measured from {minute(start)} to {clock(end, start)}: {reason}"
        shapes.append(_band("unknown", start, end, said, span, top, base, prefix))
    return shapes


def _unknown(columns: Sequence[Column], lane: str) -> list[tuple[float, float, str]]:
    """Stretches without a figure, up to the next sample that has one."""
    found: list[tuple[float, float, str]] = []
    for place, column in enumerate(columns):
        why = column.holes.get(lane) if column.unknown is None or lane != MEMORY else column.unknown
        if why is None:
            continue
        following = columns[place + 1] if place + 1 < len(columns) else None
        end = following.start if following is not None and following.boot == column.boot else column.end
        if found and found[-1][2] == why and found[-1][1] >= column.start:
            found[-1] = (found[-1][0], end, why)
        else:
            found.append((column.start, end, why))
    return found


def _band(css: str, start: float, end: float, said: str, span: Span, plot: float, base: float, prefix: str) -> str:
    left, right = span.x(start), max(span.x(end), span.x(start) + 1.5)
    return (
        f'<rect class="{css}" fill="url(#{prefix}{css})" x="{number(left)}" y="{number(plot)}" '
        f'width="{number(right - left)}" height="{number(base - plot)}"><title>{text(said)}</title></rect>'
    )


def _line(css: str, time: float, said: str, span: Span, plot: float, base: float) -> str:
    x = number(span.x(time))
    return (
        f'<line class="{css}" x1="{x}" x2="{x}" y1="{number(plot)}" y2="{number(base)}">'
        f"<title>{text(said)}</title></line>"
    )


def _largest(history: History, where: str) -> list[Event]:
    """Starts and exits, those of the largest processes where they are many."""
    events = [event for event in history.events if event.adapter == where]
    if len(events) <= MOST_EVENTS:
        return events
    peaks: dict[int, int] = {}
    for track in history.processes.values():
        if track.adapter == where:
            peaks[track.pid] = max(track.peak, peaks.get(track.pid, -1))
    events.sort(key=lambda event: -peaks.get(event.pid or 0, -1))
    return events[:MOST_EVENTS]


def unmarked(history: History, where: str) -> int:
    """Starts and exits on a card that its picture has no mark for."""
    kept = sum(event.adapter == where for event in history.events)
    return max(0, kept - MOST_EVENTS) + history.events_left_out.get(where, 0)


def _event(event: Event, span: Span, base: float) -> str:
    x = span.x(event.time)
    name = f"{event.name or 'a process'} {event.pid}" + (f" ({event.user})" if event.user is not None else "")
    said = f"{name} {'started' if event.kind == 'start' else 'exited'} by {minute(event.time)}"
    if event.bytes is not None:
        said += f", holding {format_bytes(event.bytes)}"
    shape = "l4 7h-8z" if event.kind == "start" else "l4 -7h-8z"
    y = base - 7 if event.kind == "start" else base
    return f'<path class="{event.kind}" d="M{number(x)} {number(y)}{shape}"><title>{text(said)}</title></path>'


def hovers(columns: Sequence[Column], span: Span, plot: float, base: float, usual: float) -> list[str]:
    """Invisible strips that say what was measured there."""
    known = [column for column in columns if column.low is not None and column.high is not None]
    width = max(1, -(-len(known) // MOST_HOVERS))
    shapes = []
    for start in range(0, len(known), width):
        group = known[start : start + width]
        low = min((column.low for column in group if column.low is not None), key=lambda stack: stack.used)
        high = max((column.high for column in group if column.high is not None), key=lambda stack: stack.used)
        end = group[-1].end
        following = known[start + width] if start + width < len(known) else None
        if following is not None and following.start - end <= 3 * usual:
            end = following.start
        else:
            end += usual
        left, right = span.x(group[0].start), max(span.x(end), span.x(group[0].start) + 1)
        shapes.append(
            f'<rect class="hover" x="{number(left)}" y="{number(plot)}" width="{number(right - left)}" '
            f'height="{number(base - plot)}"><title>{text(_said(low, high))}</title></rect>'
        )
    return shapes


def _said(low: Stack, high: Stack) -> str:
    parts = [
        f"{part.name or 'a process'} {part.pid} {format_bytes(part.bytes)}" for part in high.parts[:_HOVER_PARTS]
    ]
    if high.unattributed:
        parts.append(f"unattributed {format_bytes(high.unattributed)}")
    said = f"{minute(high.time)} used {format_of_total(high.used, high.total)}"
    if low.used != high.used:
        said += f", at least {format_bytes(low.used)} at {minute(low.time)}"
    return said + (": " + ", ".join(parts) if parts else "")
