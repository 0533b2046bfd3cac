"""Which card gets what: tensors by hand, several cards, a projector and adapters beside the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.llm.gguf_files import model_bytes, tensor
from tests.unit.llm.machine import GIB, MIB, Machine
from tests.unit.llm.models import F32, Q4_K, Q6_K, qwen3_06b
from tests.unit.llm.test_split_cases import LAYER, QWEN, llm_of, serve

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = ("-c", "4096", "-np", "1", "-ngl", "99")
TWO = ("NVIDIA A40", "NVIDIA A40")
UNLIKE = ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090")
HELD = {0: GIB, 1: GIB}
UUID = "GPU-aaaaaaaa-0000-4000-8000-00000000000"
# Qwen3-0.6B Q8_0 by hand: 34 bytes hold 32 weights.
FFN = 3 * 1024 * 3072 * 34 // 32
ATTENTION = (1024 * 2048 * 2 + 2 * 1024 * 1024) * 34 // 32
NORMS = (2 * 1024 + 2 * 128) * 4
EMBEDDINGS = 1024 * 151936 * 34 // 32
WHOLE = 28 * (FFN + ATTENTION + NORMS) + EMBEDDINGS + 1024 * 4


@pytest.mark.parametrize(
    ("flags", "away"),
    [
        (["-ot", r"\.ffn_(up|gate|down)\.=CPU"], 28 * FFN),
        (["--override-tensor", r"blk\.[0-9]\.ffn_up=CPU"], 10 * FFN // 3),
        (["-ot", r"blk\.[0-3]\.attn_[qk]\.=CPU,blk\.9\.ffn=CPU"], 4 * 3 * 1024 * 1024 * 34 // 32 + FFN + 4096),
        # the first that fits decides: layer 3 stays
        (["-ot", r"blk\.3\.ffn=CUDA0", "-ot", r"\.ffn_(up|gate|down)\.=CPU"], 27 * FFN),
        (["-ncffn", "5"], 5 * FFN),
        (["-ot", "nothing=CPU"], 0),
        # tied embeddings are one tensor where both uses go to one buffer
        (["-ot", "token_embd=CPU"], EMBEDDINGS),
        (["-ot", "token_embd=CUDA0"], 0),
    ],
)
def test_tensors_placed_by_hand(tmp_path: Path, flags: list[str], away: int) -> None:
    """Only weights move: the cache stays with its layer (sheet, "where it lives")."""
    llm, sources = llm_of(serve(tmp_path, *PLAIN, *flags))
    assert llm["weights_bytes"] == WHOLE - away
    assert llm["kv_cache_bytes"] == 448 * MIB
    assert sources["llm.weights_bytes"] in (
        "computed:gguf -ngl 99 -ot", "computed:gguf -ngl 99 --n-cpu-ffn",
    )  # fmt: skip


@pytest.mark.parametrize("word", ["(?!blk.3).*=CPU", "exps", "ffn=CUDA1", "ffn=SOMETHING[1]", "[=CPU"])
def test_an_override_that_is_not_understood_leaves_the_weights_open(tmp_path: Path, word: str) -> None:
    llm, sources = llm_of(serve(tmp_path, *PLAIN, "-ot", word))
    assert llm["weights_bytes"] is None
    assert sources["llm.weights_bytes"].startswith("null:ambiguous ")
    assert llm["kv_cache_bytes"] == 448 * MIB


def test_overrides_of_the_environment_come_first_and_are_not_printed(tmp_path: Path) -> None:
    environ = {"LLAMA_ARG_OVERRIDE_TENSOR": r"blk\.0\.ffn_up=CPU", "LLAMA_ARG_N_CPU_FFN": "2"}
    machine = serve(tmp_path, *PLAIN, environ=environ)
    llm, _ = llm_of(machine)
    assert llm["weights_bytes"] == WHOLE - 2 * FFN
    assert "ffn_up" not in str(machine.snapshot())


def test_experts_in_ram_let_a_large_model_fit(tmp_path: Path) -> None:
    """-ngl auto: what is on the card is what is left of the layers, and that must be what fits."""
    tensors = [tensor("token_embd.weight", [2048, 1000], F32), tensor("output.weight", [2048, 1000], F32)]
    tensors += [tensor(f"blk.{layer}.ffn_up_exps.weight", [2048, 768, 128], Q4_K) for layer in range(48)]
    tensors += [tensor(f"blk.{layer}.attn_q.weight", [2048, 4096], Q4_K) for layer in range(48)]
    values = {"block_count": 48, "attention.head_count": 32, "attention.head_count_kv": 4, "context_length": 32768}
    values |= {"attention.key_length": 128, "attention.value_length": 128, "embedding_length": 2048}
    data = model_bytes("qwen3moe", values, tensors)
    held = {0: GIB}
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "--cpu-moe", data=data, held=held))
    assert llm["weights_bytes"] == 48 * 2048 * 4096 * 144 // 256 + 2048 * 1000 * 4
    assert sources["llm.weights_bytes"] == "inferred:gguf all layers fit --cpu-moe"
    llm, _ = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", data=data, held=held))
    assert llm["weights_bytes"] is None


def qwen3_30b_a3b() -> bytes:
    """Q4_K_M: attn_v is Q6_K in the first and last eighth of the layers and in every third between."""
    tensors = [tensor("token_embd.weight", [2048, 151936], Q4_K), tensor("output.weight", [2048, 151936], Q6_K)]
    tensors.append(tensor("output_norm.weight", [2048], F32))
    for layer in range(48):
        more = layer < 6 or layer >= 42 or (layer - 6) % 3 == 2
        block = f"blk.{layer}."
        tensors += [
            tensor(block + "attn_q.weight", [2048, 4096], Q4_K),
            tensor(block + "attn_k.weight", [2048, 512], Q4_K),
            tensor(block + "attn_v.weight", [2048, 512], Q6_K if more else Q4_K),
            tensor(block + "attn_output.weight", [4096, 2048], Q4_K),
            tensor(block + "ffn_gate_inp.weight", [2048, 128], F32),
            tensor(block + "attn_norm.weight", [2048], F32),
            tensor(block + "ffn_norm.weight", [2048], F32),
            tensor(block + "attn_q_norm.weight", [128], F32),
            tensor(block + "attn_k_norm.weight", [128], F32),
        ]
        tensors += [tensor(f"{block}ffn_{one}_exps.weight", [2048, 768, 128], Q4_K) for one in ("up", "gate")]
        tensors.append(tensor(block + "ffn_down_exps.weight", [768, 2048, 128], Q6_K if more else Q4_K))
    values: dict[str, Any] = {"block_count": 48, "context_length": 32768, "embedding_length": 2048}
    values |= {"attention.head_count": 32, "attention.head_count_kv": 4}
    values |= {"attention.key_length": 128, "attention.value_length": 128}
    return model_bytes("qwen3moe", values, tensors)


def test_v060_and_v061_experts_in_ram_and_layers_on_two_cards(tmp_path: Path) -> None:
    """A public log: 135.76 and 648.66 MiB of weights, 12 and 36 layers' caches of 384 and 1152 MiB."""
    flags = ("-c", "16384", "-np", "1", "-ngl", "99", "-ts", "12,37", "-ot", "exps=CPU")
    held = {0: 3 * GIB, 1: 4 * GIB}
    machine = serve(tmp_path, *flags, data=qwen3_30b_a3b(), cards=TWO, held=held)
    for card, (weights, cache) in enumerate(((135.76, 384), (648.66, 1152))):
        llm, sources = llm_of(machine, card)
        assert round(llm["weights_bytes"] / MIB, 2) == weights
        assert llm["kv_cache_bytes"] == cache * MIB
        assert sources["llm.weights_bytes"] == "inferred:gguf -ngl 99 -ts, cards in their order -ot"


def caches(machine: Machine) -> list[int | None]:
    """Layers' caches on two cards, in layers."""
    found = [llm_of(machine, card)[0]["kv_cache_bytes"] for card in (0, 1)]
    return [None if value is None else value // (4096 * LAYER // 28) for value in found]


@pytest.mark.parametrize(
    ("flags", "environ", "cards", "layers"),
    [
        (["-ts", "3,1"], {}, TWO, [22, 6]),
        (["-ts", "3/1"], {}, TWO, [22, 6]),
        (["-ts", "1"], {}, TWO, [28, 0]),
        (["-ts", "0,1"], {}, TWO, [0, 28]),
        (["-ts", "3,1", "-sm", "layer"], {}, TWO, [22, 6]),
        (["-ts", "3,1", "-dev", "CUDA1,CUDA0"], {}, TWO, [6, 22]),
        (["-ts", "3,1"], {"CUDA_VISIBLE_DEVICES": "1,0"}, TWO, [6, 22]),
        (["-ts", "3,1"], {"CUDA_VISIBLE_DEVICES": f"{UUID}1,{UUID}0"}, UNLIKE, [6, 22]),
        (["-ts", "3,1"], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, UNLIKE, [22, 6]),
        (["-ts", "3,1"], {}, UNLIKE, [None, None]),
        (["-ts", "3,1"], {"CUDA_VISIBLE_DEVICES": "0,1"}, UNLIKE, [None, None]),
        (["-ts", "3,1"], {"GGML_VK_VISIBLE_DEVICES": "1,0"}, TWO, [None, None]),
        (["-ts", "1,1,1"], {}, TWO, [None, None]),
        (["-ts", "nan,1"], {}, TWO, [None, None]),
        (["-ts", "3,1", "-sm", "row"], {}, TWO, [None, None]),
        (["-ts", "3,1", "-sm", "tensor"], {}, TWO, [None, None]),
        (["-sm", "none"], {}, TWO, [28, 0]),
        (["-sm", "none", "-mg", "1"], {}, TWO, [0, 28]),
        (["-sm", "none", "-mg", "2"], {}, TWO, [None, None]),
        (["-dev", "CUDA1"], {}, TWO, [0, 28]),
        (["-dev", "none"], {}, TWO, [0, 0]),
        (["-ts", "3,1", "--rpc", "10.0.0.2:50052"], {}, TWO, [None, None]),
        ([], {}, TWO, [None, None]),
    ],
)  # fmt: skip
def test_layers_over_two_cards(
    tmp_path: Path, flags: list[str], environ: dict[str, str], cards: tuple[str, str], layers: list[int | None]
) -> None:
    """29 layers with the output; CUDA's own order of unlike cards is by speed, which nobody can know here."""
    assert caches(serve(tmp_path, *PLAIN, *flags, environ=environ, cards=cards, held=HELD)) == layers


def test_a_tensor_sent_to_the_other_card(tmp_path: Path) -> None:
    flags = ("-ts", "1,0", "-ot", r"blk\.[0-9]\.ffn_(up|down|gate)\.=CUDA1")
    machine = serve(tmp_path, *PLAIN, *flags, cards=TWO, held=HELD)
    found = [llm_of(machine, card)[0]["weights_bytes"] for card in (0, 1)]
    assert found == [WHOLE - 10 * FFN, 10 * FFN]


def test_more_shares_than_cards_that_are_seen(tmp_path: Path) -> None:
    """Two cards get layers, of one there is a figure: the other's driver tells none."""
    llm, sources = llm_of(serve(tmp_path, *PLAIN, "-ts", "1,1"))
    assert llm["weights_bytes"] is None
    assert sources["llm.kv_cache_bytes"] == "null:ambiguous -ts names more cards than are measured"


def test_layers_on_other_machines_are_not_charged_to_this_card(tmp_path: Path) -> None:
    llm, sources = llm_of(serve(tmp_path, *PLAIN, "--rpc", "10.0.0.2:50052"))
    assert (llm["weights_bytes"], llm["kv_cache_bytes"]) == (None, None)
    assert sources["llm.weights_bytes"].startswith("null:ambiguous some layers are on other machines (--rpc)")


def test_an_adapter_lies_with_the_layers_that_it_changes(tmp_path: Path) -> None:
    """-ngl 20: layers 9 to 27 are on the card, and the adapter's parts for them."""
    pairs = [
        (f"blk.{layer}.attn_q.weight.{part}", [1024, 16]) for layer in range(28) for part in ("lora_a", "lora_b")
    ]
    adapter = model_bytes("qwen3", {}, [tensor(name, dims, F32) for name, dims in pairs])
    flags = ("-c", "4096", "-np", "1", "-ngl", "20")
    alone, _ = llm_of(serve(tmp_path, *flags))
    machine = serve(tmp_path, *flags, "--lora", "/m/l.gguf")
    machine.file("/m/l.gguf", adapter)
    assert llm_of(machine)[0]["weights_bytes"] - alone["weights_bytes"] == 19 * 2 * 1024 * 16 * 4


@pytest.mark.parametrize(
    ("flags", "card"),
    [([], 0), (["-mmdev", "CUDA1"], 1), (["--no-mmproj-offload"], None), (["-mmdev", "none"], None)],
)
def test_a_projector_is_on_one_card(tmp_path: Path, flags: list[str], card: int | None) -> None:
    machine = serve(
        tmp_path, *PLAIN, "-ts", "0,1", "--mmproj", "/m/p.gguf", *flags, cards=TWO, held={0: GIB, 1: 2 * GIB}
    )
    machine.file("/m/p.gguf", qwen3_06b())  # stands for any file of so many bytes of tensors
    found = [llm_of(machine, place)[0]["weights_bytes"] for place in (0, 1)]
    base = [0, WHOLE]
    assert [round((now - then) / MIB) for now, then in zip(found, base, strict=True)] == [
        604 if place == card else 0 for place in (0, 1)
    ]


def test_a_file_of_the_model_is_what_is_read(tmp_path: Path) -> None:
    """The sums by hand above are the file's own."""
    llm, _ = llm_of(serve(tmp_path, *PLAIN))
    assert llm["weights_bytes"] == WHOLE
    assert QWEN.endswith(".gguf")
