"""The wall clock was set while the machine ran: no gap, and no reason to doubt the samples (helixscreen#1218)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.words import count_of, minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(history: History) -> Iterator[Found]:
    steps = history.timeline.steps
    if steps:
        yield found(
            "clock-step",
            "info",
            {"kind": "recording", "adapter": None, "pid": None, "start_ticks": None, "source": None},
            f"the wall clock was set {count_of(len(steps), 'time')}",
            [f"{step.seconds:+.0f} s at {minute(step.time)}" for step in steps[:5]],
            ["Nothing is missing there: times and slopes go by the boot clock."],
        )
