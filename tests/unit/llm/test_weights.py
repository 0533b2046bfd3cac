"""Weights by layer and by card; the published figures come from llama.cpp's own logs."""

from __future__ import annotations

from typing import Any

import pytest

from gpusnap.llm.cards import Cards
from gpusnap.llm.gguf_header import BytesSource, Header, read_header
from gpusnap.llm.overrides import Overrides
from gpusnap.llm.placement import Placement, place
from gpusnap.llm.weights import quantization, weights
from tests.unit.llm.gguf_files import U32, gguf_file, model_bytes, pair, tensor

MIB = 1 << 20
F32, Q4_K, Q6_K, Q8_0, FORK = 0, 12, 14, 8, 137

# Eight bytes of everything else, so that each part shows in the sum.
TENSORS = [
    tensor("token_embd.weight", [256, 1000], F32),
    tensor("rope_freqs.weight", [2], F32),
    tensor("blk.0.attn_q.weight", [256, 10], F32),
    tensor("blk.0.ffn_up_exps.weight", [256, 10, 8], F32),
    tensor("blk.1.attn_q.weight", [256, 20], F32),
    tensor("blk.1.ffn_down_exps.weight", [256, 20, 8], F32),
    tensor("blk.2.nextn.eh_proj.weight", [256, 7], F32),
    tensor("output_norm.weight", [256], F32),
]
OUTPUT = tensor("output.weight", [256, 1000], F32)
KIB = 1024


def model(tensors: list[bytes], **values: Any) -> Header:
    return read_header(BytesSource(model_bytes("llama", {"block_count": 3} | values, tensors)))


def test_parts_of_a_model() -> None:
    result = weights(model([*TENSORS, OUTPUT]))
    assert result.input == 1000 * KIB
    assert result.layers == [90 * KIB + 8, 180 * KIB, 7 * KIB]
    assert result.output == 1001 * KIB
    assert result.tied == 0
    assert (result.total.value, result.total.provenance) == (2278 * KIB + 8, "computed:gguf")


def test_on_one_card_everything_but_the_embeddings() -> None:
    result, placement = weights(model([*TENSORS, OUTPUT])), place(3, -1)
    assert placement is not None
    assert placement.complete
    assert result.on_card(placement, 0).value == 1278 * KIB + 8


def test_tied_embeddings_are_on_the_card_a_second_time() -> None:
    """Without an output matrix the card gets a copy of the embeddings; the total counts them once."""
    result, placement = weights(model(TENSORS)), place(3, 4)
    assert placement is not None
    assert result.total.value == 1278 * KIB + 8
    assert result.on_card(placement, 0).value == 1278 * KIB + 8


def test_partial_offload_takes_the_last_layers_and_the_output_first() -> None:
    result = weights(model([*TENSORS, OUTPUT]))
    one, two = place(3, 1), place(3, 2)
    assert one is not None
    assert two is not None
    assert result.on_card(one, 0).value == 1001 * KIB
    assert result.on_card(two, 0).value == (1001 + 7) * KIB
    assert not two.complete


def test_cpu_moe_leaves_only_the_experts_in_ram() -> None:
    result, placement = weights(model([*TENSORS, OUTPUT])), place(3, -1)
    assert placement is not None
    alone = Cards({0: 0}, [0], [1.0])
    some, every = Overrides([("experts", "1")], alone), Overrides([("experts", "all")], alone)
    assert result.on_card(placement, 0, some).value == (1278 - 80) * KIB + 8
    assert result.on_card(placement, 0, every).value == (1278 - 240) * KIB + 8


def test_two_cards_share_the_layers_in_order() -> None:
    result, placement = weights(model([*TENSORS, OUTPUT])), place(3, -1, [1, 1])
    assert placement is not None
    assert placement.cards == [[0, 1], [2]]
    assert placement.output == 1
    assert result.on_card(placement, 0).value == 270 * KIB + 8
    assert result.on_card(placement, 1).value == 1008 * KIB


def test_draft_layers_are_loaded_only_for_drafting() -> None:
    header = model([*TENSORS, OUTPUT], nextn_predict_layers=1)
    assert weights(header, drafts=True).total.value == 2278 * KIB + 8
    assert weights(header, drafts=True).total.provenance == "computed:gguf"
    assert weights(header, drafts=False).total.value == 2271 * KIB + 8
    assert weights(header, drafts=False).total.provenance == "computed:gguf"
    unknown = weights(header).total
    assert (unknown.value, unknown.provenance) == (2271 * KIB + 8, "estimated:gguf without 1 draft layers")


def test_a_tensor_type_that_is_not_known_leaves_the_file_size() -> None:
    head = model_bytes("llama", {"block_count": 1}, [tensor("blk.0.x", [256], FORK)])
    whole = head + bytes(-len(head) % 32) + bytes(144)
    known = weights(read_header(BytesSource(whole)))
    assert known.total.value == 144
    assert known.total.provenance == "estimated:gguf file size, tensor type 137 is not known"
    placement = place(1, -1)
    assert placement is not None
    assert known.on_card(placement, 0).value is None


def test_a_projector_is_the_sum_of_its_tensors() -> None:
    """mmproj files have no text layers: all of it goes where the projector goes."""
    data = gguf_file((), [tensor("v.blk.0.attn_q.weight", [256], F32), tensor("mm.0.weight", [256], F32)])
    assert weights(read_header(BytesSource(data))).total.value == 2 * KIB


def qwen3_06b_q8_0() -> Header:
    """The published file's tensors: 28 layers, tied embeddings, matrices Q8_0, norms F32."""
    matrices = {
        "attn_q": [1024, 2048],
        "attn_k": [1024, 1024],
        "attn_v": [1024, 1024],
        "attn_output": [2048, 1024],
        "ffn_gate": [1024, 3072],
        "ffn_up": [1024, 3072],
        "ffn_down": [3072, 1024],
    }
    norms = {"attn_norm": [1024], "ffn_norm": [1024], "attn_q_norm": [128], "attn_k_norm": [128]}
    tensors = [tensor("token_embd.weight", [1024, 151936], Q8_0), tensor("output_norm.weight", [1024], F32)]
    for layer in range(28):
        tensors += [tensor(f"blk.{layer}.{name}.weight", dims, Q8_0) for name, dims in matrices.items()]
        tensors += [tensor(f"blk.{layer}.{name}.weight", dims, F32) for name, dims in norms.items()]
    return read_header(BytesSource(model_bytes("qwen3", {"block_count": 28}, tensors)))


def test_v058_qwen3_06b_q8_0_takes_604_mib() -> None:
    """The engine's log: CPU_Mapped model buffer size = 604.15 MiB. On a card their copy is the output."""
    header = qwen3_06b_q8_0()
    result, placement = weights(header), place(28, -1)
    assert placement is not None
    assert isinstance(result.total.value, int)
    assert result.total.value / MIB == pytest.approx(604.15, abs=0.005)
    assert result.on_card(placement, 0).value == result.total.value
    assert header.parameters == 596_049_920


def test_llama_31_8b_q4_k_m_embeddings_in_ram() -> None:
    """The logs of this file say CPU_Mapped 281.81 MiB: the embeddings alone."""
    header = model([tensor("token_embd.weight", [4096, 128256], Q4_K), OUTPUT])
    assert weights(header).input / MIB == pytest.approx(281.81, abs=0.005)


@pytest.mark.parametrize(
    ("layers", "gpu_layers", "first", "output"),
    [
        (64, 26, 39, 0),  # V051: "-ngl 26" of a 64-layer model: the last 25 repeating layers
        (32, 20, 13, 0),  # V099: "20/33" = 19 repeating + output
        (28, 99, 0, 0),
        (28, -1, 0, 0),
        (28, 0, 28, None),
    ],
)
def test_offload_as_the_logs_show_it(layers: int, gpu_layers: int, first: int, output: int | None) -> None:
    placement = place(layers, gpu_layers)
    assert placement is not None
    assert placement.cards == [list(range(first, layers))]
    assert placement.output == output


def test_v082_older_builds_count_repeating_layers_only() -> None:
    """ "offloaded 29/65 layers" of Qwen3-32B: 29 repeating layers on the card, the output layer in RAM."""
    placement = place(64, 29, output_counts=False)
    assert placement is not None
    assert placement.cards == [list(range(35, 64))]
    assert placement.output is None
    full = place(64, 65, output_counts=False)
    assert full is not None
    assert full.output == 0


@pytest.mark.parametrize(
    ("shares", "counts"),
    [([3, 1], [25, 7]), ([1, 1, 1], [11, 11, 10]), ([1, 0], [32, 0]), ([0, 1], [0, 32]), ([0.3, 0.7], [10, 22])],
)
def test_tensor_split_shares_33_layers(shares: list[float], counts: list[int]) -> None:
    """32 repeating layers and the output layer; the first card's share is rounded up."""
    placement = place(32, -1, shares)
    assert placement is not None
    assert [len(card) for card in placement.cards] == counts


@pytest.mark.parametrize("shares", [[], [0, 0], [-1, 2], [float("inf")], [float("nan")]])
def test_shares_that_say_nothing(shares: list[float]) -> None:
    assert place(32, -1, shares) is None


@pytest.mark.parametrize(
    ("number", "name"), [(0, "F32"), (1, "F16"), (7, "Q8_0"), (15, "Q4_K_M"), (1039, "Q4_K_M")]
)
def test_quantization_by_the_files_own_word(number: int, name: str) -> None:
    key = pair("general.file_type", U32, number.to_bytes(4, "little"))
    result = quantization(read_header(BytesSource(gguf_file([key]))))
    assert (result.value, result.provenance) == (name, "computed:gguf.file_type")


def test_quantization_by_most_bytes_where_the_file_does_not_say() -> None:
    header = model([tensor("a", [256, 100], Q4_K), tensor("b", [256, 10], Q6_K), tensor("c", [256], F32)])
    assert quantization(header).value == "Q4_K"
    assert quantization(header).provenance == "computed:gguf.tensor_types"
    assert quantization(model([])).provenance == "null:none no tensors"


def test_placement_without_any_layer_is_not_complete() -> None:
    assert not Placement([[]], None).complete
