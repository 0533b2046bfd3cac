"""`config.json` of public models; the bytes of a token are those that servers printed or that follow by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.llm.hf_config import HfConfig, parse, token_bytes

QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 4096,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
    "sliding_window": None,
    "use_sliding_window": False,
}
QWEN3_235B = QWEN3_8B | {"model_type": "qwen3_moe", "num_hidden_layers": 94, "num_key_value_heads": 4}
LLAMA31_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "hidden_size": 4096, "torch_dtype": "bfloat16", "max_position_embeddings": 131072,
}  # fmt: skip
DEEPSEEK_R1 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8"},
}  # fmt: skip


def config(values: dict[str, Any]) -> HfConfig:
    found = parse(json.dumps(values).encode())
    assert found is not None
    return found


def test_v109_qwen3_8b_147456_bytes_a_token() -> None:
    """The vLLM log: 89,040 tokens in 12,521.2 MiB."""
    reading = token_bytes(config(QWEN3_8B))
    assert (reading.value, reading.provenance) == (147_456, "computed:config.json")
    tokens = 89_040
    assert tokens * 147_456 / (1 << 20) == pytest.approx(12_521.2, abs=0.1)


def test_v032_llama_31_8b_of_the_old_layout() -> None:
    """1952 blocks of 16 tokens were 3.81 GiB; the head's width follows from the hidden size."""
    value = token_bytes(config(LLAMA31_8B)).value
    assert value == 131_072
    blocks = 1952
    assert blocks * 16 * 131_072 / (1 << 30) == pytest.approx(3.81, abs=0.005)


def test_v035_four_ranks_hold_a_kv_head_each() -> None:
    """SGLang, TP4: 367,404 tokens, K and V 8.23 GiB each on every rank."""
    value = token_bytes(config(QWEN3_235B), ranks=4).value
    assert isinstance(value, int)
    assert 367_404 * value / 2 / (1 << 30) == pytest.approx(8.23, abs=0.005)


def test_more_ranks_than_kv_heads_repeat_them() -> None:
    assert token_bytes(config(QWEN3_235B), ranks=8).value == token_bytes(config(QWEN3_235B), ranks=4).value


@pytest.mark.parametrize("ranks", [1, 8])
def test_a_latent_row_is_whole_on_every_rank(ranks: int) -> None:
    assert token_bytes(config(DEEPSEEK_R1), ranks=ranks).value == 61 * 576 * 2


@pytest.mark.parametrize(("dtype", "value"), [("fp8", 73_728), ("fp8_e5m2", 73_728), ("bfloat16", 147_456)])
def test_cache_types(dtype: str, value: int) -> None:
    assert token_bytes(config(QWEN3_8B), dtype).value == value


@pytest.mark.parametrize(
    ("values", "dtype", "reason"),
    [
        (QWEN3_8B, "fp8_ds_mla", "unknown-format"),
        (QWEN3_8B | {"torch_dtype": "strange"}, "auto", "unknown-format"),
        (QWEN3_8B | {"model_type": "qwen3_next"}, "auto", "not-supported"),
        (QWEN3_8B | {"model_type": "gemma3_text"}, "auto", "not-supported"),
        (QWEN3_8B | {"layer_types": ["full_attention", "linear_attention"]}, "auto", "not-supported"),
        (QWEN3_8B | {"sliding_window": 4096, "use_sliding_window": True}, "auto", "not-supported"),
        (LLAMA31_8B | {"model_type": "mistral", "sliding_window": 4096}, "auto", "not-supported"),
        ({"model_type": "llama", "torch_dtype": "bfloat16"}, "auto", "not-exposed"),
        (DEEPSEEK_R1 | {"kv_lora_rank": None}, "auto", "not-exposed"),
    ],
)  # fmt: skip
def test_no_figure_where_the_rule_does_not_hold(values: dict[str, Any], dtype: str, reason: str) -> None:
    reading = token_bytes(config(values), dtype)
    assert reading.value is None
    assert reading.provenance.startswith("null:" + reason)


def test_a_window_that_is_off_or_wider_than_the_context_is_none() -> None:
    values = QWEN3_8B | {"sliding_window": 4096, "use_sliding_window": False}
    assert token_bytes(config(values)).value == 147_456
    assert token_bytes(config(LLAMA31_8B | {"sliding_window": 131072})).value == 131_072


def test_a_models_language_part_counts() -> None:
    vision = {"architectures": ["X"], "model_type": "qwen2_5_vl", "text_config": QWEN3_8B, "vision_config": {}}
    found = config(vision)
    assert (found.architecture, found.layers, found.context_trained, found.dtype) == (
        "qwen3",
        36,
        40960,
        "bfloat16",
    )


@pytest.mark.parametrize(
    ("given_config", "name"),
    [
        (None, None),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "awq-4bit"),
        ({"quant_method": "gptq", "bits": "4"}, "gptq"),
        ("x", None),
    ],
)
def test_quantization_is_named(given_config: object, name: str | None) -> None:
    assert config(QWEN3_8B | {"quantization_config": given_config}).quantization == name


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"a":1}', b"[" * 100_000, b"{" + b" " * (2 << 20), b"\xff"])
def test_what_is_no_config(data: bytes) -> None:
    assert parse(data) is None


VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**40), st.floats(), st.text(max_size=5), st.lists(st.text())
)


@settings(max_examples=500, deadline=None)
@given(
    st.dictionaries(st.sampled_from([*QWEN3_8B, *DEEPSEEK_R1, "layer_types", "text_config"]), VALUE),
    st.integers(-1, 9),
)
def test_any_config_ends_in_a_figure_or_a_reason(values: dict[str, Any], ranks: int) -> None:
    found = parse(json.dumps(QWEN3_8B | values).encode())
    assert found is not None
    reading = token_bytes(found, "auto", ranks)
    assert reading.value is None or (isinstance(reading.value, int) and reading.value > 0)
