"""GPU memory of a process that lies in system memory while the card is full: slow, and often unnoticed.

Only where the card has memory of its own, and only from measured bytes: what a server claims about itself
(ollama#10445: "100 % GPU") is judged by claim-contradicts-measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import entry_of, who
from gpusnap.render.units import format_bytes, format_of_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    if view.card["memory"]["kind"] != "dedicated" or not view.is_full:
        return
    for row in view.rows:
        spilled = row["spill_bytes"]
        source = entry_of(view.document, row).get("spill_bytes", "")
        if spilled is None or spilled < at.SPILL_BYTES or not source.startswith("measured:"):
            continue
        yield found(
            "spill",
            "notice",
            view.subject(row),
            f"{who(row)}: {format_bytes(spilled)} of its GPU memory lie in system memory",
            [
                f"{format_bytes(row['vram_bytes'])} in the card, {format_bytes(spilled)} in system memory "
                f"({source})",
                f"the card is full: {format_of_total(view.used, view.total)}",
            ],
            [
                "Each access to it crosses the bus. A smaller model, context or batch, or fewer layers on "
                "the card, "
                "lets the rest fit; part of it may be buffers that belong there.",
            ],
        )
