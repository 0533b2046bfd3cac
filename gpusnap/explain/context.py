"""What other context lengths would take: linear in the tokens, where `kv_bytes_per_token` says that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.model import Adapter, ContextRow, Process


def context_rows(row: Process, card: Adapter, tokens: Sequence[int]) -> list[ContextRow]:
    """`fits`: the growth over today's cache is at most what is free on the card."""
    llm = row["llm"]
    per_token = None if llm is None else llm["kv_bytes_per_token"]
    today = None if llm is None else llm["kv_cache_bytes"]
    now = None if llm is None else llm["context_tokens"]
    free = card["memory"]["free_bytes"]
    rows: list[ContextRow] = []
    for wanted in tokens:
        if per_token is None or today is None or now is None:
            rows.append({"tokens": wanted, "kv_cache_bytes": None, "fits": None})
            continue
        growth = (wanted - now) * per_token
        fits = None if free is None else growth <= free
        rows.append({"tokens": wanted, "kv_cache_bytes": max(0, today + growth), "fits": fits})
    return rows
