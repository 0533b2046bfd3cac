"""What `explain` says of a model server in words, beside its figures: of its API, its model, its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.caches import caches_of
from gpusnap.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.gpu_row import GpuRow


def dominating(evidence: Evidence, header: Header, rows: Sequence[GpuRow]) -> list[str]:
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


def api_words(evidence: Evidence, now: float) -> list[str]:
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


def model_words(evidence: Evidence) -> list[str]:
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
    asked = workload.context if workload.sources.get("context") == "cmdline" else None
    if workload.server == "ollama" and asked is not None and workload.sequences:
        each = asked // workload.sequences
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


def _gib(nbytes: int) -> str:
    return f"{nbytes / (1 << 30):.1f} GiB"
