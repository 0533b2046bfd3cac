"""What the marks of a picture mean, in one line below it: only those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.frames import MEMORY
from gpusnap.render.svg_marks import unmarked
from gpusnap.render.svg_scale import number, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.explanation import Explained
    from gpusnap.explain.history import History

_LETTER = 6.2  # px of the key's letters, a little more than they need


def key(
    history: History, cards: Sequence[str], explained: Explained, top: float, left: float, prefix: str
) -> list[str]:
    """Shapes as they stand in the plot, each with its word."""
    entries = [
        (f'<rect class="{css}" fill="url(#{prefix}{css})" {{box}}/>', words)
        for css, words, is_there in (
            ("gap", "no samples", bool(history.timeline.gaps())),
            ("unknown", "not measured", _has_unknown(history, cards)),
        )
        if is_there
    ]
    kinds = {event.kind for event in history.events if event.adapter in cards}
    if "start" in kinds:
        entries.append(('<path class="start" d="M{x} {up}l4 7h-8z"/>', "a process started"))
    if kinds - {"start"}:
        entries.append(('<path class="exit" d="M{x} {down}l4 -7h-8z"/>', "a process exited"))
    if any(one.leads and one.verdict.since is not None and one.adapter in cards for one in explained.judged):
        entries.append(('<path class="finding" d="M{x} {high}l6 6l-6 6l-6 -6z"/>', "a finding begins"))
    if history.timeline.reboots:
        entries.append(('<line class="reboot" {upright}/>', "reboot"))
    if history.timeline.steps:
        entries.append(('<line class="clock" {upright}/>', "clock set"))
    left_out = sum(unmarked(history, where) for where in cards)
    if left_out:
        entries.append(("", f"{left_out:,} more starts and exits are not marked"))
    return _row(entries, top, left)


def _row(entries: Sequence[tuple[str, str]], top: float, left: float) -> list[str]:
    if not entries:
        return []
    shapes = ['<g class="key">']
    for shape, words in entries:
        x = number(left + 7)
        places = {
            "box": f'x="{number(left)}" y="{number(top)}" width="14" height="12"',
            "upright": f'x1="{x}" x2="{x}" y1="{number(top)}" y2="{number(top + 12)}"',
            "x": x,
            "up": number(top + 3),
            "down": number(top + 10),
            "high": number(top),
        }
        shapes.append(shape.format(**places))
        shapes.append(f'<text class="note" x="{number(left + 19)}" y="{number(top + 10)}">{text(words)}</text>')
        left += 19 + _LETTER * len(words) + 18
    return [*shapes, "</g>"]


def _has_unknown(history: History, cards: Sequence[str]) -> bool:
    frames = history.frames
    return frames is not None and any(
        column.unknown is not None or column.holes.keys() & drawn
        for columns in (frames.cards.get(where, ()) for where in cards)
        for drawn in [{MEMORY, *(lane for column in columns for lane in column.lanes)}]
        for column in columns
    )
