"""Weights and cache of a card computed from the header of the model file and the settings.

Only what the engine would really put on this card counts. That needs to know how many layers are there: from -ngl,
from the log, or, since the default is "as many as fit", from the measurement: if everything fits into what the
process holds, everything is taken to be there, and the figure says `inferred`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.gguf_header import Header
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.kv_cache import CacheSettings, CacheSize, cache_size
from gpusnap.llm.parts import NOT_SAID, Parts
from gpusnap.llm.placement import Placement, place
from gpusnap.llm.readings import as_kind, number, total
from gpusnap.llm.weights import Weights, weights
from gpusnap.reading import Reading, computed, null

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gpu_row import GpuRow
    from gpusnap.llm.model_files import ModelFile
    from gpusnap.llm.workload import Workload

    HeaderOf = Callable[[ModelFile], Header | Reading]

NO_COMPUTE = null("not-exposed", "the log states no buffer sizes (llama-server: -lv 4)")
_UNKNOWN_LAYERS = null("ambiguous", "part of the model is in system memory: how many layers only a log tells")
_BY_HAND = null("ambiguous", "tensors were placed by hand (-ot)")
_DEFAULT_SLOTS = 4


def cache_settings(workload: Workload) -> tuple[CacheSettings, str] | Reading:
    """What the engine was told, with the sources in words; a reading that says what is missing."""
    if workload.context is None:
        return null("ambiguous", "the context is not in the command line, and nobody was asked")
    names = ["context", "type_k", "type_v", "sequences", "unified", "swa_full", "ubatch", "flash_attention"]
    source = workload.source_of(*names)
    sequences, unified = workload.sequences, workload.unified
    if sequences is None:
        is_server = workload.role == "server" and workload.server == "llama.cpp"
        sequences, unified = (_DEFAULT_SLOTS, True) if is_server else (1, False)
        source += f"+defaults:{workload.server or 'llama.cpp'}"
    return (
        CacheSettings(
            workload.context,
            sequences=sequences,
            unified=bool(unified),
            type_k=(workload.type_k or "f16").lower(),
            type_v=(workload.type_v or "f16").lower(),
            ubatch=workload.ubatch if workload.ubatch is not None else 512,
            flash_attention=workload.flash_attention is not False,
            swa_full=workload.swa_full is True,
            windows=workload.windows,
        ),
        source,
    )


def cache_of(header: Header, workload: Workload) -> CacheSize | Reading:
    """The whole cache, wherever its layers are."""
    if workload.drafts or workload.draft is not None:
        return null("ambiguous", "a draft context comes on top: only a log tells its size")
    found = cache_settings(workload)
    if isinstance(found, Reading):
        return found
    settings, source = found
    return cache_size(header, settings, f"gguf+{source}" if source else "gguf")


def from_header(evidence: Evidence, rows: Sequence[GpuRow], header_of: HeaderOf) -> list[Parts]:
    """For each row its parts."""
    header = evidence.header
    if header is None:
        missing = evidence.header_reading
        return [Parts(missing, missing, NO_COMPUTE, NOT_SAID, missing) for _ in rows]
    workload = evidence.workload
    stored = weights(header, workload.drafts, "gguf")
    cache = cache_of(header, workload)
    per_token = cache if isinstance(cache, Reading) else cache.per_token
    placed = _place(evidence, header, rows, stored, cache)
    found = []
    for card in range(len(rows)):
        if isinstance(placed, Reading):
            on_card, kv = placed, placed
        else:
            placement, kind, words = placed
            on_card = as_kind(stored.on_card(placement, card, workload.cpu_experts), kind, words)
            kv = (
                cache
                if isinstance(cache, Reading)
                else as_kind(cache.on_layers(placement.cards[card]), kind, words)
            )
        if workload.overrides:
            on_card = _BY_HAND
        if not workload.kv_offload:
            kv = computed(0, "cmdline -nkvo")
        elif isinstance(cache, CacheSize) and cache.total.value == 0:
            kv = cache.total  # an engine without any cache has none on any card
        extra = _extras(evidence, header_of) if card == 0 else []
        found.append(Parts(total([on_card, *extra]), kv, NO_COMPUTE, NOT_SAID, per_token))
    return found


def _place(
    evidence: Evidence, header: Header, rows: Sequence[GpuRow], stored: Weights, cache: CacheSize | Reading
) -> tuple[Placement, str, str] | Reading:
    """(placement, kind, words for the provenance), or why the layers' cards are not known."""
    workload = evidence.workload
    try:
        layers = Facts(header).layers
    except Unsettled as unsettled:
        return null(unsettled.reason, unsettled.words)
    shares = _shares(workload, rows)
    if shares is None:
        return null("ambiguous", f"over {len(rows)} cards: which layer is where only a log tells")
    wanted = workload.gpu_layers
    if wanted is not None and (wanted >= 0 or wanted == -2):
        placement = place(layers, -1 if wanted < 0 else wanted, shares, workload.output_counts)
        source = f"-ngl {wanted if wanted >= 0 else 'all'}"
        return (placement, "computed", source) if placement is not None else _UNKNOWN_LAYERS
    placement = place(layers, -1, shares)
    if placement is None:
        return _UNKNOWN_LAYERS
    return (placement, "inferred", "all layers fit") if _fits(placement, rows, stored, cache) else _UNKNOWN_LAYERS


def _shares(workload: Workload, rows: Sequence[GpuRow]) -> list[float] | None:
    if len(rows) == 1:
        return [1.0]
    if workload.tensor_split is None or workload.split_mode not in (None, "layer"):
        return None
    try:
        shares = [float(part) for part in workload.tensor_split.replace("/", ",").split(",") if part]
    except ValueError:
        return None
    in_order = [row.number for row in rows] == sorted(row.number or 0 for row in rows)
    return shares if len(shares) == len(rows) and in_order else None


def _fits(placement: Placement, rows: Sequence[GpuRow], stored: Weights, cache: CacheSize | Reading) -> bool:
    """All of it is in what is measured; where nothing is measured there is no telling."""
    for card, row in enumerate(rows):
        on_card = stored.on_card(placement, card)
        kv = cache if isinstance(cache, Reading) else cache.on_layers(placement.cards[card])
        if row.held is None or on_card.value is None:
            return False
        if number(on_card) + (number(kv) if kv.value is not None else 0) > row.held:
            return False
    return True


def _extras(evidence: Evidence, header_of: HeaderOf) -> list[Reading]:
    """Weights beside the model's: a projector, adapters, a draft model."""
    found = []
    for file in evidence.files:
        if file.role not in ("mmproj", "lora", "draft"):
            continue
        if file.role == "mmproj" and not evidence.workload.mmproj_offload:
            continue
        header = header_of(file)
        found.append(header if isinstance(header, Reading) else weights(header, None, f"gguf.{file.role}").total)
    return found
