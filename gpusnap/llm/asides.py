"""Builds what `explain` says of a model server beside the document, from the evidence of a live look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import pool_parts
from gpusnap.llm.aside import Aside, Extra
from gpusnap.llm.aside_words import api_words, dominating, model_words
from gpusnap.llm.caches import cache_settings, caches_of
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.weights import weights
from gpusnap.reading import Reading, computed, estimated, null, reported
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.gpu_row import GpuRow


def aside_of(evidence: Evidence, rows: Sequence[GpuRow], now: float) -> Aside:
    """`now`: seconds since 1970."""
    header = evidence.header
    extras = [*_pool(evidence, rows), *_torch(evidence, rows), *_claims(evidence), *_counts(evidence)]
    extras += _projection(evidence)
    words = [*api_words(evidence, now), *model_words(evidence)]
    if header is not None and len(rows) > 1:
        extras += _over_all_cards(evidence, header)
        words += dominating(evidence, header, rows)
    return Aside(
        tuple(extras),
        tuple(clean(text) for text in words),
        _formula(evidence, header) if header is not None else None,
        _cache_at(evidence, header) if header is not None else None,
        _in_one_pool(evidence),
    )


def _in_one_pool(evidence: Evidence) -> bool | None:
    settings = cache_settings(evidence.workload)
    return None if isinstance(settings, Reading) else settings[0].unified


def _cache_at(evidence: Evidence, header: Header) -> Callable[[int], int | None] | None:
    if isinstance(caches_of(evidence, header), Reading):
        return None

    def cache_at(tokens: int) -> int | None:
        caches = caches_of(evidence, header, tokens)
        value = None if isinstance(caches, Reading) else caches.total.value
        return value if isinstance(value, int) else None

    return cache_at


def _formula(evidence: Evidence, header: Header) -> str | None:
    """`40 layers × 8 heads × (128 + 128) × f16`, where all layers are alike."""
    try:
        facts = Facts(header)
        heads = set(facts.per_layer("attention.head_count_kv", facts.per_layer("attention.head_count", [])))
        key, value = facts.number("attention.key_length", 0), facts.number("attention.value_length", 0)
    except Unsettled:
        return None
    workload = evidence.workload
    type_k, type_v = (workload.type_k or "f16").lower(), (workload.type_v or "f16").lower()
    cache = caches_of(evidence, header)
    if isinstance(cache, Reading) or cache.draft is not None or cache.per_token.value is None:
        return None
    if len(heads) != 1 or not key or not value:
        return None
    types = type_k if type_k == type_v else f"{type_k} and {type_v}"
    count = heads.pop()
    if type_k == type_v == "f16" and cache.per_token.value != facts.trunk * count * (key + value) * 2:
        return None  # not every layer keeps its own
    return f"{facts.trunk} layers × {count} heads × ({key} + {value}) × {types}"


def _over_all_cards(evidence: Evidence, header: Header) -> list[Extra]:
    """The whole model, where what is on which card is not known."""
    stored = weights(header, evidence.workload.drafts, "gguf").total
    cache = caches_of(evidence, header)
    kv = cache if isinstance(cache, Reading) else cache.total
    return [
        Extra("weights_on_all_cards_bytes", "bytes", stored, "weights over all its cards and system memory"),
        Extra("kv_cache_on_all_cards_bytes", "bytes", kv, "KV cache over all its cards and system memory"),
    ]


def _pool(evidence: Evidence, rows: Sequence[GpuRow]) -> list[Extra]:
    """vLLM's share of the card by policy, and what lies outside it (vllm-ascend#89: 6 to 11 GB)."""
    if evidence.workload.server != "vllm":
        return []
    extras = []
    for row in rows:
        taken = pool_parts.budget(evidence, row)
        if taken is None:
            continue
        nbytes, source = taken
        make = reported if source == "log" else computed
        extras.append(
            Extra("budget_bytes", "bytes", make(nbytes, source), "what it may take of the card, by policy")
        )
        if row.held is not None and row.held > nbytes:
            outside = computed(row.held - nbytes, "vram-budget")
            extras.append(
                Extra("outside_budget_bytes", "bytes", outside, "outside the budget: graphs, runtime, context")
            )
    for name, words in (
        ("non_torch_bytes", "outside PyTorch: context, NCCL, libraries"),
        ("activation_bytes", "the peak of activations that was profiled at start"),
    ):
        value = getattr(evidence.rank, name, None)
        if isinstance(value, int):
            extras.append(Extra(name, "bytes", reported(value, "log"), words))
    return extras


def _projection(evidence: Evidence) -> list[Extra]:
    """Where the log has no sizes of the load itself."""
    if not evidence.projection:
        return []
    compute = sum(row.compute for row in evidence.projection)
    says = "compute buffers by the engine's own projection before loading (--fit): no measurement"
    return [Extra("projected_compute_bytes", "bytes", estimated(compute, "log.fit"), says)]


def _torch(evidence: Evidence, rows: Sequence[GpuRow]) -> list[Extra]:
    """ComfyUI: what PyTorch has reserved, how much of that is free for the next run, and what lies outside it."""
    api = evidence.workload.api
    total, free = api.get("torch_vram_total"), api.get("torch_vram_free")
    if not isinstance(total, int) or not isinstance(free, int) or free > total:
        return []
    source = "api./system_stats"
    extras = [
        Extra("torch_reserved_bytes", "bytes", reported(total, source), "reserved by PyTorch's allocator"),
        Extra(
            "torch_cache_bytes", "bytes", reported(free, source), "of that free: a cache for the next run, no leak"
        ),
        Extra(
            "torch_used_bytes", "bytes", computed(total - free, source), "of that in use: loaded models, tensors"
        ),
    ]
    held = rows[0].held if len(rows) == 1 else None
    if held is not None and held >= total:
        rest = computed(held - total, "vram-torch_reserved")
        extras.append(
            Extra("outside_torch_bytes", "bytes", rest, "CUDA context and what custom nodes hold outside it")
        )
    return extras


def _claims(evidence: Evidence) -> list[Extra]:
    return [
        Extra("claimed_bytes", "bytes", reported(claim, source), f"{source}: its own estimate, not a measurement")
        for source, claim in evidence.workload.claims.items()
    ]


def _counts(evidence: Evidence) -> list[Extra]:
    api = evidence.workload.api
    extras = []
    share = api.get("used_share")
    if isinstance(share, float):
        used = reported(round(100 * share, 1), "api./metrics")
        extras.append(Extra("kv_used_percent", "percent", used, "of the KV pool in use now"))
    silence = evidence.api_silence
    if silence is not None:
        why = null(silence.reason, str(silence))
        extras.append(Extra("api", "text", why, "the local interface was not read"))
    return extras
