"""The second context of a server that drafts tokens: from header and flags, where they settle it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.llm.gguf_files import model_bytes, tensor
from tests.unit.llm.machine import GIB, MIB, Machine
from tests.unit.llm.models import F32, Q8_0, qwen3_06b, qwen3_14b
from tests.unit.llm.test_explain_process import explained, text_of
from tests.unit.llm.test_kv_log_values import QWEN35_27B_MTP
from tests.unit.llm.test_split_cases import LAYER, llm_of, serve

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = ("-c", "4096", "-np", "1", "-ngl", "99")
MAIN = 4096 * LAYER
KIB = 1024
HELD = {0: 30 * GIB}
MTP = ("-ngl", "99", "-c", "8192", "-np", "4", "--spec-type", "draft-mtp")


def qwen35_27b() -> bytes:
    return model_bytes("qwen35", QWEN35_27B_MTP, [tensor("output.weight", [64, 64], F32)])


def with_draft(folder: Path, *flags: str, data: bytes | None = None) -> Machine:
    machine = serve(folder, *flags, "-md", "/m/d.gguf", held=HELD)
    machine.file("/m/d.gguf", data if data is not None else qwen3_14b())
    return machine


def test_v054_and_v055_mtp_adds_a_context_of_its_own_layer_and_copies_of_the_state(tmp_path: Path) -> None:
    """A public log: KV 512.00 and 32.00 MiB, state 1795.50 MiB of 4 sequences and 2 drafted tokens."""
    machine = serve(tmp_path, *MTP, "--spec-draft-n-max", "2", data=qwen35_27b(), held=HELD)
    llm, sources = llm_of(machine)
    assert llm["kv_cache_bytes"] == (512 + 32 + 1795.5) * MIB
    assert sources["llm.kv_cache_bytes"] == "computed:gguf+cmdline+draft -ngl 99"
    assert llm["kv_bytes_per_token"] == (512 + 32) * MIB // 8192


def test_mtp_keeps_f16_whatever_the_main_cache_is(tmp_path: Path) -> None:
    flags = (*MTP, "--spec-draft-n-max", "2", "-ctk", "q8_0", "-ctv", "q8_0")
    llm, _ = llm_of(serve(tmp_path, *flags, data=qwen35_27b(), held=HELD))
    assert llm["kv_cache_bytes"] == (512 * 34 / 64 + 32 + 1795.5) * MIB
    more = ("-ctkd", "q4_0", "--spec-draft-type-v", "q4_0")
    llm, _ = llm_of(serve(tmp_path, *flags, *more, data=qwen35_27b(), held=HELD))
    assert llm["kv_cache_bytes"] == (512 * 34 / 64 + 32 * 18 / 64 + 1795.5) * MIB


def test_how_deep_mtp_drafts_is_not_guessed(tmp_path: Path) -> None:
    """The default changed over time, and each drafted token is one more copy of the state."""
    llm, sources = llm_of(serve(tmp_path, *MTP, data=qwen35_27b(), held=HELD))
    assert llm["kv_cache_bytes"] is None
    assert sources["llm.kv_cache_bytes"].startswith("null:ambiguous how many copies of its state")


def test_mtp_of_a_model_without_state_needs_no_depth(tmp_path: Path) -> None:
    """GLM-4.5-Air: 46 layers and one that drafts, 8 heads of 128 + 128, f16: 4 KiB a token and layer."""
    values = {"block_count": 47, "nextn_predict_layers": 1, "embedding_length": 4096, "context_length": 131072}
    values |= {"attention.head_count": 96, "attention.head_count_kv": 8}
    values |= {"attention.key_length": 128, "attention.value_length": 128}
    data = model_bytes("glm4moe", values, [tensor("blk.46.nextn.eh_proj.weight", [8192, 4096], Q8_0)])
    flags = ("-c", "4096", "-np", "1", "-ngl", "99")
    llm, _ = llm_of(serve(tmp_path, *flags, "--spec-type", "ngram-mod,draft-mtp", data=data, held=HELD))
    assert llm["kv_cache_bytes"] == 47 * 4096 * 4 * KIB
    assert llm["weights_bytes"] == 8192 * 4096 * 34 // 32
    llm, _ = llm_of(serve(tmp_path, *flags, "--spec-type", "ngram-mod", data=data, held=HELD))
    assert (llm["kv_cache_bytes"], llm["weights_bytes"]) == (46 * 4096 * 4 * KIB, 0)


@pytest.mark.parametrize(
    ("flags", "draft"),
    [
        (PLAIN, 4096 * 160 * KIB),
        ((*PLAIN, "--spec-type", "draft-simple"), 4096 * 160 * KIB),
        ((*PLAIN, "-ctkd", "q8_0", "-ctvd", "q8_0"), 4096 * 160 * KIB * 34 // 64),
        ((*PLAIN, "-ctk", "f32"), 4096 * 160 * KIB),
        ((*PLAIN, "-cd", "1024"), 1024 * 160 * KIB),
        ((*PLAIN, "-ngld", "0"), 0),
        ((*PLAIN, "-ngld", "11"), 4096 * 40 * KIB),
        (("-c", "4096", "-np", "4", "-ngl", "99"), 4096 * 160 * KIB),
    ],
)
def test_a_second_model_has_a_cache_like_the_firsts(tmp_path: Path, flags: tuple[str, ...], draft: int) -> None:
    """Qwen3-14B drafts: 40 layers, 160 KiB a token; of -ngld 11 ten layers and the output."""
    llm, _ = llm_of(with_draft(tmp_path, *flags))
    main = MAIN * 3 // 2 if "f32" in flags else MAIN
    assert llm["kv_cache_bytes"] == main + draft


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("-c", "4096", "-ngl", "99"), "how many slots draft"),
        (("-c", "4096", "-np", "4", "-kvu", "-ngl", "99"), "a draft context for each slot or one for all"),
        ((*PLAIN, "--spec-type", "draft-eagle3"), "a draft context comes on top"),
        ((*PLAIN, "--spec-type", "draft-mtp"), "a draft context comes on top"),
        (("-c", "4096", "-np", "4", "-ngl", "99", "-cd", "1024"), "a draft context comes on top"),
    ],
)
def test_what_a_second_model_takes_is_not_guessed(tmp_path: Path, flags: tuple[str, ...], why: str) -> None:
    llm, sources = llm_of(with_draft(tmp_path, *flags))
    assert llm["kv_cache_bytes"] is None
    assert sources["llm.kv_cache_bytes"].startswith(f"null:ambiguous {why}")


@pytest.mark.parametrize("architecture", ["eagle3", "dflash", "no-such-kind"])
def test_a_drafter_of_its_own_kind_has_no_rule(tmp_path: Path, architecture: str) -> None:
    data = model_bytes(architecture, {"block_count": 1}, [tensor("blk.0.attn_q.weight", [1024, 64], F32)])
    llm, _ = llm_of(with_draft(tmp_path, *PLAIN, data=data))
    assert llm["kv_cache_bytes"] is None


def test_the_build_settles_whether_all_slots_share_a_context(tmp_path: Path) -> None:
    machine = with_draft(tmp_path, "-c", "4096", "-np", "4", "-kvu", "-ngl", "99")
    machine.listen(10, 8080, inode=5)
    props = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4, "build_info": "b9400-x"}
    machine.http = {
        "127.0.0.1:8080/props": {"body": props},
        "127.0.0.1:8080/v1/models": {"body": {"data": []}},
    }
    assert llm_of(machine, probe=True)[0]["kv_cache_bytes"] == MAIN + 4096 * 160 * KIB
    machine.http["127.0.0.1:8080/props"] = {"body": {**props, "build_info": "b8000-x"}}
    assert llm_of(machine, probe=True)[0]["kv_cache_bytes"] is None


@pytest.mark.parametrize(("layers", "share"), [("99", 1.0), ("0", 0.0), ("11", 10 / 40)])
def test_a_second_models_weights_are_where_its_layers_are(tmp_path: Path, layers: str, share: float) -> None:
    """Its token embeddings stay in RAM; all layers are alike."""
    alone, _ = llm_of(serve(tmp_path, *PLAIN))
    llm, sources = llm_of(with_draft(tmp_path, *PLAIN, "-ngld", layers))
    layer = (5120 * (40 + 8 + 8 + 40) * 128 + 3 * 5120 * 17408) * 144 // 256 + (2 * 5120 + 2 * 128) * 4
    output = 5120 * 151936 * 144 // 256 + 5120 * 4 if layers != "0" else 0
    assert llm["weights_bytes"] - alone["weights_bytes"] == round(40 * share) * layer + output
    assert sources["llm.weights_bytes"] == f"computed:gguf+gguf.draft -ngl 99 -ngld {layers}"


def test_a_draft_model_from_a_repository_leaves_both_open(tmp_path: Path) -> None:
    llm, sources = llm_of(serve(tmp_path, *PLAIN, "-hfd", "ggml-org/Qwen3-0.6B-GGUF"))
    assert (llm["weights_bytes"], llm["kv_cache_bytes"]) == (None, None)
    assert sources["llm.weights_bytes"].startswith("null:ambiguous a draft model from a repository (-hfd)")


def test_other_contexts_count_the_draft_too(tmp_path: Path) -> None:
    machine = with_draft(tmp_path, *PLAIN, data=qwen3_06b())
    found = explained(machine, 10, contexts=[8192])
    assert [(row["tokens"], row["kv_cache_bytes"]) for row in found.document["context"]] == [(8192, 4 * MAIN)]
    assert "drafting" not in text_of(found)
