"""Servers that reserve a pool in advance: vLLM and SGLang. All figures are one rank's, which is one card's.

Where neither log nor API tells the pool, the policy does: vLLM takes `--gpu-memory-utilization` (0.9) of the card,
weights and all, so the cache is about what is left of that share: an estimate, and marked as one (vllm#4723).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.hf_config import token_bytes
from gpusnap.llm.parts import NOT_SAID, Parts
from gpusnap.llm.readings import number
from gpusnap.reading import Reading, computed, estimated, null, reported

if TYPE_CHECKING:
    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gpu_row import GpuRow

_NO_LOG = null("not-exposed", "neither a log nor the API tells")


def from_pool(evidence: Evidence, row: GpuRow) -> Parts:
    """One rank's share."""
    workload, rank = evidence.workload, evidence.rank
    weights = _first(_log(rank, "weights_bytes"), _api(evidence, "weights_bytes"), _stored(evidence))
    graph = _first(_log(rank, "graph_bytes"), _api(evidence, "graph_bytes"))
    tokens = pool_tokens(evidence)
    per_token = _of_config(evidence)
    kv = _first(_log(rank, "kv_bytes"), _api(evidence, "kv_bytes"), _of_tokens(tokens, per_token))
    if kv.value is None and workload.server == "vllm":
        kv = _by_policy(evidence, row, weights)
    if tokens is not None and tokens > 0 and kv.value is not None and kv.provenance.startswith("reported:"):
        per_token = computed(number(kv) // tokens, "cache/tokens")
    used = NOT_SAID
    share = workload.api.get("used_share")
    if isinstance(share, float) and kv.value is not None:
        used = reported(round(number(kv) * share), "api./metrics")
    elif share is None and evidence.api_source is None:
        used = null("not-probed")
    return Parts(weights, kv, graph, used, per_token)


def _stored(evidence: Evidence) -> Reading:
    """The files' weights, shared out to the ranks: loading may cast them to another type."""
    hf = evidence.hf
    if hf is None or hf.weights is None:
        return _NO_LOG
    if evidence.workload.experts_apart:
        return null("ambiguous", "experts are spread over several engines: only a log tells a rank's weights")
    ranks = (evidence.workload.ranks or 1) * evidence.workload.stages
    return estimated(hf.weights.tensor_bytes // ranks, "safetensors" if ranks == 1 else f"safetensors/{ranks}")


def _of_config(evidence: Evidence) -> Reading:
    """What a token takes by config.json, on one rank."""
    hf = evidence.hf
    if hf is None or hf.config is None:
        return NOT_SAID
    dtype = evidence.workload.api.get("cache_dtype") or evidence.workload.type_k or "auto"
    found = token_bytes(hf.config, str(dtype), evidence.workload.ranks or 1)
    stages = evidence.workload.stages
    if stages == 1 or found.value is None:
        return found
    if hf.config.layers is None or hf.config.layers % stages:
        return null("ambiguous", f"which of {stages} pipeline stages holds how many layers only a log tells")
    return computed(number(found) // stages, f"config.json/{stages}")


def _of_tokens(tokens: int | None, per_token: Reading) -> Reading:
    if tokens is None or per_token.value is None:
        return _NO_LOG
    return computed(tokens * number(per_token), "tokens*config.json")


def pool_tokens(evidence: Evidence) -> int | None:
    """Tokens that the pool holds, all requests together."""
    found = evidence.workload.api.get("tokens")
    if isinstance(found, int):
        return found
    rank = evidence.rank
    tokens = getattr(rank, "tokens", None)
    if tokens is None:
        pools = getattr(rank, "pools", None)
        tokens = pools[0].tokens if pools else None
    return tokens if isinstance(tokens, int) else None


def budget(evidence: Evidence, row: GpuRow) -> tuple[int, str] | None:
    """What the policy takes of the card, and how that is known."""
    said = getattr(evidence.rank, "budget_bytes", None)
    if isinstance(said, int):
        return said, "log"
    fraction = evidence.workload.api.get("fraction") or evidence.workload.fraction
    if not isinstance(fraction, float) or row.total_bytes is None:
        return None
    source = "api./metrics" if "fraction" in evidence.workload.api else evidence.workload.source_of("fraction")
    return round(fraction * row.total_bytes), f"--gpu-memory-utilization {fraction:g} ({source})"


def _by_policy(evidence: Evidence, row: GpuRow, weights: Reading) -> Reading:
    taken = budget(evidence, row)
    if taken is None or weights.value is None or row.held is None:
        return _NO_LOG
    pool = min(taken[0], row.held) - number(weights)
    return estimated(pool, f"{taken[1]} less weights") if pool > 0 else _NO_LOG


def _log(rank: object, name: str) -> Reading:
    value = getattr(rank, name, None)
    return reported(value, "log") if isinstance(value, int) else _NO_LOG


def _api(evidence: Evidence, name: str) -> Reading:
    value = evidence.workload.api.get(name)
    return reported(value, "api./server_info") if isinstance(value, int) else _NO_LOG


def _first(*readings: Reading) -> Reading:
    """The first figure, else the first reason that says more than that nobody told."""
    found = next((reading for reading in readings if reading.value is not None), None)
    return found if found is not None else next((one for one in readings if one is not _NO_LOG), readings[0])
