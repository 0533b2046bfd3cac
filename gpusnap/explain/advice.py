"""Who is told what: the owner or root what to do, anybody else what to send to the admin.

Advice never lists pids to kill unless all of them are named by a finding as the cause and belong to the reader;
never "everything that fuser prints", which holds the display server and the driver's own helpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.explain.view import CardView
    from gpusnap.model import Holder, Process

NOT_FUSER = (
    "Do not end everything that `fuser` prints: "
    "it lists the display server, nvidia-persistenced and monitoring too."
)


def act_or_ask(
    view: CardView, rows: Sequence[Process] | Sequence[Holder], do: str, facts: str, please: str
) -> list[str]:
    """`do` for those who may; else the facts (card, bytes, since when, evidence) as a text for the admin."""
    host = view.document["host"]["hostname"] or "this host"
    letter = f'To the admin: "{view.name} on {host}: {facts}; {please}."'
    if view.viewer.may_end(rows):
        return [do]
    if view.viewer.uid is None:
        return [f"As their owner or root: {do[0].lower()}{do[1:]}", letter]
    return [f"{letter} You can't: they are another user's."]
