"""MLA (one compressed row instead of keys and values) and the indexers of sparse attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv import families
from gpusnap.llm.kv.facts import Unsettled

if TYPE_CHECKING:
    from gpusnap.llm.kv.facts import Facts
    from gpusnap.llm.kv.plan import Layer, Plan

EVERY_4, EVERY_128 = 4, 128  # tokens that a compressed row of deepseek4 stands for

_INDEX_WIDTH = "attention.indexer.key_length"
_INDEX_TYPES = "attention.indexer.types"
_INDEXED = frozenset({"deepseek32", "glm-dsa", "hy_v4", "dots3note", "glm5-next", "qwen4exp", "minimax-m3"})


def keeps_only_keys(facts: Facts) -> bool:
    """Files from before 2025-04 lack the two keys: they hold full keys and values, seventy times as much."""
    if facts.architecture == "deepseek4":
        return True
    if facts.architecture not in families.LATENT:
        return False
    return facts.number("attention.key_length_mla", 0) > 0 and facts.number("attention.value_length_mla", 0) > 0


def index_keeps_values(architecture: str) -> bool:
    """The hybrids' indexer caches are made key-only; the others keep a value row where the model itself does."""
    return architecture not in ("glm5-next", "qwen4exp")


def index_widths(facts: Facts, trunk: int, draft: bool) -> list[int]:
    """Elements of the indexer's key row in each layer, 0 where a layer has none."""
    name = facts.architecture
    nowhere = [0] * facts.layers
    if name not in _INDEXED or (draft and name != "glm5-next"):
        return nowhere
    if name == "hy_v4" and facts.number("attention.indexer.top_k", 0) == 0:
        return nowhere  # a checkpoint with full attention only
    width = facts.needed(_INDEX_WIDTH)
    if name == "glm5-next" and facts.number("attention.indexer.kpool", 0) > 0:
        width *= 3  # key, gate and pooled value
    if draft:
        return [width] * facts.layers
    owners = _owners(facts)
    return [width if layer < trunk and owners[layer] else 0 for layer in range(facts.layers)]


def _owners(facts: Facts) -> list[bool]:
    """Layers with an indexer of their own; the others share the one before them."""
    name = facts.architecture
    if name in ("deepseek32", "qwen4exp"):
        return [True] * facts.layers
    if name == "minimax-m3":
        dense = facts.number("leading_dense_block_count", 0)
        return [layer >= dense for layer in range(facts.layers)]
    listed = facts.array(_INDEX_TYPES)
    if listed is not None:
        return [flag != 0 for flag in listed]
    if name == "glm-dsa" and not facts.has(_INDEX_TYPES) and facts.number("context_length", 0) >= 1 << 20:
        return [layer < 2 or (layer - 2) % 4 == 0 for layer in range(facts.layers)]  # GLM 5.2
    if name in ("glm-dsa", "glm5-next"):
        return [facts.number(_INDEX_TYPES, 1) != 0] * facts.layers
    return [facts.needed(_INDEX_TYPES) != 0] * facts.layers


def add_compression(facts: Facts, plan: Plan) -> None:
    """deepseek4: beside its window each layer keeps a row for 4 or for 128 tokens, and indexer rows with the 4."""
    ratios = facts.array("attention.compress_ratios")
    if ratios is None:
        raise Unsettled("unknown-format", "the header has no array attention.compress_ratios")
    width = facts.needed(_INDEX_WIDTH)
    for number, layer in enumerate(plan.layers):
        layer.ratio = ratios[number] if ratios[number] in (EVERY_4, EVERY_128) else 0
        layer.index_key = width if layer.ratio == EVERY_4 else 0
        if number < plan.trunk:
            layer.state = _compressor_elements(layer)


def _compressor_elements(layer: Layer) -> int:
    """Values and scores of the tokens that are not compressed yet."""
    if layer.ratio == EVERY_4:
        return 2 * 2 * EVERY_4 * 2 * (layer.key + layer.index_key)
    return 2 * EVERY_128 * layer.key if layer.ratio == EVERY_128 else 0
