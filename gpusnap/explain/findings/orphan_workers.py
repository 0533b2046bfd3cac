"""Workers whose parent is gone: vLLM's and Ray's after a crash, a DataLoader's after Ctrl-C.

vllm#20860, pytorch#4031: a stop of the service does not reach them, and they hold their memory for days. A job
that nohup or setsid started looks the same: where the card works, this is a notice that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.advice import act_or_ask
from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.orphans import is_orphan
from gpusnap.explain.rows import held_bytes, program
from gpusnap.explain.words import clock, count_of, minute, oldest_start, owners, pid_list
from gpusnap.render.units import format_bytes, format_of_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Process

_SPINNING = 50  # percent of a core


def orphans(view: CardView) -> list[Process]:
    return [row for row in view.rows if _is_holding(view, row) and is_orphan(view.document, row, view.around)]


def _is_holding(view: CardView, row: Process) -> bool:
    """An orphan of which nobody knows whether it holds anything is no reason to end it."""
    held = held_bytes(view.card, row)
    return held is not None and held >= at.ORPHAN_BYTES


def find(view: CardView) -> Iterator[Found]:
    groups: dict[tuple[str | None, str | None], list[Process]] = {}
    for row in orphans(view):
        groups.setdefault((program(row), row["user"]), []).append(row)
    for (name, user), rows in groups.items():
        yield _group(view, name or "a program", user or "an unknown user", rows)


def _group(view: CardView, name: str, user: str, rows: list[Process]) -> Found:
    pids = pid_list(row["pid"] for row in rows)
    held = sum(size for size in (held_bytes(view.card, row) for row in rows) if size is not None)
    working = _is_working(view, rows)
    since = oldest_start(rows)
    when = "" if since is None else f", running since {minute(since)}"
    load = "" if view.busy is None else f", {view.busy:.0f} % for this sample"
    parents = sorted({_parent(view, row) for row in rows})
    evidence = [
        f"{len(rows)} × {name} ({pids}, {user}): parent gone (now {', '.join(parents)}), "
        f"{_listening_words(view, rows)}{load}"
    ]
    evidence.append(f"{format_bytes(held)} of {view.name}{when}")
    cpu = [row["cpu_percent"] for row in rows if row["cpu_percent"] is not None]
    if cpu:
        waiting = ": they may wait in a loop for peers that are gone" if max(cpu) >= _SPINNING else ""
        evidence.append(f"CPU {max(cpu):.0f} % at most{waiting}")
    if working:
        evidence.append("the card is at work: a job that nohup, setsid or disown detached has no parent either")
    noun = "pid" if len(rows) == 1 else "pids"
    facts = f"{format_bytes(held)} held by {noun} {pids} of {user}, orphaned{when}" + (
        ", idle now" if view.is_idle else ""
    )
    evidence.append("a stop of the service that started them does not reach them")
    do = f"End them once you are sure that the run is over: kill {' '.join(str(row['pid']) for row in rows)}"
    noun = count_of(len(rows), "orphaned worker")
    headline = None
    if view.is_full and view.is_idle:
        start = "" if since is None else f", running since {clock(since, view.document['taken_at'])}"
        headline = (
            f"{view.name} is full and idle: {format_of_total(view.used, view.total)} used, "
            f"{format_bytes(held)} held by {noun} of {user}{start}; 0 % busy now"
        )
    return found(
        "orphan-workers",
        "notice" if working else "warning",
        view.subject(rows[0] if len(rows) == 1 else None),
        f"{noun} of {owners(rows)} hold{'s' if len(rows) == 1 else ''} {format_bytes(held)}",
        evidence,
        act_or_ask(
            view, rows, do, facts, "please end them" if not working else "please ask whether they are needed"
        ),
        headline=headline,
        pids=[row["pid"] for row in rows],
    )


def _listening_words(view: CardView, rows: list[Process]) -> str:
    if view.around.listening is None:
        return "whether it listens is not known from a file"
    if any(row["pid"] in view.around.unseen for row in rows):
        return "whether it listens can't be seen without root"
    return "no listening socket"


def _parent(view: CardView, row: Process) -> str:
    parent = view.parent_of(row["pid"], row["ppid"])
    if parent is None:
        return "?"
    return str(parent.pid) if parent.name is None or parent.pid == 1 else f"{parent.pid} {parent.name}"


def _is_working(view: CardView, rows: list[Process]) -> bool:
    """Their own load where it was measured, else the card's."""
    own = [row["gpu_percent"] for row in rows if row["gpu_percent"] is not None]
    return max(own) > 0 if own else view.busy is not None and view.busy > 0
