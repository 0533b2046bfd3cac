"""Cache sizes that public logs state, from the public configurations of their models.

The ids are those of the collection of logs; sizes in MiB as the engine printed them. `layers` where the log says
how many of the layers were on one device.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from gpusnap.llm.gguf_header import BytesSource, Header, read_header
from gpusnap.llm.kv_cache import CacheSettings, cache_size
from tests.unit.llm.gguf_files import model_bytes

MIB = 1 << 20


def attention(layers: int, kv_heads: int, key: int, value: int | None = None, **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "block_count": layers,
        "attention.head_count": max(kv_heads, 1),
        "attention.head_count_kv": kv_heads,
        "attention.key_length": key,
        "attention.value_length": key if value is None else value,
    }
    return values | {name.replace("__", "."): number for name, number in more.items()}


def with_window(values: dict[str, Any], window: int, pattern: Any = None) -> dict[str, Any]:
    values = values | {"attention.sliding_window": window}
    return values if pattern is None else values | {"attention.sliding_window_pattern": pattern}


def latent(layers: int, old: bool = False) -> dict[str, Any]:
    """DeepSeek: files from before 2025-04 hold full keys and values."""
    if old:
        return attention(layers, 128, 192, 128)
    return attention(layers, 1, 576, 512) | {"attention.key_length_mla": 192, "attention.value_length_mla": 128}


GATED = {"ssm.conv_kernel": 4, "ssm.inner_size": 6144, "ssm.state_size": 128, "ssm.group_count": 16}
QWEN35_27B = attention(64, 4, 256) | GATED | {"full_attention_interval": 4}
QWEN35_27B_MTP = QWEN35_27B | {"block_count": 65, "nextn_predict_layers": 1}
QWEN35_9B = attention(32, 4, 256) | GATED | {"ssm.inner_size": 4096}
QWEN3_NEXT = attention(48, 2, 256) | GATED | {"ssm.inner_size": 4096}

LAGUNA = with_window(attention(48, 8, 128), 512)
GEMMA4_12B = with_window(
    attention(48, 1, 512) | {"attention.key_length_swa": 256, "attention.value_length_swa": 256},
    1024,
    [layer % 6 != 5 for layer in range(48)],
) | {"attention.head_count_kv": [8 if layer % 6 != 5 else 1 for layer in range(48)]}
GEMMA4_26B = with_window(
    attention(30, 2, 512) | {"attention.key_length_swa": 256, "attention.value_length_swa": 256},
    1024,
    [layer % 6 != 5 for layer in range(30)],
) | {"attention.head_count_kv": [8 if layer % 6 != 5 else 2 for layer in range(30)]}
GEMMA4_E4B = with_window(
    attention(42, 2, 512)
    | {"attention.key_length_swa": 256, "attention.value_length_swa": 256, "attention.shared_kv_layers": 18},
    512,
    [layer % 6 != 5 for layer in range(42)],
)
LFM2 = attention(16, 8, 64) | {
    "attention.head_count_kv": [8 if layer in (2, 5, 8, 10, 12, 14) else 0 for layer in range(16)],
    "embedding_length": 2048,
    "shortconv.l_cache": 3,
}
GLM5 = latent(78) | {"attention.indexer.key_length": 128, "context_length": 1 << 20}


class Case(NamedTuple):
    log: str
    architecture: str
    values: dict[str, Any]
    settings: CacheSettings
    mib: float
    part: str = "kv"
    layers: range | None = None


def told(context: int, **settings: Any) -> CacheSettings:
    return CacheSettings(context, **settings)


Q4, Q8 = {"type_k": "q4_0", "type_v": "q4_0"}, {"type_k": "q8_0", "type_v": "q8_0"}
SLOTS = {"sequences": 4, "unified": True}  # the server's own default

CASES = [
    Case("V001", "llama", attention(32, 8, 128), told(2048), 256.0),
    Case("V002", "llama", attention(32, 8, 128), told(32768), 4096.0),
    Case("V004", "command-r", attention(40, 64, 128), told(4096), 3584.0, layers=range(28)),
    Case("V005", "qwen2", attention(64, 8, 128), told(4096), 960.0, layers=range(60)),
    Case("V007", "qwen3moe", attention(48, 4, 128), told(70000, padding=32), 6564.0),
    Case("V008", "deepseek2", latent(60, old=True), told(4096), 19200.0),
    Case("V010", "gpt-oss", with_window(attention(24, 8, 64), 128), told(4096, **SLOTS), 120.0),
    Case("V011", "llama", attention(28, 8, 128), told(40128, padding=32, flash_attention=False), 4389.0),
    Case("V0121", "qwen3moe", attention(48, 4, 128), told(23552), 736.0, layers=range(16)),
    Case("V0122", "qwen3moe", attention(48, 4, 128), told(23552), 690.0, layers=range(16, 31)),
    Case("V018", "glm4", attention(61, 8, 128), told(8192), 1952.0),
    Case("V020", "qwen2", attention(28, 4, 128), told(2048), 112.0),
    Case("V021", "qwen35", QWEN35_27B_MTP, told(4096, sequences=3), 448.88, "state"),
    Case("V024", "gemma3", with_window(attention(34, 4, 256), 1024), told(131072), 2734.0),
    Case("V026", "gemma3", with_window(attention(18, 1, 256), 512), told(1024, sequences=4), 18.0),
    Case("V051", "qwen35", QWEN35_27B, told(131072), 3584.0, layers=range(39, 64)),
    Case("V052", "qwen35", QWEN35_27B, told(131072), 4608.0, layers=range(39)),
    Case("V054", "qwen35", QWEN35_27B_MTP, told(8192, **SLOTS), 512.0),
    Case("V054 draft", "qwen35", QWEN35_27B_MTP, told(8192, draft_context=True, **SLOTS), 32.0),
    Case("V055", "qwen35", QWEN35_27B, told(8192, draft_states=2, **SLOTS), 1795.5, "state"),
    Case("V057", "gemma4", GEMMA4_26B, told(8192, ubatch=2048), 760.0),
    Case("V058", "qwen3", attention(28, 8, 128), told(4096), 448.0),
    Case("V060", "qwen3moe", attention(48, 4, 128), told(16384), 384.0, layers=range(12)),
    Case("V061", "qwen3moe", attention(48, 4, 128), told(16384), 1152.0, layers=range(12, 48)),
    Case("V063", "qwen2", attention(36, 2, 128), told(4096), 144.0),
    Case("V064", "deepseek2", attention(27, 16, 192, 128), told(2048), 540.0),
    Case("V066", "glm-dsa", GLM5, told(768000), 69750.0),
    Case("V067", "deepseek2", latent(61), told(32768), 2196.0),
    Case("V069", "qwen35", QWEN35_9B, told(262144, sequences=2, unified=True, **Q8), 4352.0),
    Case("V070", "qwen35", QWEN35_9B, told(262144, sequences=2, unified=True), 100.5, "state"),
    Case("V072", "qwen3next", QWEN3_NEXT, told(131072, **SLOTS), 3072.0),
    Case("V073", "qwen3next", QWEN3_NEXT, told(131072, **SLOTS), 301.5, "state"),
    Case("V075", "gemma4", GEMMA4_12B, told(8192, **SLOTS, **Q8), 833.0),
    Case("V076", "afmoe", with_window(attention(56, 2, 128), 2048), told(131072), 1897.0),
    Case("V078", "gemma4", GEMMA4_E4B, told(32768), 552.0),
    Case("V079", "gemma4", GEMMA4_E4B, told(32768, swa_full=True), 512.0 + 1280.0),
    Case("V081a", "llama", attention(32, 32, 128), told(4096, sequences=10, **Q8), 1360.0),
    Case("V081b", "llama", attention(32, 32, 128), told(5120, sequences=10, unified=True, **Q8), 1360.0),
    Case("V081d", "llama", attention(32, 32, 128), told(8192, **Q8), 2176.0),
    Case("V082", "qwen3", attention(64, 8, 128), told(8192, **Q8), 493.0, layers=range(35, 64)),
    Case("V085", "laguna", LAGUNA, told(1048576, **Q4), 13864.5),
    Case("V088", "lfm2", LFM2, told(128000), 1500.0),
    Case("V090", "llama", attention(22, 4, 64), told(32768, sequences=99), 1089.0),
    Case("V091", "gpt-oss", with_window(attention(36, 8, 64), 128), told(131072, swa_full=True), 9216.0),
    Case("V093", "qwen2", attention(28, 4, 128), told(4096), 224.0),
    Case("V094", "qwen2", attention(28, 4, 128), told(2500, padding=32), 138.25),
    Case("V097", "gptneox", attention(32, 32, 80), told(2048), 640.0),
    Case("V099", "qwen35", QWEN35_9B, told(4096), 29.31, "state", range(13, 32)),
    Case("V100", "qwen35", QWEN35_9B, told(135168, **SLOTS), 4224.0),
    Case("V102", "qwen35", QWEN35_27B_MTP, told(200704, **Q4), 3528.0),
    Case("V102 state", "qwen35", QWEN35_27B_MTP, told(200704, draft_states=4), 748.12, "state"),
    Case("V103a", "qwen35", QWEN35_27B, told(262144), 16384.0),
    Case("V103c", "qwen35", QWEN35_27B, told(262144, **Q4), 4608.0),
    Case("V104", "qwen35moe", QWEN35_9B | {"block_count": 40}, told(4096, **SLOTS), 251.25, "state"),
    Case("V106", "qwen3", attention(36, 8, 128), told(8192, **Q4), 324.0),
    Case("V107", "qwen35", QWEN35_27B, told(65536, **Q8), 2176.0),
    Case("V113", "qwen3next", QWEN3_NEXT, told(4096, **SLOTS), 96.0),
]


def model(architecture: str, values: dict[str, Any]) -> Header:
    return read_header(BytesSource(model_bytes(architecture, values)))


@pytest.mark.parametrize("case", CASES, ids=[case.log for case in CASES])
def test_log_value(case: Case) -> None:
    result = cache_size(model(case.architecture, case.values), case.settings)
    by_layer = result.layers if case.part == "kv" else result.state_layers
    assert by_layer is not None, result.total.provenance
    chosen = by_layer if case.layers is None else [by_layer[layer] for layer in case.layers]
    assert sum(chosen) / MIB == pytest.approx(case.mib, abs=0.01)


def test_v023_windows_of_deepseek4_keep_keys_only() -> None:
    """The log's 182.75 MiB are the raw part: 4352 cells of 43 layers. What is compressed comes on top."""
    values = attention(43, 1, 512) | {
        "attention.sliding_window": 128,
        "attention.indexer.key_length": 128,
        "attention.compress_ratios": [0] * 43,
    }
    settings = told(64000, type_k="bf16", type_v="bf16", ubatch=4096)
    result = cache_size(model("deepseek4", values), settings)
    assert result.layers is not None
    assert sum(result.layers) / MIB == 182.75
    assert result.total.provenance.startswith("estimated:")


def test_v096_bert_has_no_cache() -> None:
    """bge-small had 9 MiB in old builds; none is kept now (gpustack#2412: 13.8 GiB claimed for a reranker)."""
    result = cache_size(model("bert", attention(12, 12, 32)), told(512))
    assert (result.total.value, result.total.provenance) == (0, "computed:gguf")
    assert result.per_token.value == 0


def test_v140_ollamas_own_architecture_has_no_rule() -> None:
    """mllama has cross-attention layers without a cache among its 100: no other rule may be taken for it."""
    result = cache_size(model("mllama", attention(100, 8, 128)), told(8192, sequences=4))
    assert result.total.value is None
    assert result.total.provenance.startswith("null:not-supported")
