"""A compute process that holds a driver context and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.bare_contexts import strays
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import who
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Process


def find(view: CardView) -> Iterator[Found]:
    elsewhere = {row["pid"] for row in strays(view)}
    for row in view.rows:
        if row["pid"] in elsewhere or not _is_bare(view, row):
            continue
        yield found(
            "context-only",
            "info",
            view.subject(row),
            f"{who(row)} holds {format_bytes(row['vram_bytes'])}: about what a context alone takes",
            [f"type {row['type']}, no model file mapped, card 0 % busy"],
            ["It opened the card and loaded nothing: a router, a waiting worker, or an import that touched CUDA."],
        )


def _is_bare(view: CardView, row: Process) -> bool:
    held = row["vram_bytes"]
    return (
        held is not None
        and at.CONTEXT_ONLY_LEAST_BYTES <= held <= at.CONTEXT_ONLY_BYTES
        and row["type"] == "compute"
        and row["category"] in ("ai", "llm", "unknown")
        and row["model"] is None
        and view.is_idle
    )
