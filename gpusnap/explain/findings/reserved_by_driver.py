"""Memory that the driver keeps for itself: no process has it and none can get it.

NVML's first memory call counts it as used (gpustat#141: 308 MB used by nobody), the second tells it apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    reserved = view.card["memory"]["reserved_bytes"]
    if reserved is None or reserved < at.RESERVED_BYTES:
        return
    inside = view.card["accounting"]["reserved_bytes"]
    where = "inside the used figure" if inside is not None and inside > 0 else "beside used and free"
    yield found(
        "reserved-by-driver",
        "info",
        view.subject(),
        f"{format_bytes(reserved)} reserved by the driver",
        [f"counted {where} ({view.entry.get('memory.reserved_bytes', 'no source recorded')})"],
        ["No process holds it and nothing frees it: firmware, page tables and ECC live there."],
    )
