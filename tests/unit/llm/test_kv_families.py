"""Architectures with a rule of their own, by hand calculation from public model configurations."""

from __future__ import annotations

from typing import Any

import pytest

from gpusnap.llm.gguf_header import BytesSource, read_header
from gpusnap.llm.kv import families
from gpusnap.llm.kv_cache import CacheSettings, CacheSize, cache_size
from tests.unit.llm.gguf_files import model_bytes, tensor

CONTEXT = 4096


def size(architecture: str, values: dict[str, Any], names: tuple[str, ...] = (), **told: Any) -> CacheSize:
    data = model_bytes(architecture, values, [tensor(name, [1]) for name in names])
    return cache_size(read_header(BytesSource(data)), CacheSettings(CONTEXT, **told))


def heads(kv: Any, key: int, value: int, layers: int, **more: Any) -> dict[str, Any]:
    return {
        "block_count": layers,
        "embedding_length": 4096,
        "attention.head_count": 32,
        "attention.head_count_kv": kv,
        "attention.key_length": key,
        "attention.value_length": value,
    } | {name.replace("__", "."): number for name, number in more.items()}


MAMBA = {"ssm.conv_kernel": 4, "ssm.inner_size": 1536, "ssm.state_size": 16, "ssm.group_count": 8}
MLA = {"attention.key_length_mla": 192, "attention.value_length_mla": 128, "attention.kv_lora_rank": 512}
KDA = MLA | {"kda.head_dim": 128, "ssm.conv_kernel": 4}


def test_mamba_130m_has_a_state_and_no_cache() -> None:
    result = size("mamba", {"block_count": 24, "embedding_length": 768} | MAMBA)
    assert result.kv.value == 0
    assert result.state.value == 24 * 4 * (3 * 1536 + 16 * 1536)
    assert result.per_token.value == 0


def test_mamba2_convolves_over_its_groups_too() -> None:
    result = size("mamba2", {"block_count": 64, "embedding_length": 4096} | MAMBA, sequences=3)
    assert result.state.value == 64 * 3 * 4 * (3 * (1536 + 2 * 8 * 16) + 16 * 1536)


@pytest.mark.parametrize("name", sorted(families.RWKV))
def test_rwkv_shifts_two_tokens_unless_told_otherwise(name: str) -> None:
    values = {"block_count": 32, "embedding_length": 4096, "wkv.head_size": 64}
    assert size(name, values).state.value == 32 * 4 * 4096 * (2 + 64)
    assert size(name, values | {"token_shift_count": 1}).state.value == 32 * 4 * 4096 * (1 + 64)


def test_jamba_by_layers_without_kv_heads() -> None:
    kv = [8 if layer % 8 == 4 else 0 for layer in range(32)]
    result = size("jamba", heads(kv, 128, 128, 32) | MAMBA)
    assert result.kv.value == 4 * CONTEXT * 8 * 256 * 2
    assert result.state.value == 28 * 4 * (3 * 1536 + 16 * 1536)


def test_report_ollama_12692_granite_hybrid_has_four_attention_layers() -> None:
    kv = [8 if layer in (5, 15, 25, 35) else 0 for layer in range(40)]
    values = (
        heads(kv, 128, 128, 40) | MAMBA | {"ssm.inner_size": 8192, "ssm.state_size": 128, "ssm.group_count": 1}
    )
    result = size("granitehybrid", values)
    assert result.kv.value == 4 * CONTEXT * 8 * 256 * 2
    assert result.state.value == 36 * 4 * (3 * (8192 + 2 * 128) + 128 * 8192)
    assert result.per_token.value == 4 * 8 * 256 * 2


def test_falcon_h1_has_both_in_every_layer() -> None:
    result = size("falcon-h1", heads(2, 64, 64, 36) | MAMBA)
    assert result.kv.value == 36 * CONTEXT * 2 * 128 * 2
    assert result.state.value == 36 * 4 * (3 * (1536 + 2 * 8 * 16) + 16 * 1536)


def test_nemotron_h_has_three_kinds_of_layers() -> None:
    """Mamba, attention, feed-forward: the last keeps nothing."""
    kv, ffn = [0, 8, 0, 0], [0, 0, 21504, 0]
    result = size("nemotron_h", heads(kv, 128, 128, 4, feed_forward_length=ffn) | MAMBA)
    row = 4 * (3 * (1536 + 2 * 8 * 16) + 16 * 1536)
    assert result.layers == [0, CONTEXT * 8 * 256 * 2, 0, 0]
    assert result.state_layers == [row, 0, 0, row]


def test_lfm2_with_a_window_windows_all_attention_layers() -> None:
    kv = [8 if layer in (2, 5) else 0 for layer in range(6)]
    values = heads(kv, 64, 64, 6, embedding_length=2048) | {"shortconv.l_cache": 3}
    result = size("lfm2", values)
    assert result.kv.value == 2 * CONTEXT * 8 * 128 * 2
    assert result.state.value == 4 * 4 * 2048 * 2
    windowed = size("lfm2", values | {"attention.sliding_window": 512})
    assert windowed.kv.value == 2 * 1024 * 8 * 128 * 2


def test_kimi_linear_keeps_a_latent_row_in_a_quarter_of_its_layers() -> None:
    kv = [1 if layer in (3, 7, 11, 15, 19, 23, 26) else 0 for layer in range(27)]
    result = size("kimi-linear", heads(kv, 576, 512, 27) | KDA)
    assert result.kv.value == 7 * CONTEXT * 576 * 2
    assert result.state.value == 20 * 4 * 32 * 128 * (3 * 3 + 128)


@pytest.mark.parametrize(
    ("architecture", "interval", "full"), [("qwen3next", None, 12), ("qwen35", 8, 6), ("minimax-01", None, 6)]
)
def test_every_nth_layer_has_full_attention(architecture: str, interval: int | None, full: int) -> None:
    values = heads(2, 256, 256, 48) | MAMBA
    if interval is not None:
        values["full_attention_interval"] = interval
    assert size(architecture, values).kv.value == full * CONTEXT * 2 * 512 * 2


def test_minimax_01_state_is_a_square_of_each_head() -> None:
    assert size("minimax-01", heads(8, 128, 128, 80)).state.value == 70 * 4 * 128 * 128 * 32


def test_a_flag_for_each_layer_wins_over_the_interval() -> None:
    values = heads(2, 256, 256, 4, attention__recurrent_layers=[1, 1, 0, 0]) | MAMBA
    result = size("qwen35moe", values)
    assert result.layers is not None
    assert [number > 0 for number in result.layers] == [False, False, True, True]


def test_draft_states_multiply_only_where_the_engine_can_roll_back() -> None:
    values = heads(2, 256, 256, 48) | MAMBA
    one, four = size("qwen35", values), size("qwen35", values, draft_states=3)
    assert isinstance(one.state.value, int)
    assert four.state.value == 4 * one.state.value
    assert size("qwen3next", values, draft_states=3).state.value == one.state.value


def test_gemma3n_only_the_first_twenty_blocks_own_a_cache() -> None:
    result = size("gemma3n", heads(2, 256, 256, 35, attention__sliding_window=512))
    row = 2 * 512 * 2
    assert result.kv.value == (4 * CONTEXT + 16 * 1024) * row
    assert result.layers is not None
    assert result.layers[20:] == [0] * 15


def test_gemma4_the_last_blocks_share() -> None:
    pattern = [layer % 6 != 5 for layer in range(12)]
    values = heads(2, 512, 512, 12, attention__sliding_window=512, attention__sliding_window_pattern=pattern)
    values |= {"attention.key_length_swa": 256, "attention.value_length_swa": 256}
    values |= {"attention.shared_kv_layers": 5}
    assert size("gemma4", values).kv.value == (CONTEXT * 2 * 1024 + 6 * 1024 * 2 * 512) * 2


def test_llama4_is_chunked_by_8192_unless_the_window_is_0() -> None:
    values = heads(8, 128, 128, 48)
    row = 8 * 256 * 2
    long = cache_size(read_header(BytesSource(model_bytes("llama4", values))), CacheSettings(131072))
    assert long.kv.value == (12 * 131072 + 36 * 8704) * row
    off = cache_size(
        read_header(BytesSource(model_bytes("llama4", values | {"attention.sliding_window": 0}))),
        CacheSettings(131072),
    )
    assert off.kv.value == 48 * 131072 * row


def test_phi3_has_a_window_that_the_engine_ignores() -> None:
    assert (
        size("phi3", heads(32, 96, 96, 32, attention__sliding_window=2047)).kv.value == 32 * CONTEXT * 32 * 192 * 2
    )


def test_exaone4_windows_only_the_64_layer_model() -> None:
    big = cache_size(
        read_header(BytesSource(model_bytes("exaone4", heads(8, 128, 128, 64)))), CacheSettings(32768)
    )
    assert big.kv.value == (16 * 32768 + 48 * 4608) * 8 * 256 * 2
    assert size("exaone4", heads(8, 64, 64, 30)).kv.value == 30 * CONTEXT * 8 * 128 * 2


@pytest.mark.parametrize(
    ("architecture", "first_is_full"), [("laguna", True), ("cohere2moe", True), ("cohere2", False)]
)
def test_which_layer_of_a_period_is_full(architecture: str, first_is_full: bool) -> None:
    result = size(architecture, heads(8, 128, 128, 8, attention__sliding_window=512))
    assert result.layers is not None
    full = [layer for layer, number in enumerate(result.layers) if number == CONTEXT * 8 * 256 * 2]
    assert full == ([0, 4] if first_is_full else [3, 7])


def test_glm_5_2_every_fourth_layer_has_an_indexer() -> None:
    values = heads(1, 576, 512, 78, context_length=1 << 20, attention__indexer__key_length=128) | MLA
    assert size("glm-dsa", values).kv.value == (78 * 576 + 21 * 128) * CONTEXT * 2
    older = size("glm-dsa", values | {"context_length": 202752})
    assert older.kv.value == 78 * (576 + 128) * CONTEXT * 2


def test_hy_v4_shares_indexers_by_its_types() -> None:
    values = (
        heads(1, 576, 512, 4, attention__indexer__key_length=128, attention__indexer__types=[1, 0, 0, 1]) | MLA
    )
    values |= {"attention.indexer.top_k": 2048}
    assert size("hy_v4", values).kv.value == (4 * 576 + 2 * 128) * CONTEXT * 2
    assert size("hy_v4", values | {"attention.indexer.top_k": 0}).kv.value == 4 * 576 * CONTEXT * 2


def test_minimax_m3_indexes_behind_its_dense_layers() -> None:
    values = heads(4, 128, 128, 62, leading_dense_block_count=3, attention__indexer__key_length=96)
    assert size("minimax-m3", values).kv.value == (62 * 4 * 256 + 59 * (96 + 128)) * CONTEXT * 2


def test_glm5_next_is_an_estimate() -> None:
    values = (
        heads([1, 0, 0, 1], 576, 512, 4, attention__indexer__key_length=128, attention__indexer__kpool=4) | KDA
    )
    result = size("glm5-next", values)
    assert result.kv.value == 2 * (576 + 3 * 128) * CONTEXT * 2
    assert result.kv.provenance == "estimated:gguf indexer rows of glm5-next"


def test_qwen4exp_keeps_the_history_of_its_ngrams_and_is_an_estimate() -> None:
    values = heads(2, 256, 256, 8, attention__indexer__key_length=128, ple__layers=[1]) | MAMBA
    values |= {"ple.ngram_size": 3, "ple.conv_kernel": 4, "hyper_connection.count": 4}
    result = size("qwen4exp", values)
    row = 4 * (3 * (1536 + 2 * 8 * 16) + 16 * 1536)
    assert result.kv.value == 2 * (2 * 512 + 128) * CONTEXT * 2
    assert result.state.value == 6 * row + 4 * 3 * 3 * 4 * 4096
    assert result.state.provenance.startswith("estimated:")


def test_deepseek4_compresses_by_4_and_by_128() -> None:
    values = heads(1, 512, 512, 3, attention__sliding_window=128, attention__indexer__key_length=128)
    values |= {"attention.compress_ratios": [0, 4, 128]}
    result = size("deepseek4", values, sequences=4, unified=True)
    window, by_4, by_128 = 768, 1024, 256
    assert result.layers == [
        4 * window * 512 * 2,
        4 * (window * 512 + by_4 * (512 + 128)) * 2,
        4 * (window * 512 + by_128 * 512) * 2,
    ]
    assert result.kv.provenance == "estimated:gguf compressed caches of deepseek4"
    assert result.per_token.value is None


def test_draft_layers_are_no_part_of_the_main_cache() -> None:
    values = heads(8, 128, 128, 47, nextn_predict_layers=1)
    assert size("glm4moe", values).kv.value == 46 * CONTEXT * 8 * 256 * 2
    assert size("glm4moe", values, draft_context=True).kv.value == CONTEXT * 8 * 256 * 2


def test_deepseek4_without_draft_tensors_has_no_draft_layers() -> None:
    values = heads(1, 512, 512, 3, nextn_predict_layers=1, attention__sliding_window=128)
    values |= {"attention.indexer.key_length": 128, "attention.compress_ratios": [128, 128, 128]}
    without, having = size("deepseek4", values), size("deepseek4", values, ("blk.2.nextn.eh_proj.weight",))
    assert without.state_layers == [2 * 128 * 512 * 4] * 3
    assert having.state_layers == [2 * 128 * 512 * 4] * 2 + [0]


@pytest.mark.parametrize("name", sorted(families.WITHOUT_CACHE))
def test_an_engine_without_a_cache_has_one_of_0_bytes(name: str) -> None:
    result = size(name, heads(16, 64, 64, 24))
    assert (result.total.value, result.total.provenance) == (0, "computed:gguf")
    assert result.on_layers(range(24)).value == 0
