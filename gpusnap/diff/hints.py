"""Why nothing listed explains a change of unattributed memory: what could not be seen, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from gpusnap.diff.match import Pair
    from gpusnap.diff.processes import Verdict
    from gpusnap.model import Adapter

_NAMED_PIDS = 4


def why_nothing_explains(
    pair: Pair, verdicts: list[Verdict], delta: int, beyond: int | None, *, left_clean: bool
) -> str:
    """One sentence; what was hidden from the snapshots is named, since it is where the answer may lie.

    `beyond`: what is left over after those who were named; `left_clean`: some exited, and it was not they.
    """
    if beyond is not None:
        words = f"{format_bytes(beyond)} more than these held"
    elif delta < 0:
        words = "memory came free that no process was listed for"
    elif left_clean:
        words = "the processes that exited gave their memory back"
    else:
        words = "no process exited or lost its figure"
    hidden = _hidden(pair.after if delta > 0 else pair.before, verdicts, grown=delta > 0)
    return f"{words}; {'; '.join(hidden)}" if hidden else words


def _hidden(card: Adapter | None, verdicts: list[Verdict], *, grown: bool) -> list[str]:
    if card is None:
        return []
    hidden = []
    rows = [verdict.after if grown else verdict.before for verdict in verdicts]
    listed = [row for row in rows if row is not None]
    unmeasured = sorted(row["pid"] for row in listed if row["vram_bytes"] is None)
    if unmeasured:
        hidden.append(f"{_pids(unmeasured)} without a figure")
    if card["unreadable_pids"]:
        count = card["unreadable_pids"]
        hidden.append(f"{count} process{'' if count == 1 else 'es'} could not be looked into")
    elif card["processes_listed"] == "partial":
        hidden.append("the list of processes is partial")
    known = {row["pid"] for row in listed}
    holders = sorted({holder["pid"] for holder in card["holders"] or ()} - known)
    if holders:
        hidden.append(f"{_pids(holders)} with the device open but not listed")
    return hidden


def _pids(pids: list[int]) -> str:
    named = ", ".join(map(str, pids[:_NAMED_PIDS])) + (", …" if len(pids) > _NAMED_PIDS else "")
    return f"pid {named}" if len(pids) == 1 else f"{len(pids)} pids ({named})"
