"""Memory errors: uncorrected ones since the driver was loaded, or many corrected ones.

The volatile counters begin anew when the driver is loaded, so they are growth; the aggregate counters are the
card's whole life and say nothing alone (wandb#9347: a healthy card looked broken). Severity goes by the kind of
error, not by their number (azurehpc#752).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Adapter

CODE = "ecc-growth"
ERROR = "uncorrected memory error"


def find(view: CardView) -> Iterator[Found]:
    ecc = view.card["ecc"]
    uncorrected, corrected = ecc["uncorrected_volatile"], ecc["corrected_volatile"]
    if uncorrected is not None and uncorrected > 0:
        yield found(
            CODE,
            "critical",
            view.subject(),
            f"{count_of(uncorrected, ERROR)} since the driver was loaded",
            [
                *counters(view.card),
                "an allocation or kernel that meets such an error fails, whatever memory is free",
            ],
            [
                "Drain the card, reset it or reboot, and watch: if the count grows again, have the card replaced.",
                "First mend this: out-of-memory messages and failing jobs on this card may have no other cause.",
            ],
            headline=f"{view.name} has {count_of(uncorrected, ERROR)}",
        )
    elif corrected is not None and corrected >= at.CORRECTED_ERRORS:
        yield found(
            CODE,
            "notice",
            view.subject(),
            f"{corrected:,} corrected memory errors since the driver was loaded",
            [*counters(view.card), "corrected errors cost nothing; many of them can announce a failing part"],
            [
                "No need to take the card out of service. Watch the count: gpusnap record ecc.jsonl "
                "--every 1h --for 1d"
            ],
        )


def find_in_history(history: History) -> Iterator[Found]:
    """Growth between the first and the last sample; a steady aggregate is no alarm."""
    for track in history.cards.values():
        for leaf, severity in (("uncorrected_aggregate", "critical"), ("uncorrected_volatile", "critical")):
            counter = track.counters.get(leaf)
            if counter is None or counter.grown == 0:
                continue
            yield found(
                CODE,
                severity,  # type: ignore[arg-type]
                {"kind": "adapter", "adapter": track.id, "pid": None, "start_ticks": None, "source": None},
                f"{count_of(round(counter.grown), 'new ' + ERROR)} during the recording",
                [f"{leaf}: {counter.first} → {counter.last}", *counters(track.last_row)],
                ["Drain the card, reset it or reboot; if the count grows again, have the card replaced."],
            )
            break


def counters(card: Adapter) -> list[str]:
    """Both counters with their meaning."""
    ecc = card["ecc"]
    lines = []
    for scope, meaning in (("volatile", "since the driver was loaded"), ("aggregate", "in the card's life")):
        corrected, uncorrected = ecc[f"corrected_{scope}"], ecc[f"uncorrected_{scope}"]  # type: ignore[literal-required]
        if corrected is not None or uncorrected is not None:
            lines.append(f"{scope} ({meaning}): {_count(corrected)} corrected, {_count(uncorrected)} uncorrected")
    if ecc["remapped_rows"] is not None:
        lines.append(f"{count_of(ecc['remapped_rows'], 'row')} remapped: repaired for good")
    if ecc["retired_pages"] is not None:
        lines.append(f"{count_of(ecc['retired_pages'], 'page')} retired")
    return lines


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
