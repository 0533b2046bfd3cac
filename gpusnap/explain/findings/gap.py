"""Time without samples, and why; nothing is assumed about it. Reboots are named with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.words import clock, count_of, minute
from gpusnap.render.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(history: History) -> Iterator[Found]:
    timeline = history.timeline
    gaps, reboots = timeline.gaps(), timeline.reboots
    if not gaps and not reboots:
        return
    evidence = [
        f"{minute(gap.start)} to {clock(gap.end, gap.start)} ({format_duration(gap.seconds)}): {gap.reason}"
        for gap in sorted(gaps, key=lambda gap: -gap.seconds)[:5]
    ]
    evidence += [f"{minute(reboot.start)} to {clock(reboot.end, reboot.start)}: reboot" for reboot in reboots[:5]]
    said = [count_of(len(gaps), "gap")] if gaps else []
    said += [count_of(len(reboots), "reboot")] if reboots else []
    yield found(
        "gap",
        "info",
        {"kind": "recording", "adapter": None, "pid": None, "start_ticks": None, "source": None},
        " and ".join(said) + " without samples",
        evidence,
        ["What happened then is not known, and nothing was made up for it."],
    )
