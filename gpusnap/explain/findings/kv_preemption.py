"""A cache that is full, or was: the server evicts sequences, or lets requests wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import who
from gpusnap.render.units import format_of_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    for row in view.rows:
        llm = row["llm"]
        said = [
            warning["message"]
            for warning in view.document["warnings"]
            if warning["code"] == "kv-preemption" and warning["pid"] == row["pid"]
        ]
        used = None if llm is None else llm["kv_cache_used_bytes"]
        cache = None if llm is None else llm["kv_cache_bytes"]
        full = used is not None and cache is not None and cache > 0 and used >= at.KV_FULL_SHARE * cache
        if not said and not full:
            continue
        evidence = [*said]
        if full:
            evidence.append(f"KV cache {format_of_total(used, cache)} in use (reported by the server)")
        title = (
            "its KV cache is full, requests wait or are computed anew"
            if full
            else "its KV cache was too small: requests were computed anew"
        )
        yield found(
            "kv-preemption",
            "notice",
            view.subject(row),
            f"{who(row)}: {title}",
            evidence,
            ["Fewer or shorter requests at once, a smaller cache type, or more memory for the cache."],
        )
