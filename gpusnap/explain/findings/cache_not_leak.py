"""Memory that a program keeps on purpose after its work: a framework's allocator, a model cache.

ComfyUI#6597 and #7277, pytorch#37250: high use after the work is done is what these programs do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.findings.orphan_workers import orphans
from gpusnap.explain.rows import who
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Process


def find(view: CardView) -> Iterator[Found]:
    if not view.is_idle:
        return
    left_alone = {row["pid"] for row in orphans(view)}
    for row in view.rows:
        release = release_step(row)
        held = row["vram_bytes"]
        if release is None or held is None or held < at.CACHE_BYTES or row["pid"] in left_alone:
            continue
        what, step = release
        yield found(
            "cache-not-leak",
            "info",
            view.subject(row),
            f"{who(row)} keeps {format_bytes(held)} while idle: a cache, normal for this program",
            [
                what,
                "card 0 % busy; the driver's figure is context, cache and the rest: their parts can't be "
                "seen here",
            ],
            [step],
        )


def release_step(row: Process) -> tuple[str, str] | None:
    """What keeps the memory, and how it is given back without ending the program."""
    words = " ".join(row["cmdline"] or ()).lower()
    server = (row["llm"]["server"] if row["llm"] is not None else None) or ""
    if "comfyui" in words or server == "comfyui" or "comfyui" in (row["cwd"] or "").lower():
        return (
            "ComfyUI keeps models loaded for the next run; a custom node may hold more of them",
            "Its menu has Unload Models, or POST /free with unload_models and free_memory; compare before "
            "and after: "
            "gpusnap diff.",
        )
    runtimes = row["runtimes"] or ()
    if row["category"] == "llm" and row["llm"] is not None:
        return None  # a server's weights and cache are its work, told apart by `explain PID`
    if "pytorch" in runtimes:
        return (
            "PyTorch's allocator keeps freed blocks for itself",
            "Inside the program: torch.cuda.empty_cache() after dropping the tensors. What it has "
            "allocated can't be "
            "seen from outside.",
        )
    if "tensorflow" in runtimes:
        return (
            "TensorFlow takes nearly the whole card when it starts",
            "TF_FORCE_GPU_ALLOW_GROWTH=true makes it take what it needs.",
        )
    if "jax" in runtimes:
        return (
            "JAX takes three quarters of the card when it starts",
            "XLA_PYTHON_CLIENT_PREALLOCATE=false makes it take what it needs.",
        )
    return None
