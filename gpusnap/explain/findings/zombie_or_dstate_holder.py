"""Processes that can't give their memory back: zombies, uninterruptible ones, and pids that no longer exist.

mxnet#4242: the parent is a zombie and a living child keeps the context. pai#3375: state D, `kill` does nothing.
nvitop#134: the driver lists a pid that does not exist; no kill command helps there, so none is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.advice import act_or_ask
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import entry_of as entry
from gpusnap.explain.rows import program, reason
from gpusnap.explain.words import minute, pid_list
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Process

CODE = "zombie-or-dstate-holder"


class _Stuck(NamedTuple):
    pid: int
    ppid: int | None
    name: str
    user: str | None
    bytes: int | None
    row: Process | None


def find(view: CardView) -> Iterator[Found]:
    for stuck in _in_state(view, "zombie", "dead"):
        yield _zombie(view, stuck)
    for stuck in _in_state(view, "disk-sleep"):
        yield _uninterruptible(view, stuck)
    if view.document["host"]["platform"] != "linux":
        return  # Windows' counters outlive a process by a moment; WSL's numbers are those of another system
    for row in view.rows:
        why = reason(entry(view.document, row), "name")
        if row["name"] is None and why in ("exited", "other-pid-namespace"):
            yield _not_here(view, row, certainly_gone=why == "exited")


def _in_state(view: CardView, *states: str) -> list[_Stuck]:
    stuck = [
        _Stuck(row["pid"], row["ppid"], program(row) or "a process", row["user"], row["vram_bytes"], row)
        for row in view.rows
        if row["state"] in states
    ]
    return stuck + [
        _Stuck(holder["pid"], None, holder["name"] or "a process", holder["user"], None, None)
        for holder in view.unlisted()
        if holder["state"] in states
    ]


def _zombie(view: CardView, stuck: _Stuck) -> Found:
    children = _living_children(view, stuck.pid)
    parent = view.parent_of(stuck.pid, stuck.ppid)
    evidence = [f"pid {stuck.pid} {stuck.name} ({stuck.user or 'unknown user'}): zombie, {_held(stuck)}"]
    if parent is not None:
        evidence.append(
            f"its parent {parent.pid}{' ' + parent.name if parent.name else ''} has not taken its exit"
        )
    evidence += [f"a child lives and keeps the context: pid {pid} {name}" for pid, name in children]
    keeper = f"pid {pid_list(pid for pid, _ in children)}" if children else None
    if keeper is not None:
        do = f"End the living child {keeper}: the memory comes free with it. A zombie itself can't be killed."
        please = f"please end its child {keeper}"
    else:
        do = (
            "A zombie can't be killed; it goes when its parent"
            + (f" {parent.pid}" if parent is not None else "")
            + " takes its exit or ends. If the memory stays after that, a child in another namespace holds it."
        )
        please = "please end what keeps its context"
    rows = [stuck.row] if stuck.row is not None else []
    facts = f"zombie {stuck.pid} {stuck.name} of {stuck.user or 'an unknown user'}, {_held(stuck)}"
    return found(
        CODE,
        "warning",
        view.subject(stuck.row),
        f"{stuck.name} (pid {stuck.pid}) is a zombie and the card still has its memory",
        evidence,
        act_or_ask(view, rows, do, facts, please),
    )


def _living_children(view: CardView, pid: int) -> list[tuple[int, str]]:
    children = {
        row["pid"]: program(row) or "?"
        for row in view.document["processes"] or ()
        if row["ppid"] == pid and row["state"] not in ("zombie", "dead")
    }
    for holder in view.card["holders"] or ():
        parent = view.around.parents.get(holder["pid"])
        if parent is not None and parent.pid == pid and holder["state"] not in ("zombie", "dead"):
            children[holder["pid"]] = holder["name"] or "?"
    return sorted(children.items())


def _uninterruptible(view: CardView, stuck: _Stuck) -> Found:
    working = view.busy is not None and view.busy > 0
    return found(
        CODE,
        "notice" if working else "warning",
        view.subject(stuck.row),
        f"{stuck.name} (pid {stuck.pid}) is in uninterruptible sleep (D) and holds the card",
        [
            f"pid {stuck.pid} {stuck.name} ({stuck.user or 'unknown user'}): state D, {_held(stuck)}",
            f"seen in one sample at {minute(view.document['taken_at'])}; a moment of D is normal while files load",
        ],
        [
            f"Look again: ps -o pid,stat,wchan:32,etime,args -p {stuck.pid}. While it stays in D, kill "
            "does not work, "
            "not even -9: it waits inside the kernel, for the driver or for a disk or network share.",
            "If it waits for a share, mend the share. If it hangs in the driver, a reboot is likely needed.",
        ],
    )


def _not_here(view: CardView, row: Process, *, certainly_gone: bool) -> Found:
    held = "without a figure" if row["vram_bytes"] is None else f"with {format_bytes(row['vram_bytes'])}"
    pid = row["pid"]
    other = (
        f"in another PID namespace (a container): on the host, ps -p {pid} finds it, and gpusnap there names it"
    )
    gone = f"gone, while the driver still keeps its context: on the host, ps -p {pid} finds nothing"
    first = gone if certainly_gone else other
    second = other if certainly_gone else gone
    return found(
        CODE,
        "notice",
        view.subject(row),
        f"the driver lists pid {pid} {held}, and no such process can be seen here",
        [f"either it is {first}", f"or it is {second}"],
        [
            "If it lives elsewhere, end it there, by its own service or container.",
            "If it is gone, no signal can reach it: see who has the card open (--holders), and when "
            "nobody has, reload "
            "the driver or reboot.",
        ],
    )


def _held(stuck: _Stuck) -> str:
    return "size unknown" if stuck.bytes is None else format_bytes(stuck.bytes)
