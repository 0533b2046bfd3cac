"""Which architecture follows which rule.

From the switch in `llama_model::create_memory` and each model's `load_arch_hparams`. An architecture that stands
in none of the special groups follows the generic rule, if anybody names it: the `gguf` package, or NAMED below.
"""

from __future__ import annotations

from gpusnap.llm import gguf_constants

# Known to llama.cpp and measured, but not named by gguf 0.19.
NAMED = frozenset(
    {
        "bailingmoe3",
        "cohere2moe",
        "deepseek32",
        "deepseek4",
        "dots3note",
        "glm5-next",
        "granite_swa",
        "hrm_text",
        "hy_v3",
        "hy_v4",
        "kimi-k3",
        "laguna",
        "maple",
        "mellum",
        "minimax-01",
        "minimax-m3",
        "muse-glimmer",
        "pockettts",
        "qwen3tts",
        "qwen4exp",
        "spark2_5",
        "talkie",
    }
)

# create_memory returns nullptr: nothing is kept from one token to the next.
WITHOUT_CACHE = frozenset(
    {
        "bert",
        "jina-bert-v2",
        "jina-bert-v3",
        "nomic-bert",
        "nomic-bert-moe",
        "neo-bert",
        "eurobert",
        "modern-bert",
        "gemma-embedding",
        "wavtokenizer-dec",
        "dream",
        "llada",
        "llada-moe",
        "rnd1",
    }
)

# An encoder and a decoder with cross attention, or no language model at all.
NOT_SETTLED = frozenset({"t5", "t5encoder", "clip"})

RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
RWKV = frozenset({"rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
SHORT_CONVOLUTION = frozenset({"lfm2", "lfm2moe"})
DELTA_ATTENTION = frozenset({"kimi-linear", "kimi-k3", "bailingmoe3", "glm5-next"})

# Hybrids: which layers are recurrent ...
WITHOUT_KV_HEADS = SHORT_CONVOLUTION | DELTA_ATTENTION | {"jamba", "plamo2", "granitehybrid"}
WITHOUT_KV_HEADS_AND_FFN = frozenset({"nemotron_h", "nemotron_h_moe"})
BY_INTERVAL = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4, "qwen4exp": 4, "minimax-01": 8}
EVERY_LAYER = frozenset({"falcon-h1"})
HYBRID = WITHOUT_KV_HEADS | WITHOUT_KV_HEADS_AND_FFN | EVERY_LAYER | frozenset(BY_INTERVAL)

# Draft layers (MTP) at the end keep no keys in the main context, but of these the layer filter passes them.
DRAFT_LAYERS_KEPT = (HYBRID - frozenset(BY_INTERVAL) - {"glm5-next"}) | {"deepseek4", "hy_v4", "minimax-m3"}
# The draft context is a plain cache of the draft layers, except of these.
WITHOUT_DRAFT_RULE = DRAFT_LAYERS_KEPT - {"bailingmoe3", "nemotron_h_moe"} | {"qwen4exp", "minimax-01"}

# ssm.group_count is not read: the convolution sees the inner channels only.
WITHOUT_GROUPS = frozenset({"mamba", "jamba"})

# Draft depth multiplies the state only where the graph can roll it back (llm_arch_supports_rs_rollback).
ROLLBACK = frozenset(
    {
        "kimi-k3",
        "qwen35",
        "qwen35moe",
        "qwen4exp",
        "deepseek4",
        "glm5-next",
        "nemotron_h",
        "nemotron_h_moe",
        "lfm2",
        "lfm2moe",
        "bailingmoe3",
    }
)

# Their loaders read key_length_mla and value_length_mla.
LATENT = DELTA_ATTENTION | {"deepseek2", "mistral4", "deepseek32", "glm-dsa", "hy_v4", "dots3note"}
# The value length is the latent rank, whatever the header's value_length says.
LATENT_VALUES = frozenset({"kimi-k3", "glm5-next"})

# Flash attention is forced off.
WITHOUT_FLASH_ATTENTION = frozenset({"grok"})

# Observed on tiny models only, or where the reference formula missed the engine's figure.
ESTIMATED = {
    "deepseek4": "compressed caches of deepseek4",
    "glm5-next": "indexer rows of glm5-next",
    "qwen4exp": "n-gram history of qwen4exp",
}


def is_known(architecture: str) -> bool:
    return architecture in NAMED or architecture in gguf_constants.architectures()
