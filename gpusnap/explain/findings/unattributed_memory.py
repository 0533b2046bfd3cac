"""More memory in use than the listed processes hold: how much, and the likely causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.advice import NOT_FUSER
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import reason_word
from gpusnap.explain.unexplained import causes, is_baseline, unexplained
from gpusnap.explain.words import minute
from gpusnap.render.units import format_bytes, format_of_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found

CODE = "unattributed-memory"
KERNEL = (
    "A notebook kernel keeps its memory until it is shut down, also when its page is closed: "
    "ps -eo pid,user,lstart,args | grep ipykernel"
)


def find(view: CardView) -> Iterator[Found]:
    rest = unexplained(view)
    if rest is None or rest < view.unexplained_limit() or view.unified or is_baseline(view):
        return
    if not view.listed:
        yield _without_a_list(view, rest)
        return
    bound = view.card["accounting"]["unmeasured_processes"]
    unmeasured = bound is not None and bound > 0
    upto = "up to " if view.is_bounded else ""
    likely = causes(view)
    nobody = not view.rows
    evidence = [
        f"{format_of_total(view.used, view.total)} used, "
        f"{format_bytes(view.card['accounting']['attributed_bytes'])} of it by listed processes",
        *(f"likely: {cause.says}" for cause in likely),
    ]
    if view.card["holders"] == []:
        evidence.append("no other process that can be seen has the card's device file open")
    advice = [cause.advice for cause in likely if cause.advice is not None]
    if view.card["holders"] is None:
        advice.insert(0, "See who has the card open: gpusnap snap --holders")
    if nobody and view.is_idle:
        advice.append(KERNEL)
    if view.viewer.uid != 0:
        advice.append(_letter(view, rest))
    advice.append(NOT_FUSER)
    yield found(
        CODE,
        "notice" if unmeasured else "warning",
        view.subject(),
        f"{upto}{format_bytes(rest)} in use that no listed process holds; {likely[0].says}",
        evidence,
        advice,
        headline=_headline(view, rest) if nobody else None,
    )


def _headline(view: CardView, rest: int) -> str:
    busy = "" if view.busy is None else f", {view.busy:.0f} % busy"
    return (
        f"{view.name}: {format_of_total(view.used, view.total)} used and no process listed{busy}: "
        f"{format_bytes(rest)} unattributed"
    )


def _without_a_list(view: CardView, rest: int) -> Found:
    why = reason_word(view.entry, "processes_listed")
    return found(
        CODE,
        "notice",
        view.subject(),
        f"{format_bytes(rest)} used can't be attributed: the list of processes is unavailable",
        [f"processes: {why}", "that is no sign that there are none"],
        ["Run gpusnap where the driver lists processes (the host, root), or see who has the card open: --holders"],
    )


def _letter(view: CardView, rest: int) -> str:
    host = view.document["host"]["hostname"] or "this host"
    when = minute(view.document["taken_at"])
    busy = "" if view.busy is None else f", {view.busy:.0f} % busy"
    # A card at work, or processes without a figure: that is somebody's memory, as likely as a leftover.
    leftover = " it may be a leftover," if view.is_idle and not view.is_bounded else ""
    size = f"{'up to ' if view.is_bounded else ''}{format_bytes(rest)}"
    return (
        f'To the admin: "{view.name} on {host}: {size} in use at {when} that no listed process holds{busy};'
        f'{leftover} please look as root: gpusnap explain gpu:{_selector(view)}."'
    )


def _selector(view: CardView) -> str:
    """A partition's number is not its card's: it is named by its id."""
    index = view.card["index"]
    return view.card["id"] if index is None or view.card["partition"] is not None else str(index)
