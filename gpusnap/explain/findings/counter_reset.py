"""A counter that fell: the driver was loaded anew, or the card was reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.words import count_of, minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(history: History) -> Iterator[Found]:
    for track in history.cards.values():
        resets = sorted({time for counter in track.counters.values() for time in counter.resets})
        if not resets:
            continue
        names = sorted(leaf for leaf, counter in track.counters.items() if counter.resets)
        yield found(
            "counter-reset",
            "info",
            {"kind": "adapter", "adapter": track.id, "pid": None, "start_ticks": None, "source": None},
            f"counters began anew {count_of(len(resets), 'time')}",
            [f"{', '.join(names)} fell at {', '.join(minute(time) for time in resets[:5])}"],
            [
                "The driver was loaded anew or the card was reset; growth is counted from there, never as "
                "a negative."
            ],
        )
