"""A process ended and its memory did not come free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import card_name
from gpusnap.explain.words import minute
from gpusnap.render.units import format_bytes, format_pair_in_one_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.exits import Exit
    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(history: History) -> Iterator[Found]:
    for left in history.departures.left_behind:
        card = history.cards[left.adapter]
        rest = card.last_row["accounting"]["unattributed_bytes"]
        if rest is not None and rest < left.kept // 2:
            continue  # it came free later after all
        yield found(
            "residual",
            "warning",
            {"kind": "adapter", "adapter": left.adapter, "pid": None, "start_ticks": None, "source": None},
            f"{_who(left)} exited holding {format_bytes(left.held)} and {format_bytes(left.freed)} came free",
            [
                f"at {minute(left.time)} used {format_pair_in_one_unit(left.used_before, left.used_after)}",
                f"{format_bytes(left.kept)} of it belong to no listed process since; the list was complete",
            ],
            ["See who still has the card open: gpusnap snap --holders. A child of it may keep the context."],
            headline=(
                f"{card_name(card.last_row)}: {_who(left)} exited holding {format_bytes(left.held)} and "
                f"{format_bytes(left.freed)} came free"
            ),
        )


def _who(left: Exit) -> str:
    return f"{left.name or 'a process'} {left.pid} ({left.user or 'unknown user'})"
