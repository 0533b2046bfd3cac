"""Ranks that also opened a context on a card that is not theirs, mostly card 0.

PaddleCustomDevice#767: eight ranks, each with a context on chip 0. Their work lies on other cards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.words import pid_list
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Process


def strays(view: CardView) -> list[Process]:
    """Rows with a small context here and at least four times as much on another card."""
    largest_elsewhere: dict[int, int] = {}
    for row in view.document["processes"] or ():
        if row["adapter"] != view.card["id"] and row["vram_bytes"] is not None:
            largest_elsewhere[row["pid"]] = max(row["vram_bytes"], largest_elsewhere.get(row["pid"], 0))
    return [
        row
        for row in view.rows
        if row["vram_bytes"] is not None
        and 0 < row["vram_bytes"] <= at.BARE_CONTEXT_BYTES
        and largest_elsewhere.get(row["pid"], 0) >= at.BARE_CONTEXT_RATIO * row["vram_bytes"]
    ]


def find(view: CardView) -> Iterator[Found]:
    rows = strays(view)
    if len(rows) < 2:
        return
    held = sum(row["vram_bytes"] for row in rows if row["vram_bytes"] is not None)
    yield found(
        "bare-contexts",
        "notice",
        view.subject(),
        f"{len(rows)} processes that work on other cards keep {format_bytes(held)} of contexts here",
        [f"pids {pid_list(row['pid'] for row in rows)}, {format_bytes(held // len(rows))} each on average"],
        [
            "Let each rank see its own card only: CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES, "
            "ASCEND_RT_VISIBLE_DEVICES) "
            "per rank, or torch.cuda.set_device(local_rank) before the first call that touches a card.",
        ],
    )
