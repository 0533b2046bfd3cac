"""What a command line leaves open is not claimed: routers, files of repositories, KoboldCpp's own flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.llm.machine import GIB, MIB, Machine, row_of, sources_of
from tests.unit.llm.models import qwen3_06b
from tests.unit.llm.test_explain_process import explained, text_of

if TYPE_CHECKING:
    from pathlib import Path

HUB = "/home/alice/.cache/huggingface/hub/models--a--b/snapshots/r1"
FFN = 3 * 1024 * 3072 * 34 // 32
WHOLE = 633495552  # Qwen3-0.6B Q8_0, 604.15 MiB
CACHE = 448 * MIB
ROUTER = "its children load the models"


def serve(folder: Path, words: list[str], **more: Any) -> Machine:
    machine = Machine(folder)
    machine.card(24 * GIB)
    machine.process(10, words, {0: 4 * GIB}, ppid=5, **more)
    machine.file("/m/q.gguf", qwen3_06b())
    return machine


def facts_of(machine: Machine) -> tuple[dict[str, Any], dict[str, str]]:
    document = machine.snapshot()
    row = row_of(document, 10)
    assert row["llm"] is not None
    return dict(row["llm"]), sources_of(document, row)


def test_llama_cpp_20582_only_a_router_is_called_one(tmp_path: Path) -> None:
    for flags in (["--models-dir", "/models"], []):
        machine = serve(tmp_path, ["llama-server", *flags], environ={"HOME": "/home/alice"})
        assert facts_of(machine)[1]["llm.weights_bytes"].endswith(ROUTER)
        assert ROUTER in text_of(explained(machine, 10))


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        (["-mu", "https://example.org/q.gguf"], {}),
        (["--docker-repo", "ai/gemma3"], {}),
        ([], {"LLAMA_ARG_MODEL_URL": "https://example.org/q.gguf"}),
        ([], {"LLAMA_ARG_DOCKER_REPO": "ai/gemma3"}),
        ([], None),  # another user's: its environment may name a model
    ],
)
def test_a_server_whose_model_is_named_elsewhere_is_no_router(
    tmp_path: Path, flags: list[str], environ: dict[str, str] | None
) -> None:
    machine = serve(tmp_path, ["llama-server", "-c", "4096", *flags], environ=environ)
    if environ is None:
        machine.entry("--- proc/10/environ !EACCES\n")
    _, sources = facts_of(machine)
    assert sources["llm.weights_bytes"] == "null:none no model file is mapped, open or named"
    assert ROUTER not in text_of(explained(machine, 10))


@pytest.mark.parametrize(
    ("flags", "files", "times"),
    [
        ([], ["mmproj-b-f16.gguf"], 2),
        (["--no-mmproj"], ["mmproj-b-f16.gguf"], 1),
        (["--no-mmproj-offload"], ["mmproj-b-f16.gguf"], 1),
        ([], [], 1),
    ],
)
def test_a_projector_comes_with_its_repository(
    tmp_path: Path, flags: list[str], files: list[str], times: int
) -> None:
    """-hf loads the repository's projector unless told not to; it stands in the folder of the model."""
    words = ["llama-server", "-hf", "a/b:Q8_0", "-c", "4096", "-np", "1", "-ngl", "99", *flags]
    machine = serve(tmp_path, words, environ={"HOME": "/home/alice"})
    for name in ["b-Q8_0.gguf", *files]:
        machine.file(f"{HUB}/{name}", qwen3_06b())
    assert facts_of(machine)[0]["weights_bytes"] == times * WHOLE


def test_of_several_projectors_none_is_chosen(tmp_path: Path) -> None:
    words = ["llama-server", "-hf", "a/b:Q8_0", "-c", "4096", "-np", "1", "-ngl", "99"]
    machine = serve(tmp_path, words, environ={"HOME": "/home/alice"})
    for name in ("b-Q8_0.gguf", "mmproj-b-f16.gguf", "mmproj-b-bf16.gguf"):
        machine.file(f"{HUB}/{name}", qwen3_06b())
    llm, sources = facts_of(machine)
    assert llm["weights_bytes"] is None
    assert sources["llm.weights_bytes"] == "null:ambiguous which projector of the repository is loaded"


KOBOLD = ["koboldcpp", "--model", "/m/q.gguf", "--contextsize", "4096", "--gpulayers", "99", "--flashattention"]


@pytest.mark.parametrize(
    ("flags", "weights", "cache"),
    [
        ([], WHOLE, CACHE),
        (["--overridetensors", r"\.ffn_(up|down|gate)\.=CPU"], WHOLE - 28 * FFN, CACHE),
        (["--moecpu"], WHOLE, CACHE),
        (["--moecpu", "3"], WHOLE, CACHE),
        (["--usecublas", "normal", "lowvram"], WHOLE, 0),
        (["--usecuda", "lowvram", "0", "mmq"], WHOLE, 0),
        (["--tensor_split", "3", "1"], None, None),  # one of the two cards is not seen
    ],
)
def test_koboldcpps_flags_for_what_is_on_the_card(
    tmp_path: Path, flags: list[str], weights: int | None, cache: int | None
) -> None:
    llm, sources = facts_of(serve(tmp_path, [*KOBOLD, *flags]))
    assert (llm["weights_bytes"], llm["kv_cache_bytes"]) == (weights, cache)
    if cache:
        # It adds up to 128 tokens for shifting, by build and setting.
        assert sources["llm.kv_cache_bytes"].startswith("estimated:")
        assert "koboldcpp" in sources["llm.kv_cache_bytes"]


def test_koboldcpp_over_two_cards(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for _ in range(2):
        machine.card(24 * GIB)
    machine.process(10, [*KOBOLD, "--tensor_split", "3", "1", "--port", "5001"], {0: 2 * GIB, 1: 2 * GIB}, ppid=5)
    machine.file("/m/q.gguf", qwen3_06b())
    document = machine.snapshot()
    for card, layers in ((0, 22), (1, 6)):
        llm = row_of(document, 10, card)["llm"]
        assert llm is not None
        assert llm["kv_cache_bytes"] == layers * CACHE // 28


def test_a_name_without_end_is_cut(tmp_path: Path) -> None:
    machine = serve(tmp_path, ["python3", "/srv/tabbyAPI/main.py"])
    machine.listen(10, 5000, inode=5)
    machine.http = {"127.0.0.1:5000/v1/model": {"body": {"id": "m\x1b[31m\n" * 1000}}}
    row = row_of(machine.snapshot(probe=True), 10)
    assert row["model"] is not None
    name = row["model"]["name"]
    assert name is not None
    assert len(name) <= 300
    assert name.isprintable()
