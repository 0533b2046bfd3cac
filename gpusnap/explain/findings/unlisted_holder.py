"""Processes with the card's device file open that the driver does not list: what `fuser -v` would show.

PaddleOCR#2074, pytorch#4031: the list is empty, `fuser` shows the workers of a run that was killed. The size
that each holds is not known, and is not made up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.advice import NOT_FUSER, act_or_ask
from gpusnap.explain.findings.make import found
from gpusnap.explain.unexplained import is_baseline, suspects, unexplained
from gpusnap.explain.words import count_of, pid_list
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Holder


def find(view: CardView) -> Iterator[Found]:
    rest = unexplained(view)
    if rest is None or rest < view.unexplained_limit() or is_baseline(view):
        return
    holders = suspects(view)
    if not holders:
        return
    orphans = [holder["pid"] for holder in holders if _parent_is_gone(view, holder)]
    noun = count_of(len(holders), "process", "processes")
    title = f"{noun} not listed by the driver {'holds' if len(holders) == 1 else 'hold'} the card open"
    if orphans:
        title += f", {len(orphans)} of them orphaned"
    names = sorted({holder["name"] or "?" for holder in holders})
    facts = (
        f"{format_bytes(rest)} used that no listed process holds; pids {pid_list(h['pid'] for h in holders)} "
        f"({', '.join(names)}) have its device file open"
    )
    do = (
        "They are yours to look at, and to end if you no longer need them: "
        f"ps -o pid,ppid,stat,lstart,args -p {','.join(str(holder['pid']) for holder in holders)}"
    )
    yield found(
        "unlisted-holder",
        "warning",
        view.subject(),
        title,
        [_says(view, holder) for holder in holders] + _started_together(view, holders),
        [*act_or_ask(view, holders, do, facts, "please check whether they are still needed"), NOT_FUSER],
    )


def _says(view: CardView, holder: Holder) -> str:
    parent = view.parent_of(holder["pid"])
    said = (
        f"pid {holder['pid']} {holder['name'] or '?'} ({holder['user'] or 'unknown user'}): {holder['via']} open"
    )
    if holder["state"] is not None:
        said += f", {holder['state']}"
    if parent is not None:
        said += f", parent {parent.pid}" + (f" {parent.name}" if parent.name else "")
    return said + "; size unknown"


def _parent_is_gone(view: CardView, holder: Holder) -> bool:
    parent = view.parent_of(holder["pid"])
    return parent is not None and parent.pid == 1


def _started_together(view: CardView, holders: list[Holder]) -> list[str]:
    """Workers of one run start within a minute (start stamps are clock ticks, 100 a second on Linux)."""
    ticks = [holder["start_ticks"] for holder in holders if holder["start_ticks"] is not None]
    if view.document["host"]["platform"] != "linux" or len(ticks) < 2 or max(ticks) - min(ticks) > 6000:
        return []
    return [f"{count_of(len(ticks), 'of them', 'of them')} started within one minute: workers of one run"]
