"""Weights and cache of a card computed from the header of the model file and the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.caches import Caches, caches_of
from gpusnap.llm.parts import NOT_SAID, Parts
from gpusnap.llm.readings import as_kind, number
from gpusnap.llm.weights import weights
from gpusnap.llm.where import where_of
from gpusnap.reading import Reading, computed, null

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gpu_row import GpuRow
    from gpusnap.llm.where import HeaderOf, Where

NO_COMPUTE = null("not-exposed", "the log states no buffer sizes (llama-server: -lv 4)")
_UNKNOWN_LAYERS = null("ambiguous", "part of the model is in system memory: how many layers only a log tells")
_WHICH_PROJECTOR = null("ambiguous", "which projector of the repository is loaded")
_NO_DRAFT_FILE = null("ambiguous", "a draft model from a repository (-hfd): only a log tells its size")


def from_header(evidence: Evidence, rows: Sequence[GpuRow], header_of: HeaderOf) -> list[Parts]:
    """For each row its parts."""
    header = evidence.header
    if header is None:
        missing = evidence.header_reading
        return [Parts(missing, missing, NO_COMPUTE, NOT_SAID, missing) for _ in rows]
    caches = caches_of(evidence, header)
    per_token = caches if isinstance(caches, Reading) else caches.per_token
    where = where_of(evidence, header, rows)
    if isinstance(where, Reading):
        shares = [(where, where) for _ in rows]
    else:
        stored = weights(header, evidence.workload.drafts, "gguf")
        shares = [
            (where.weights_on(card, stored, evidence, header_of), _cache_on(card, where, caches))
            for card in range(len(rows))
        ]
        if where.assumed and not _fit(shares, rows, evidence):
            shares = [(_UNKNOWN_LAYERS, _UNKNOWN_LAYERS) for _ in rows]
    return [
        Parts(_all_weights(evidence, on_card), _all_caches(evidence, kv, caches), NO_COMPUTE, NOT_SAID, per_token)
        for on_card, kv in shares
    ]


def _cache_on(card: int, where: Where, caches: Caches | Reading) -> Reading:
    if isinstance(caches, Reading):
        return caches
    return as_kind(caches.on_card(where.placement, where.draft, card), where.kind, where.words)


def _all_weights(evidence: Evidence, on_card: Reading) -> Reading:
    workload = evidence.workload
    if workload.mmproj_is_open and workload.mmproj_offload:
        return _WHICH_PROJECTOR
    return _NO_DRAFT_FILE if workload.drafting.repository is not None else on_card


def _all_caches(evidence: Evidence, kv: Reading, caches: Caches | Reading) -> Reading:
    if not evidence.workload.kv_offload:
        return computed(0, "cmdline -nkvo" if evidence.workload.server != "koboldcpp" else "cmdline lowvram")
    if isinstance(caches, Caches) and caches.total.value == 0:
        return caches.total  # an engine without any cache has none on any card
    return kv


def _fit(shares: Sequence[tuple[Reading, Reading]], rows: Sequence[GpuRow], evidence: Evidence) -> bool:
    """All of it is in what is measured; where nothing is measured there is no telling."""
    for (on_card, kv), row in zip(shares, rows, strict=True):
        if row.held is None or on_card.value is None:
            return False
        cached = number(kv) if kv.value is not None and evidence.workload.kv_offload else 0
        if number(on_card) + cached > row.held:
            return False
    return True
