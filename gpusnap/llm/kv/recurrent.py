"""Recurrent state: one row for each sequence, of F32, whatever the context (`n_embd_r`, `n_embd_s`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv import families

if TYPE_CHECKING:
    from gpusnap.llm.kv.facts import Facts


def recurrent_layers(facts: Facts, trunk: int) -> list[bool]:
    """Which layers keep a state; the draft layers behind `trunk` never do."""
    name = facts.architecture
    if name in families.RECURRENT or name in families.EVERY_LAYER:
        return _only_trunk([True] * facts.layers, trunk)
    if name in families.BY_INTERVAL:
        return _only_trunk(_by_interval(facts), trunk)
    if name not in families.HYBRID:
        return [False] * facts.layers
    default = facts.per_layer("attention.head_count", [0] * facts.layers)
    flags = [heads == 0 for heads in facts.per_layer("attention.head_count_kv", default)]
    if name in families.WITHOUT_KV_HEADS_AND_FFN:
        ffn = facts.per_layer("feed_forward_length", [0] * facts.layers)
        flags = [flag and width == 0 for flag, width in zip(flags, ffn, strict=True)]
    return _only_trunk(flags, trunk)


def _by_interval(facts: Facts) -> list[bool]:
    """An array or one flag says it; else every layer but each n-th."""
    key = "attention.recurrent_layers"
    if facts.has(key):
        return [flag != 0 for flag in facts.per_layer(key, [])]
    interval = facts.number("full_attention_interval", families.BY_INTERVAL[facts.architecture])
    return [interval == 0 or (layer + 1) % interval != 0 for layer in range(facts.layers)]


def _only_trunk(flags: list[bool], trunk: int) -> list[bool]:
    return [flag and layer < trunk for layer, flag in enumerate(flags)]


def state_elements(facts: Facts, heads: int) -> int:
    """Numbers in one row of one layer: the convolution's history and the state; `heads` of the first layer."""
    name = facts.architecture
    embedding = facts.number("embedding_length", 0)
    if name in families.RWKV:
        return embedding * (facts.number("token_shift_count", 2) + facts.needed("wkv.head_size"))
    if name in families.SHORT_CONVOLUTION:
        return embedding * max(0, facts.needed("shortconv.l_cache") - 1)
    if name in families.DELTA_ATTENTION:
        width = facts.needed("kda.head_dim")
        history = facts.number("ssm.conv_kernel", 4) - 1
        return heads * width * (3 * max(0, history) + width)
    if name == "minimax-01":
        return facts.needed("attention.key_length") ** 2 * heads
    return _mamba_elements(facts)


def _mamba_elements(facts: Facts) -> int:
    inner, state = facts.needed("ssm.inner_size"), facts.needed("ssm.state_size")
    groups = 0 if facts.architecture in families.WITHOUT_GROUPS else facts.number("ssm.group_count", 0)
    history = max(0, facts.needed("ssm.conv_kernel") - 1)
    return history * (inner + 2 * groups * state) + state * inner


def ngram_elements(facts: Facts, layer: int) -> int:
    """qwen4exp: the layer with n-gram embeddings keeps their convolution's history too."""
    if facts.architecture != "qwen4exp" or layer not in facts.listed("ple.layers"):
        return 0
    history = max(0, facts.needed("ple.conv_kernel") - 1) * facts.needed("ple.ngram_size")
    return history * facts.needed("hyper_connection.count") * facts.needed("embedding_length")
