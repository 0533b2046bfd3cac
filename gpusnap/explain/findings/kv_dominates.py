"""Most of what a server holds is its key-value cache, not the model.

vllm#4723: a 125M model takes 20 GB, since vLLM fills a share of the card (0.9) with its cache whatever the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import entry_of, who
from gpusnap.explain.words import count_of
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import LlmFacts, Process

_POOLS = {
    "vllm": ("--gpu-memory-utilization", "0.9"),
    "sglang": ("--mem-fraction-static", "a share that depends on the card"),
}


def find(view: CardView) -> Iterator[Found]:
    for row in view.rows:
        llm = row["llm"]
        if llm is None or row["vram_bytes"] is None:
            continue
        cache = llm["kv_cache_bytes"]
        if cache is None or cache < at.KV_SHARE * row["vram_bytes"] or cache > row["vram_bytes"]:
            continue
        weights = llm["weights_bytes"]
        if weights is not None and weights >= cache:
            continue
        yield _found(view, row, llm, cache, entry_of(view.document, row))


def _found(view: CardView, row: Process, llm: LlmFacts, cache: int, entry: Mapping[str, str]) -> Found:
    held = row["vram_bytes"]
    share = "" if held is None or held == 0 else f" ({100 * cache / held:.0f} %)"
    pool = _POOLS.get((llm["server"] or "").lower())
    evidence = [
        f"KV cache {format_bytes(cache)} of {format_bytes(held)}{share}, {_kind(entry, 'llm.kv_cache_bytes')}",
        f"weights {format_bytes(llm['weights_bytes'])}, {_kind(entry, 'llm.weights_bytes')}",
    ]
    if llm["context_tokens"] is not None:
        evidence.append(f"{llm['context_tokens']:,} tokens of context, {_sequences(llm['sequences'])}")
    if llm["kv_cache_used_bytes"] is not None:
        evidence.append(f"in use now: {format_bytes(llm['kv_cache_used_bytes'])}")
    if pool is not None:
        flag, default = pool
        evidence.append(
            f"{llm['server']} fills a share of the card in advance, whatever the model ({flag}, {default})"
        )
        advice = [
            f"It is a policy, not the model's need: a lower {flag} leaves memory to others and holds fewer tokens."
        ]
    else:
        advice = [
            "A shorter context (-c), fewer parallel sequences (-np), or a smaller cache type (-ctk q8_0 "
            "-ctv q8_0) "
            "make it smaller in proportion: gpusnap explain " + f"{row['pid']} --context 8k,16k,32k",
        ]
    return found(
        "kv-dominates",
        "info",
        view.subject(row),
        f"{who(row)}: {format_bytes(cache)} of its {format_bytes(row['vram_bytes'])} are KV cache, not weights",
        evidence,
        advice,
    )


def _kind(entry: Mapping[str, str], leaf: str) -> str:
    """`computed`, `reported`, `estimated`: an estimate is marked as one."""
    return entry.get(leaf, "no source recorded").partition(":")[0]


def _sequences(number: int | None) -> str:
    return "sequences unknown" if number is None else count_of(number, "sequence")
