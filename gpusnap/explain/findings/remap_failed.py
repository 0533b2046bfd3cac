"""The card has no spare row left for a failing one: NVML GetRemappedRows, `failureOccurred`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.ecc_growth import counters
from gpusnap.explain.findings.make import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    if view.card["ecc"]["remap_failed"] is True:
        yield found(
            "remap-failed",
            "critical",
            view.subject(),
            "a failing memory row could not be replaced",
            [
                f"remap_failed: true ({view.entry.get('ecc.remap_failed', 'no source recorded')})",
                *counters(view.card),
            ],
            ["Take the card out of service and have it replaced: it has no spare row left for this bank."],
            headline=f"{view.name} has a failing memory row that could not be replaced",
        )
