"""What each layer stores: so many numbers for a token, so many for a sequence. Pure header, no settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv import families, latent, recurrent, windows
from gpusnap.llm.kv.facts import Unsettled

if TYPE_CHECKING:
    from gpusnap.llm.kv.facts import Facts


class Layer:
    """Widths are elements: of a token's key and value row, of its indexer's rows, of a sequence's state."""

    __slots__ = ("index_key", "index_value", "key", "ratio", "state", "value", "windowed")

    def __init__(self) -> None:
        self.key = 0
        self.value = 0
        self.index_key = 0
        self.index_value = 0
        self.state = 0
        self.windowed = False
        self.ratio = 0  # deepseek4: tokens that one compressed row stands for


class Plan:
    __slots__ = ("architecture", "head_widths", "key_only", "layers", "trunk", "value_padded", "window")

    def __init__(self, architecture: str, layers: list[Layer], trunk: int) -> None:
        self.architecture = architecture
        self.layers = layers
        self.trunk = trunk  # the layers behind it draft tokens (MTP)
        self.window: int | None = None
        self.key_only = False
        self.head_widths: list[tuple[int, int]] = []  # key and value length of a head, trunk only
        self.value_padded = 0  # the widest value row, which all get without flash attention


def build(facts: Facts, draft: bool = False) -> Plan:
    """The plan of the main context, or of the draft context, which holds the layers behind the trunk only."""
    name = facts.architecture
    if not families.is_known(name) or name in families.NOT_SETTLED:
        raise Unsettled("not-supported", f"no rule for the cache of architecture {name}")
    plan = Plan(name, [Layer() for _ in range(facts.layers)], facts.trunk)
    if name in families.WITHOUT_CACHE:
        return plan
    if draft and (plan.trunk == facts.layers or name in families.WITHOUT_DRAFT_RULE):
        raise Unsettled("none", f"no draft context is known for this model of {name}")
    if not draft:
        _add_state(facts, plan)
    if name not in families.RECURRENT:
        _add_attention(facts, plan, draft)
    return plan


def _add_state(facts: Facts, plan: Plan) -> None:
    flags = recurrent.recurrent_layers(facts, plan.trunk)
    if not any(flags):
        return
    heads = facts.per_layer("attention.head_count", [0] * facts.layers)[0]
    elements = recurrent.state_elements(facts, heads)
    for number, layer in enumerate(plan.layers):
        if flags[number]:
            layer.state = elements + recurrent.ngram_elements(facts, number)


def _add_attention(facts: Facts, plan: Plan, draft: bool) -> None:
    heads = facts.per_layer("attention.head_count", [0] * facts.layers)
    kv_heads = facts.per_layer("attention.head_count_kv", heads)
    plan.key_only = latent.keeps_only_keys(facts)
    plan.window = windows.window(facts)
    windowed = [False] * facts.layers
    if plan.window is not None:
        windowed = windows.windowed_layers(facts, plan.trunk)
    lengths = _head_lengths(facts, heads[0], windowed)
    plan.head_widths = lengths[: plan.trunk]
    plan.value_padded = max(value * count for (_, value), count in zip(lengths, kv_heads, strict=True))
    owners = _draft_owners(plan) if draft else _owners(facts, plan)
    index = latent.index_widths(facts, plan.trunk, draft)
    for number, layer in enumerate(plan.layers):
        if not owners[number]:
            continue
        key, value = lengths[number]
        layer.windowed = windowed[number]
        layer.key = key * kv_heads[number]
        layer.value = 0 if plan.key_only else value * kv_heads[number]
        layer.index_key = index[number]
        layer.index_value = value if index[number] and latent.index_keeps_values(plan.architecture) else 0
        if plan.key_only:
            layer.index_value = 0
    if plan.architecture == "deepseek4":
        latent.add_compression(facts, plan)


def _head_lengths(facts: Facts, heads: int, windowed: list[bool]) -> list[tuple[int, int]]:
    """Key and value length of a head; the default only where the header has no key (Qwen3, Gemma: it differs)."""
    default = facts.number("embedding_length", 0) // heads if heads > 0 else 0
    key = facts.number("attention.key_length", default)
    value = facts.number("attention.value_length", default)
    if facts.architecture in families.LATENT_VALUES:
        value = facts.needed("attention.kv_lora_rank")
    short = (facts.number("attention.key_length_swa", key), facts.number("attention.value_length_swa", value))
    return [short if flag else (key, value) for flag in windowed]


def _owners(facts: Facts, plan: Plan) -> list[bool]:
    """Layers of the main context that keep keys."""
    name = plan.architecture
    if name in families.EVERY_LAYER:
        return [True] * facts.layers
    flags = [layer.state == 0 for layer in plan.layers]
    if name in families.WITHOUT_KV_HEADS_AND_FFN:
        ffn = facts.per_layer("feed_forward_length", [0] * facts.layers)
        flags = [flag and width == 0 for flag, width in zip(flags, ffn, strict=True)]
    last = facts.layers
    if name == "gemma3n":
        last = 20  # hard-coded: the later blocks read the cache of these
    elif name == "gemma4":
        last -= facts.number("attention.shared_kv_layers", 0)
    if plan.trunk > 0 and name not in families.DRAFT_LAYERS_KEPT:
        last = min(last, plan.trunk)
    return [flag and number < last for number, flag in enumerate(flags)]


def _draft_owners(plan: Plan) -> list[bool]:
    return [number >= plan.trunk for number in range(len(plan.layers))]
