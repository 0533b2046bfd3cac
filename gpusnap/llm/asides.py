"""Builds what `explain` says of a model server beside the document, from the evidence of a live look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import pool_parts
from gpusnap.llm.aside import Aside, Extra
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
    words = [*_api_words(evidence, now), *_model_words(evidence)]
    if header is not None and len(rows) > 1:
        extras += _over_all_cards(evidence, header)
        words += _dominating(evidence, header, rows)
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


def _dominating(evidence: Evidence, header: Header, rows: Sequence[GpuRow]) -> list[str]:
    """ollama#17251: 90 GB over four cards, and nearly all of it is the cache of a long context."""
    cache = caches_of(evidence, header)
    held = sum(row.held for row in rows if row.held is not None)
    total = None if isinstance(cache, Reading) else cache.total.value
    if not isinstance(total, int) or not held or 2 * total < held:
        return []
    share = (
        f"{100 * total / held:.0f} % of what it holds on {len(rows)} cards" if total <= held else "more than that"
    )
    return [f"the KV cache of {evidence.workload.context:,} tokens dominates: {_gib(total)}, {share}"]


def _gib(nbytes: int) -> str:
    return f"{nbytes / (1 << 30):.1f} GiB"


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


def _api_words(evidence: Evidence, now: float) -> list[str]:
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
        words.append(_keep_alive(evidence, now))
    if workload.server == "ollama" and workload.claims:
        words.append(
            "/api/ps: size_vram is ollama's estimate; it loses the larger of two caches and any draft model"
        )
    if evidence.api_silence is not None and evidence.api_silence.reason != "none":
        words.append(f"its local interface: {evidence.api_silence}")
    return words


def _keep_alive(evidence: Evidence, now: float) -> str:
    """ollama keeps a model for a while after its last use; one that stays longer is to be unloaded (a warning)."""
    from gpusnap.llm.notices import until

    name, said = (str(evidence.workload.api.get(key, "the model")) for key in ("name", "expires_at"))
    moment = until(evidence)
    if moment is None:
        return f"/api/ps: {name} stays loaded until {said!r} (keep_alive)"
    if moment < now:
        return f"/api/ps: {name}: unload pending since {said}: it was to be gone by then and still holds memory"
    return f"/api/ps: {name} stays loaded until {said} (keep_alive), in use or not"


def _agreement(evidence: Evidence) -> str:
    """Do the flags and the API say the same?"""
    workload, api = evidence.workload, evidence.workload.api
    flagged = workload.sources.get("sequences") in ("cmdline", "environ")
    if flagged and api.get("total_slots") != workload.sequences:
        return f"the flags say {workload.sequences} slot{'s' if workload.sequences != 1 else ''}"
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
    load = evidence.load
    if load is not None and load.total("compute") > max(load.total("weights"), 1 << 30) // 2:
        settings = load.contexts[0].settings if load.contexts else {}
        words.append(
            f"large compute buffers: they follow -ub (here {settings.get('n_ubatch', 'not said')}) and the model"
        )
    if any(file.role == "mmproj" for file in evidence.files):
        words.append("the projector's compute buffers come with the first image")
    if workload.server == "koboldcpp" and not workload.windows and _has_window(evidence):
        words.append("layers with a sliding window are cached at full size: --useswa keeps only the window")
    if workload.server == "ollama" and workload.sources.get("context") == "cmdline" and workload.sequences:
        each = (workload.context or 0) // workload.sequences
        tier = " (ollama's default for a card of this size)" if each in (4096, 32768, 262144) else ""
        words.append(f"each of {workload.sequences} requests at once may use {each:,} tokens{tier}")
    pool = workload.api.get("kv_bytes")
    if workload.server == "sglang" and isinstance(pool, int):
        words.append(f"/server_info: a KV pool of {_gib(pool)}; what is free on the card lies beside it")
    return words


def _has_window(evidence: Evidence) -> bool:
    header = evidence.header
    if header is None:
        return False
    return bool(header.number(f"{header.architecture}.attention.sliding_window"))
