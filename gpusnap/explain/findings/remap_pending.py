"""A failing row waits to be replaced, which happens at the next reset: NVML GetRemappedRows, `isPending`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.ecc_growth import counters
from gpusnap.explain.findings.make import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    if view.card["ecc"]["remap_pending"] is True:
        yield found(
            "remap-pending",
            "warning",
            view.subject(),
            "a failing memory row waits to be replaced",
            [
                f"remap_pending: true ({view.entry.get('ecc.remap_pending', 'no source recorded')})",
                *counters(view.card),
            ],
            ["Reset the card or reboot when its jobs have ended: the row is replaced then, and the card is well."],
        )
