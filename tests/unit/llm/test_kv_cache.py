"""What the cache's figures are worth: exact, estimated, or null with the reason; and what they say for a card."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.llm import gguf_constants
from gpusnap.llm.gguf_header import BytesSource, Header, read_header
from gpusnap.llm.kv import families
from gpusnap.llm.kv_cache import CacheSettings, CacheSize, cache_size
from gpusnap.reading import reason_of
from tests.unit.llm.gguf_files import model_bytes

KIB, MIB = 1 << 10, 1 << 20

QWEN3_06B = {
    "block_count": 28,
    "embedding_length": 1024,
    "attention.head_count": 16,
    "attention.head_count_kv": 8,
    "attention.key_length": 128,
    "attention.value_length": 128,
}
GEMMA3 = QWEN3_06B | {"attention.sliding_window": 512}
MLA = QWEN3_06B | {
    "attention.head_count_kv": 1,
    "attention.key_length": 576,
    "attention.key_length_mla": 192,
    "attention.value_length_mla": 128,
}


def header(architecture: str, values: dict[str, Any]) -> Header:
    return read_header(BytesSource(model_bytes(architecture, values)))


def size(architecture: str, values: dict[str, Any], context: int = 4096, **told: Any) -> CacheSize:
    return cache_size(header(architecture, values), CacheSettings(context, **told))


def test_published_qwen3_06b_448_mib_and_112_kib_a_token() -> None:
    result = size("qwen3", QWEN3_06B)
    assert result.total.value == 448 * MIB
    assert result.per_token.value == 112 * KIB
    assert result.total.provenance == "computed:gguf"


def test_published_qwen3_06b_32k_would_take_3_5_gib() -> None:
    now, model = CacheSettings(4096), header("qwen3", QWEN3_06B)
    assert cache_size(model, now.at(8192)).total.value == 896 * MIB
    assert cache_size(model, now.at(32768)).total.value == 3584 * MIB


def test_the_source_names_what_was_assumed() -> None:
    result = cache_size(header("qwen3", QWEN3_06B), CacheSettings(4096), "gguf+cmdline+defaults:llama.cpp")
    assert result.kv.provenance == "computed:gguf+cmdline+defaults:llama.cpp"


def test_layers_on_a_card_are_their_share() -> None:
    result = size("qwen3", QWEN3_06B)
    assert result.on_layers(range(21, 28)).value == 112 * MIB
    assert result.on_layers(range(28)).value == result.total.value
    assert result.on_layers([]).value == 0
    assert result.on_layers([27, 27, 99, -1]).value == 16 * MIB


def test_state_counts_on_a_card_too() -> None:
    values = QWEN3_06B | {
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 4096,
        "ssm.state_size": 128,
        "ssm.group_count": 16,
    }
    result = size("qwen35", values)
    row = (3 * (4096 + 2 * 16 * 128) + 128 * 4096) * 4
    assert result.on_layers([0]).value == row
    assert result.on_layers([3]).value == 4096 * 8 * 256 * 2
    assert result.state.value == 21 * row
    assert result.per_token.value == 7 * 8 * 256 * 2


def test_windows_make_a_token_cost_what_nobody_can_say_in_one_figure() -> None:
    assert size("gemma3", GEMMA3).per_token.provenance == "null:none not linear"
    assert size("gemma3", GEMMA3, swa_full=True).per_token.value == 112 * KIB
    assert size("gemma3", GEMMA3, windows=False).per_token.value == 112 * KIB


def test_report_koboldcpp_2235_engines_without_windows_keep_every_layer_full() -> None:
    assert size("gemma3", GEMMA3, windows=False).kv.value == 448 * MIB
    full, windowed = 4, 24  # 28 layers, the last of each six is full
    assert size("gemma3", GEMMA3).kv.value == (full * 4096 + windowed * 1024) * 4 * KIB


def test_gemma3_without_a_window_is_full() -> None:
    assert size("gemma3", QWEN3_06B).kv.value == 448 * MIB


@pytest.mark.parametrize(
    ("pattern", "full"), [(2, 14), ([True] * 27 + [False], 1), ([False] * 28, 28), (0, 0)], ids=str
)
def test_pattern_in_the_header_wins_over_the_default_period(pattern: Any, full: int) -> None:
    values = GEMMA3 | {"attention.sliding_window_pattern": pattern}
    assert size("gemma3", values).kv.value == (full * 4096 + (28 - full) * 1024) * 4 * KIB


def test_four_slots_hold_four_windows_unified_or_not() -> None:
    one = size("gemma3", GEMMA3, 8192)
    unified = size("gemma3", GEMMA3, 8192, sequences=4, unified=True)
    apart = size("gemma3", GEMMA3, 8192, sequences=4)
    assert one.kv.value == (4 * 8192 + 24 * 1024) * 4 * KIB
    assert unified.kv.value == (4 * 8192 + 24 * 2560) * 4 * KIB
    assert apart.kv.value == (4 * 8192 + 24 * 4096) * 4 * KIB


def test_values_are_as_wide_as_the_widest_without_flash_attention() -> None:
    values = QWEN3_06B | {"attention.head_count_kv": [8] * 14 + [2] * 14, "attention.head_count": 16}
    with_flash, without = size("deci", values), size("deci", values, flash_attention=False)
    keys, values_bytes = 14 * (8 + 2) * 256 * 4096, 28 * 8 * 256 * 4096
    assert with_flash.kv.value == 2 * keys
    assert without.kv.value == keys + values_bytes


def test_layers_without_kv_heads_keep_nothing() -> None:
    values = QWEN3_06B | {"attention.head_count_kv": [8] * 20 + [0] * 8}
    assert size("deci", values).kv.value == 320 * MIB


@pytest.mark.parametrize(
    ("type_name", "mib"),
    [("f32", 896), ("bf16", 448), ("q8_0", 238), ("q5_1", 168), ("q5_0", 154), ("q4_1", 140), ("iq4_nl", 126)],
)
def test_cache_types_by_their_blocks(type_name: str, mib: int) -> None:
    assert size("qwen3", QWEN3_06B, type_k=type_name, type_v=type_name).kv.value == mib * MIB


def test_quantised_windows_are_an_estimate() -> None:
    """Some builds of 2026 kept the windowed part f16, others not; no build number tells."""
    result = size("gemma3", GEMMA3, type_k="q8_0", type_v="q8_0")
    assert result.kv.provenance == "estimated:gguf some builds keep windowed layers f16"
    assert size("gemma3", GEMMA3).kv.provenance == "computed:gguf"


NULLS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("qwen3", QWEN3_06B, {"type_k": "q8_KV"}, "unknown-format the size of the cache type q8_KV is not known"),
    ("qwen3", QWEN3_06B, {"type_v": "turbo4"}, "unknown-format"),
    ("qwen3", QWEN3_06B, {"type_v": "q6_K"}, "unknown-format"),
    ("qwen3", QWEN3_06B, {"context": 0}, "ambiguous the context is not known"),
    ("qwen3", QWEN3_06B, {"type_v": "q8_0", "flash_attention": False}, "contradiction"),
    ("qwen3", QWEN3_06B | {"attention.key_length": 80}, {"type_k": "q8_0"}, "contradiction"),
    ("qwen3", QWEN3_06B | {"attention.value_length": 80}, {"type_v": "q4_0"}, "contradiction"),
    ("deepseek2", MLA, {"type_k": "q8_0"}, "contradiction"),
    ("grok", QWEN3_06B, {"type_v": "q8_0"}, "contradiction"),
    ("brandnew", QWEN3_06B, {}, "not-supported"),
    ("t5", QWEN3_06B, {}, "not-supported"),
    ("nanbeige", QWEN3_06B, {}, "not-supported"),
    ("qwen3", QWEN3_06B | {"block_count": 0}, {}, "unknown-format"),
    ("qwen3", QWEN3_06B | {"block_count": 513}, {}, "unknown-format"),
    ("qwen3", QWEN3_06B | {"attention.head_count_kv": [8] * 27}, {}, "unknown-format"),
    ("qwen3", QWEN3_06B | {"attention.head_count_kv": [-1] * 28}, {}, "unknown-format"),
    ("qwen3", QWEN3_06B | {"attention.key_length": "128"}, {}, "unknown-format"),
    ("qwen3", QWEN3_06B | {"nextn_predict_layers": 29}, {}, "unknown-format"),
    ("gemma4", GEMMA3, {}, "unknown-format the header has no array attention.sliding_window_pattern"),
    ("gpt-oss", QWEN3_06B, {}, "unknown-format the header has no attention.sliding_window"),
    ("qwen3", QWEN3_06B, {"draft_context": True}, "none"),
    ("qwen3", QWEN3_06B | {"attention.key_length": 2**30}, {"context": 2**31}, "out-of-range"),
]


@pytest.mark.parametrize(
    ("architecture", "values", "told", "reason"), NULLS, ids=[str(n) for n in range(len(NULLS))]
)
def test_no_figure_where_none_is_known(
    architecture: str, values: dict[str, Any], told: dict[str, Any], reason: str
) -> None:
    result = size(architecture, values, **({"context": 4096} | told))
    assert result.total.provenance.startswith("null:" + reason)
    for reading in (result.kv, result.state, result.per_token, result.on_layers([0])):
        assert reading.value is None
    assert result.layers is None


def test_report_deepseek_r1_file_without_the_mla_keys_takes_seventy_times_as_much() -> None:
    new = size("deepseek2", MLA | {"block_count": 61}, 8192)
    old = size(
        "deepseek2",
        MLA
        | {"block_count": 61, "attention.head_count_kv": 128, "attention.head_count": 128}
        | {"attention.key_length": 192, "attention.key_length_mla": 0, "attention.value_length_mla": 0},
        8192,
    )
    assert new.kv.value == 61 * 8192 * 576 * 2
    assert old.kv.value == 61 * 8192 * 128 * (192 + 128) * 2


def test_every_named_architecture_without_a_special_rule_follows_the_generic_one() -> None:
    special = families.WITHOUT_CACHE | families.NOT_SETTLED | families.RECURRENT | families.HYBRID
    wanted = {"block_count", "attention.head_count"}
    assert wanted < set(QWEN3_06B)
    generic, windowed = 0, 0
    for name in sorted((gguf_constants.architectures() | families.NAMED) - special):
        result = size(name, QWEN3_06B)
        if result.kv.value is None:
            assert reason_of(result.kv.provenance) == "unknown-format", name  # lacks a key that its loader needs
            windowed += 1
        else:
            expected = 20 if name == "gemma3n" else 28
            if name not in ("gemma2", "llama4"):  # windowed without any key
                assert result.kv.value == expected * 16 * MIB, name
            generic += 1
    assert generic > 80
    assert windowed < 20


KEYS = [
    "block_count", "embedding_length", "nextn_predict_layers", "feed_forward_length", "leading_dense_block_count",
    "context_length", "full_attention_interval", "token_shift_count", "attention.head_count",
    "attention.head_count_kv", "attention.key_length", "attention.value_length", "attention.key_length_mla",
    "attention.value_length_mla", "attention.key_length_swa", "attention.value_length_swa",
    "attention.kv_lora_rank", "attention.sliding_window", "attention.sliding_window_pattern",
    "attention.shared_kv_layers", "attention.recurrent_layers", "attention.indexer.key_length",
    "attention.indexer.top_k", "attention.indexer.types", "attention.indexer.kpool", "attention.compress_ratios",
    "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.group_count", "kda.head_dim", "wkv.head_size",
    "shortconv.l_cache", "ple.layers", "ple.ngram_size", "ple.conv_kernel", "hyper_connection.count",
]  # fmt: skip
NUMBER = st.one_of(st.integers(0, 9), st.sampled_from([64, 128, 576, 4096, 2**31 - 1, 2**31, 2**32 - 1]))
VALUE = st.one_of(NUMBER, st.lists(st.integers(-2, 300), max_size=6), st.lists(st.booleans(), max_size=4))


@settings(max_examples=1500, deadline=None)
@given(
    st.sampled_from(sorted(gguf_constants.architectures() | families.NAMED)),
    st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=20),
    st.integers(1, 6),
    st.builds(
        CacheSettings,
        st.integers(-1, 2**20),
        sequences=st.integers(0, 9),
        unified=st.booleans(),
        type_k=st.sampled_from(["f16", "q8_0", "q4_0", "weird"]),
        flash_attention=st.booleans(),
        draft_context=st.booleans(),
        draft_states=st.integers(0, 3),
    ),
)
def test_any_header_and_settings_end_in_a_figure_or_a_reason(
    architecture: str, values: dict[str, Any], layers: int, told: CacheSettings
) -> None:
    result = cache_size(header(architecture, {"block_count": layers} | values), told)
    if result.layers is None or result.state_layers is None:
        assert result.total.value is None
    else:
        assert min(result.layers) >= 0
        assert min(result.state_layers) >= 0
        assert result.total.value == sum(result.layers) + sum(result.state_layers)
        assert result.on_layers(range(600)) == result.total


def test_our_key_names_are_the_packages() -> None:
    """All but those that are newer than gguf 0.19."""
    newer = {"attention.recurrent_layers", "attention.compress_ratios", "hyper_connection.count"}
    newer |= {
        "attention.indexer.types",
        "attention.indexer.kpool",
        "ple.layers",
        "ple.ngram_size",
        "ple.conv_kernel",
    }
    package = spelled_keys(gguf_constants.load().Keys)
    assert {"{arch}." + key for key in KEYS} - package == {"{arch}." + key for key in newer}


def spelled_keys(group: Any) -> set[str]:
    found: set[str] = set()
    for name, value in vars(group).items():
        if isinstance(value, str) and not name.startswith("__"):
            found.add(value)
        elif isinstance(value, type):
            found |= spelled_keys(value)
    return found
