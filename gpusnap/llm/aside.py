"""What a live look at a process gives beyond the document: further figures, words, and its cache at other lengths.

`explain` shows it beside the document's figures. Nothing here is a figure of the snapshot: a claim, a policy, a
date by which a server means to unload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.llm import header_parts, pool_parts
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.kv_cache import cache_size
from gpusnap.reading import Reading, computed, null, reported
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.gpu_row import GpuRow


class Extra(NamedTuple):
    """A figure beside the document's; `unit` as in the explanation document."""

    field: str
    unit: str
    reading: Reading
    says: str


class Aside(NamedTuple):
    """`cache_at(tokens)` is the whole cache in bytes, None where there is no figure for it."""

    extras: tuple[Extra, ...] = ()
    says: tuple[str, ...] = ()
    formula: str | None = None
    cache_at: Callable[[int], int | None] | None = None


NOTHING = Aside()


def aside_of(evidence: Evidence, rows: Sequence[GpuRow]) -> Aside:
    extras = [*_pool(evidence, rows), *_torch(evidence, rows), *_claims(evidence), *_counts(evidence)]
    header = evidence.header
    return Aside(
        tuple(extras),
        tuple(clean(text) for text in [*_api_words(evidence), *_model_words(evidence)]),
        _formula(evidence, header) if header is not None else None,
        _cache_at(evidence, header) if header is not None else None,
    )


def _cache_at(evidence: Evidence, header: Header) -> Callable[[int], int | None] | None:
    found = header_parts.cache_settings(evidence.workload)
    if isinstance(found, Reading) or evidence.workload.drafts or evidence.workload.draft is not None:
        return None
    settings = found[0]

    def cache_at(tokens: int) -> int | None:
        value = cache_size(header, settings.at(tokens)).total.value
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
    cache = header_parts.cache_of(header, workload)
    if isinstance(cache, Reading) or cache.per_token.value is None or len(heads) != 1 or not key or not value:
        return None
    types = type_k if type_k == type_v else f"{type_k} and {type_v}"
    count = heads.pop()
    if type_k == type_v == "f16" and cache.per_token.value != facts.trunk * count * (key + value) * 2:
        return None  # not every layer keeps its own
    return f"{facts.trunk} layers × {count} heads × ({key} + {value}) × {types}"


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


def _api_words(evidence: Evidence) -> list[str]:
    workload, api = evidence.workload, evidence.workload.api
    words: list[str] = []
    slots, slot = api.get("total_slots"), api.get("slot_context")
    if isinstance(slots, int):
        of = f" of {slot:,} tokens" if isinstance(slot, int) else ""
        build = f", build {api['build_info']}" if "build_info" in api else ""
        words.append(f"/props: {slots} slot{'s' if slots != 1 else ''}{of}{build} · {_agreement(evidence)}")
    if api.get("is_sleeping") is True:
        words.append("/props: the server sleeps: its model is unloaded")
    if isinstance(api.get("expires_at"), str):
        words.append(
            f"/api/ps: {api.get('name', 'the model')} stays loaded until {api['expires_at']} (keep_alive)"
        )
    if workload.server == "ollama" and workload.claims:
        words.append(
            "/api/ps: size_vram is ollama's estimate; it loses the larger of two caches and any draft model"
        )
    if evidence.api_silence is not None and evidence.api_silence.reason != "none":
        words.append(f"its local interface: {evidence.api_silence}")
    return words


def _agreement(evidence: Evidence) -> str:
    """Do the flags and the API say the same?"""
    workload, api = evidence.workload, evidence.workload.api
    flagged = workload.sources.get("sequences") in ("cmdline", "environ")
    if flagged and api.get("total_slots") != workload.sequences:
        return f"the flags say {workload.sequences} slots"
    slot, context = api.get("slot_context"), workload.context
    if workload.sources.get("context") in ("cmdline", "environ") and isinstance(slot, int) and context is not None:
        whole = slot * (1 if workload.unified else workload.sequences or 1)
        if slot > context or (whole < context // 2 and not workload.unified):
            return f"the flags say {context:,} tokens in all"
    return "agrees with the flags"


def _model_words(evidence: Evidence) -> list[str]:
    workload = evidence.workload
    words = []
    if workload.role in ("router", "front"):
        words.append("it holds a context and no model: its children load the models")
    if any(file.deleted for file in evidence.files):
        words.append("its model file is deleted: the memory stays in use until the server unloads it or ends")
    if any(file.role == "mmproj" for file in evidence.files):
        words.append("the projector's compute buffers come with the first image")
    if workload.server == "koboldcpp" and not workload.windows and _has_window(evidence):
        words.append("layers with a sliding window are cached at full size: --useswa keeps only the window")
    if workload.server == "ollama" and workload.sources.get("context") == "cmdline" and workload.sequences:
        each = (workload.context or 0) // workload.sequences
        tier = " (ollama's default for a card of this size)" if each in (4096, 32768, 262144) else ""
        words.append(f"each of {workload.sequences} requests at once may use {each:,} tokens{tier}")
    return words


def _has_window(evidence: Evidence) -> bool:
    header = evidence.header
    if header is None:
        return False
    return bool(header.number(f"{header.architecture}.attention.sliding_window"))
