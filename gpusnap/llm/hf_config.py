"""`config.json` of a Hugging Face model: what vLLM, SGLang and TGI serve.

Their caches are pools that the server sizes itself; what can be computed is the bytes of one token, and only for
models where every layer keeps full keys and values of every token. Anything with windows, states, chunks or
cross-attention gives null: those pools are laid out by the server's own rules.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusnap.reading import Reading, computed, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.host import Tree

MAX_CONFIG = 1 << 20
MAX_NUMBER = 1 << 31

# model_type -> plain attention in every layer.
PLAIN = frozenset(
    {
        *("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen2_vl", "qwen2_5_vl"),
        *(
            "qwen3_vl",
            "qwen3_vl_moe",
            "qwen2_5_vl_text",
            "qwen3_vl_text",
            "qwen3_vl_moe_text",
            "phi",
            "phi3",
            "phimoe",
        ),
        *(
            "gemma",
            "stablelm",
            "starcoder2",
            "olmo",
            "olmo2",
            "olmoe",
            "granite",
            "granitemoe",
            "internlm2",
            "internlm3",
        ),
        *(
            "baichuan",
            "chatglm",
            "cohere",
            "dbrx",
            "glm",
            "glm4",
            "glm4_moe",
            "exaone",
            "nemotron",
            "minicpm",
            "smollm3",
        ),
        *(
            "ernie4_5",
            "ernie4_5_moe",
            "seed_oss",
            "hunyuan_v1_dense",
            "hunyuan_v1_moe",
            "arcee",
            "apertus",
            "gpt2",
        ),
        *("gpt_neox", "gptj", "opt", "falcon", "deepseek", "dots1", "bailing_moe"),
    }
)
# One compressed row for keys and values together; tensor parallel ranks each hold all of it.
LATENT = frozenset({"deepseek_v2", "deepseek_v3", "kimi_k2"})

_TYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "half": 2, "float": 4, "auto": 0}
_TYPE_BYTES |= {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1, "int8": 1}


class HfConfig:
    """Facts by name, None where the file does not say."""

    __slots__ = ("architecture", "context_trained", "dtype", "layers", "quantization", "text")

    def __init__(self, root: dict[str, Any]) -> None:
        nested = root.get("text_config")
        self.text: dict[str, Any] = root | nested if isinstance(nested, dict) else root
        self.architecture = _word(self.text.get("model_type"))
        self.layers = self.number("num_hidden_layers", "n_layer", "num_layers")
        self.context_trained = self.number("max_position_embeddings", "n_positions", "seq_length", "max_seq_len")
        self.dtype = _word(self.text.get("dtype") or self.text.get("torch_dtype"))
        self.quantization = _quantization(root)

    def number(self, *names: str) -> int | None:
        for name in names:
            value = self.text.get(name)
            if type(value) is int and 0 < value < MAX_NUMBER:
                return value
        return None


def parse(data: bytes) -> HfConfig | None:
    """None where this is no model's config."""
    if len(data) > MAX_CONFIG:
        return None
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return HfConfig(root) if isinstance(root, dict) and ("model_type" in root or "architectures" in root) else None


def read(tree: Tree, folder: str) -> HfConfig | None:
    """`config.json` of a model's folder; OSError as the system says it."""
    return parse(tree.read(f"{folder}/config.json", MAX_CONFIG + 1))


def _word(value: object) -> str | None:
    return clean(value, 80) if isinstance(value, str) else None


def _quantization(root: dict[str, Any]) -> str | None:
    """`awq`, `gptq`, `fp8`, with the bits where the method leaves them open."""
    config = root.get("quantization_config")
    if not isinstance(config, dict):
        return None
    method, bits = _word(config.get("quant_method")), config.get("bits")
    return f"{method}-{bits}bit" if method and type(bits) is int and 0 < bits < 33 else method


def token_bytes(config: HfConfig, cache_dtype: str = "auto", ranks: int = 1) -> Reading:
    """What one token takes in the cache of one rank of a tensor-parallel server."""
    size = _TYPE_BYTES.get(cache_dtype)
    if size == 0:
        size = _TYPE_BYTES.get(config.dtype or "")
    if not size:
        return null("unknown-format", f"the size of the cache type {cache_dtype} is not known")
    if config.layers is None or ranks < 1:
        return null("not-exposed", "config.json does not say how many layers there are")
    if config.architecture in LATENT:
        return _latent_bytes(config, size)
    reason = _not_plain(config)
    if reason:
        return null("not-supported", reason)
    heads = config.number("num_attention_heads", "n_head")
    kv_heads = config.number("num_key_value_heads", "multi_query_group_num", "n_head_kv") or heads
    hidden = config.number("hidden_size", "n_embd")
    if heads is None or kv_heads is None or (hidden is None and config.number("head_dim") is None):
        return null("not-exposed", "config.json does not say how wide a head is")
    width = config.number("head_dim") or (hidden or 0) // heads
    return computed(config.layers * max(1, kv_heads // ranks) * width * 2 * size, "config.json")


def _latent_bytes(config: HfConfig, size: int) -> Reading:
    rank, rope = config.number("kv_lora_rank"), config.number("qk_rope_head_dim")
    if rank is None or rope is None or config.layers is None:
        return null("not-exposed", "config.json does not say how wide the latent row is")
    return computed(config.layers * (rank + rope) * size, "config.json")


def _not_plain(config: HfConfig) -> str:
    """Why the rule does not hold; empty where it does."""
    if config.architecture not in PLAIN:
        return f"no rule for the cache of {config.architecture}"
    kinds = config.text.get("layer_types")
    if isinstance(kinds, list) and any(kind != "full_attention" for kind in kinds):
        return "layers of several kinds"
    window = config.number("sliding_window")
    if window is not None and config.text.get("use_sliding_window") is not False:
        trained = config.context_trained
        if trained is None or window < trained:
            return "a sliding window"
    return ""
