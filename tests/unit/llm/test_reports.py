"""Public reports about model servers: the input of each, and what `explain` says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.explain.explanation import explain_snapshot
from tests.unit.llm.machine import GIB, MIB, Machine, row_of, sources_of
from tests.unit.llm.models import gemma3_4b, granite_hybrid, llama_70b, qwen3_06b, qwen3_14b
from tests.unit.llm.test_explain_process import explained, says, text_of, value

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "ab" * 32
MODELS = "/usr/share/ollama/.ollama/models"
BLOB = f"{MODELS}/blobs/sha256-{DIGEST}"


def ollama(
    folder: Path,
    data: bytes,
    name: str,
    tag: str,
    held: dict[int, int],
    *flags: str,
    cards: int = 1,
    card: int = 24 * GIB,
    ps: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> Machine:
    """`ollama serve` with one runner of the kind of 2026, and what its `/api/ps` says."""
    machine = Machine(folder)
    for _ in range(cards):
        machine.card(card, "NVIDIA A40")
    machine.process(10, ["/usr/local/bin/ollama", "serve"])
    words = ["/usr/local/lib/ollama/llama-server", "--model", BLOB, "--port", "40001", *flags]
    machine.process(11, words, held, ppid=10, environ=environ or {})
    machine.file(BLOB, data)
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{DIGEST}"}]
    manifest = json.dumps({"layers": layers}).encode()
    machine.file(f"{MODELS}/manifests/registry.ollama.ai/library/{name}/{tag}", manifest)
    if ps is not None:
        machine.entry("--- proc/11/net/tcp\n  sl  local_address rem_address st\n")
        machine.entry("   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 777 1\n")
        machine.entry("--- proc/10/fd/3 -> socket:[777]\n")
        machine.http = {"127.0.0.1:11434/api/ps": {"body": {"models": [{"name": f"{name}:{tag}", **ps}]}}}
    return machine


def test_report_016_a_claim_of_all_on_the_card_beside_the_measurement(tmp_path: Path) -> None:
    """ "100% GPU": size_vram is the whole size, the card holds 1 GiB."""
    ps = {"size": 21 * GIB, "size_vram": 21 * GIB, "context_length": 8192}
    machine = ollama(tmp_path, qwen3_14b(), "qwen3", "14b", {0: GIB}, "-c", "8192", "-np", "1", ps=ps)
    found = explained(machine, 11, probe=True)
    assert (value(found, "claimed_bytes"), value(found, "vram_bytes")) == (21 * GIB, GIB)
    (warning,) = [w for w in found.document["warnings"] if w["code"] == "claim-contradicts-measurement"]
    assert "says 21.0 GiB in VRAM, measured are 1.0 GiB" in warning["message"]
    assert value(found, "llm.weights_bytes") is None  # not all layers can be there: no figure


def test_report_071_one_unit_and_the_measurement_wins(tmp_path: Path) -> None:
    """`ollama ps`: 22 GB; nvidia-smi: 16011 MiB."""
    ps = {"size": 22_000_000_000, "size_vram": 22_000_000_000, "context_length": 4096}
    machine = ollama(tmp_path, qwen3_14b(), "m", "latest", {0: 16011 * MIB}, "-c", "4096", "-np", "1", ps=ps)
    found = explained(machine, 11, probe=True)
    assert value(found, "vram_bytes") == 16011 * MIB
    text = text_of(found)
    assert "20.5 GiB  ollama /api/ps: its own estimate, not a measurement" in text
    assert "holds 15.6 GiB" in text


def test_report_089_the_cache_of_a_long_context_over_four_cards(tmp_path: Path) -> None:
    """size_vram 12 GB, 90 GiB over four cards at 262,144 tokens: 80 GiB of it is KV cache."""
    ps = {"size": 12_000_000_000, "size_vram": 12_000_000_000, "context_length": 262144}
    held = dict.fromkeys(range(4), round(22.5 * GIB))
    machine = ollama(tmp_path, llama_70b(), "m", "latest", held, "-c", "262144", "-np", "1", cards=4, ps=ps)
    found = explained(machine, 11, probe=True)
    assert value(found, "kv_cache_on_all_cards_bytes") == 80 * GIB
    text = text_of(found)
    assert "the KV cache of 262,144 tokens dominates: 80.0 GiB, 89 % of what it holds on 4 cards" in text
    (warning,) = [w for w in found.document["warnings"] if w["code"] == "claim-contradicts-measurement"]
    assert "says 11.2 GiB in VRAM, measured are 90.0 GiB over 4 cards" in warning["message"]
    assert "it loses the larger of two caches" in text


def test_report_107_the_cache_type_counts_and_nothing_is_larger_than_measured(tmp_path: Path) -> None:
    """52 GB claimed; 6097 and 5419 MiB measured on two P40 with a q8_0 cache."""
    ps = {"size": 52_000_000_000, "size_vram": 50_000_000_000, "context_length": 16384}
    flags = ["-c", "16384", "-np", "1", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0", "-fa", "on"]
    machine = ollama(tmp_path, qwen3_14b(), "m", "latest", {0: 6097 * MIB, 1: 5419 * MIB}, *flags, cards=2, ps=ps)
    found = explained(machine, 11, probe=True)
    # 40 layers x 8 heads x (128 + 128) elements at 34 bytes for 32
    assert value(found, "llm.kv_bytes_per_token") == 40 * 8 * 256 * 34 // 32
    for figure in found.document["figures"]:
        if figure["field"].startswith("llm.") and figure["unit"] == "bytes" and isinstance(figure["value"], int):
            assert figure["value"] <= 6097 * MIB
    assert any("46.6 GiB" in warning["message"] for warning in found.document["warnings"])


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("2020-01-01T00:00:00+01:00", "unload pending since 2020-01-01T00:00:00+01:00"),
        ("2126-01-01T00:00:00Z", "stays loaded until 2126-01-01T00:00:00Z (keep_alive)"),
        ("Stopping...", "stays loaded until 'Stopping...'"),
    ],
)
def test_report_125_a_model_that_is_to_be_unloaded(tmp_path: Path, until: str, said: str) -> None:
    """What stays after /bye stays by keep-alive."""
    ps = {"size": GIB, "size_vram": GIB, "context_length": 4096, "expires_at": until}
    machine = ollama(tmp_path, qwen3_06b(), "m", "latest", {0: 2 * GIB}, "-c", "4096", "-np", "1", ps=ps)
    found = explained(machine, 11, probe=True)
    assert said in text_of(found)
    warned = [(w["pid"], w["message"]) for w in found.snapshot["warnings"] if w["code"] == "unload-pending"]
    if "pending" not in said:
        assert warned == []
        return
    ((pid, message),) = warned
    assert pid == 11
    assert message.startswith(f"m:latest: {said} (/api/ps): it still holds memory")


def test_report_125_an_idle_card_says_that_the_unloading_is_overdue(tmp_path: Path) -> None:
    """Full, 0 % busy, UNTIL "Stopping...": `explain` of the card has the moment in its advice."""
    ps = {"size": GIB, "size_vram": GIB, "context_length": 4096, "expires_at": "2026-01-01T11:20:00Z"}
    machine = ollama(tmp_path, qwen3_06b(), "m", "latest", {0: 22 * GIB}, "-c", "4096", "-np", "1", ps=ps)
    machine.calls["nvmlDeviceGetUtilizationRates 0"] = {"gpu": 0, "memory": 0}
    document = machine.snapshot(probe=True)
    (found,) = [one for one in explain_snapshot(document).document["findings"] if one["code"] == "idle-but-full"]
    assert any("m:latest: unload pending since 2026-01-01T11:20:00Z" in said for said in found["advice"])


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00Z", "2318-01-01T00:00:00Z", "now", 5, None])
def test_report_125_no_time_is_no_unloading(tmp_path: Path, until: object) -> None:
    """Go's zero time stands there while a model loads, the year 2318 for "never"."""
    ps = {"size": GIB, "size_vram": GIB, "context_length": 4096, "expires_at": until}
    machine = ollama(tmp_path, qwen3_06b(), "m", "latest", {0: 2 * GIB}, "-c", "4096", "-np", "1", ps=ps)
    document = machine.snapshot(probe=True)
    assert [w for w in document["warnings"] if w["code"] == "unload-pending"] == []


def test_report_016_a_claim_is_of_the_model_that_it_names(tmp_path: Path) -> None:
    """`/api/ps` lists one model, and it is another runner's: nothing of it is this one's."""
    ps = {"size": 21 * GIB, "size_vram": 21 * GIB, "context_length": 8192}
    machine = ollama(tmp_path, qwen3_06b(), "m", "latest", {0: 2 * GIB}, "-np", "1", ps=ps)
    path = "127.0.0.1:11434/api/ps"
    (row,) = machine.http[path]["body"]["models"]
    assert [w["code"] for w in machine.snapshot(probe=True)["warnings"]] == ["claim-contradicts-measurement"]
    machine.http[path]["body"]["models"] = [row | {"name": "other:7b", "model": "other:7b"}]
    document = machine.snapshot(probe=True)
    assert document["warnings"] == []
    llm = row_of(document, 11)["llm"]
    assert llm is not None
    assert llm["context_tokens"] is None


def test_ollama_17251_a_second_tag_of_a_model_is_the_same_model(tmp_path: Path) -> None:
    ps = {"size": 21 * GIB, "size_vram": 21 * GIB, "context_length": 8192}
    machine = ollama(tmp_path, qwen3_06b(), "m", "latest", {0: 2 * GIB}, "-np", "1", ps=ps)
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{DIGEST}"}]
    manifest = json.dumps({"layers": layers}).encode()
    machine.file(f"{MODELS}/manifests/registry.ollama.ai/library/my-own-name/v2", manifest)
    body = machine.http["127.0.0.1:11434/api/ps"]["body"]
    body["models"] = [{**body["models"][0], "name": "my-own-name:v2"}, {"name": "third:1b", "size_vram": 1}]
    llm = row_of(machine.snapshot(probe=True), 11)["llm"]
    assert llm is not None
    assert llm["context_tokens"] == 8192


def test_ollama_10828_ten_parallel_requests_are_ten_contexts(tmp_path: Path) -> None:
    flags = ["-c", "81920", "-np", "10", "-ngl", "99"]
    machine = ollama(tmp_path, qwen3_14b(), "qwen3", "14b", {0: 22 * GIB}, *flags)
    found = explained(machine, 11)
    assert value(found, "llm.kv_cache_bytes") == 81920 * 160 * 1024
    assert says(found, "llm.kv_cache_bytes").endswith("× 81,920 tokens, 10 sequences of 8,192")
    assert "each of 10 requests at once may use 8,192 tokens" in text_of(found)
    model = next(row for row in found.snapshot["processes"] or [] if row["pid"] == 11)["model"]
    assert model is not None
    assert model["name"] == "qwen3:14b"


def test_ollama_12305_the_default_context_grows_with_the_card(tmp_path: Path) -> None:
    machine = ollama(tmp_path, qwen3_14b(), "qwen3", "14b", {0: 16 * GIB}, "-c", "32768", "-np", "1", "-ngl", "99")
    assert "32,768 tokens (ollama's default for a card of this size)" in text_of(explained(machine, 11))


def test_ollama_17037_two_caches_of_a_windowed_model(tmp_path: Path) -> None:
    """gemma3:4b at 128K: 2560 MiB of full layers and 174 MiB of windows, /api/ps said 3.0 GB, real 5305 MiB."""
    ps = {"size": 3_000_000_000, "size_vram": 3_000_000_000, "context_length": 131072}
    flags = ["-c", "131072", "-np", "1", "-ngl", "99"]
    machine = ollama(tmp_path, gemma3_4b(), "gemma3", "4b", {0: 5700 * MIB}, *flags, ps=ps)
    found = explained(machine, 11, probe=True)
    assert value(found, "llm.kv_cache_bytes") == (2560 + 174) * MIB
    assert value(found, "llm.kv_bytes_per_token") is None  # windows do not grow
    assert "not all layers keep all of them" in says(found, "llm.kv_cache_bytes")
    assert any(w["code"] == "claim-contradicts-measurement" for w in found.document["warnings"])
    half = found.document["context"][0]
    assert (half["tokens"], half["kv_cache_bytes"]) == (65536, (1280 + 174) * MIB)


def test_an_estimate_says_its_arithmetic_and_its_doubt_in_words(tmp_path: Path) -> None:
    flags = ["-c", "8192", "-np", "1", "-ngl", "99", "-ctk", "q8_0", "-ctv", "q8_0"]
    found = explained(ollama(tmp_path, gemma3_4b(), "gemma3", "4b", {0: 5700 * MIB}, *flags), 11)
    said = says(found, "llm.kv_cache_bytes")
    assert said.startswith("an estimate: 8,192 tokens, q8_0; not all layers keep all of them, 1 sequence; ")
    assert said.endswith("some builds keep windowed layers f16")


def test_ollama_12692_a_hybrid_keeps_keys_in_few_layers(tmp_path: Path) -> None:
    """4 attention layers x 4 heads x 256 x 2 bytes a token, and a state of 36 layers for each sequence."""
    flags = ["-c", "16384", "-np", "1", "-ngl", "99"]
    machine = ollama(tmp_path, granite_hybrid(), "granite4", "tiny-h", {0: 4 * GIB}, *flags)
    found = explained(machine, 11)
    state = 36 * 4 * (3 * (3072 + 2 * 1 * 128) + 128 * 3072)
    assert value(found, "llm.kv_bytes_per_token") == 4 * 4 * 256 * 2
    assert value(found, "llm.kv_cache_bytes") == 16384 * 4 * 4 * 256 * 2 + state


def test_ollama_4443_a_model_that_was_removed_stays_in_memory(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = ["/usr/lib/ollama/llama-server", "--model", BLOB, "--port", "4", "-c", "4096", "-np", "1"]
    machine.process(11, words, {0: 2 * GIB}, ppid=10, maps=[BLOB + " (deleted)"])
    document = machine.snapshot()
    model = row_of(document, 11)["model"]
    assert model is not None
    assert model["path"] == BLOB + " (deleted)"
    assert sources_of(document, row_of(document, 11))["llm.weights_bytes"] == "null:exited the file is deleted"
    assert "its model file is deleted: the memory stays in use" in text_of(explained(machine, 11))


def test_llama_cpp_20582_a_router_holds_a_context_and_no_model(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, ["llama-server", "--models-dir", "/models"], {0: 700 * MIB}, ppid=5)
    found = explained(machine, 10)
    row = next(row for row in found.snapshot["processes"] or [] if row["pid"] == 10)
    assert row["model"] is None
    assert "it holds a context and no model: its children load the models" in text_of(found)


def test_llama_cpp_21874_the_projector_comes_late(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = [
        "llama-server",
        "-m",
        "/m/g.gguf",
        "--mmproj",
        "/m/mmproj-g.gguf",
        "-c",
        "4096",
        "-np",
        "1",
        "-ngl",
        "99",
    ]
    machine.process(10, words, {0: 6 * GIB}, ppid=5)
    machine.file("/m/g.gguf", gemma3_4b())
    machine.file("/m/mmproj-g.gguf", qwen3_06b())  # stands for any file of 604.15 MiB of tensors
    found = explained(machine, 10)
    assert "the projector's compute buffers come with the first image" in text_of(found)
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, [word for word in words if "mmproj" not in word], {0: 6 * GIB}, ppid=5)
    machine.file("/m/g.gguf", gemma3_4b())
    alone = value(explained(machine, 10), "llm.weights_bytes")
    together = value(found, "llm.weights_bytes")
    assert isinstance(together, int)
    assert isinstance(alone, int)
    assert (together - alone) / MIB == pytest.approx(604.15, abs=0.01)


def test_llama_cpp_17578_a_huge_compute_buffer_follows_ubatch(tmp_path: Path) -> None:
    log = b"""load_tensors: offloaded 37/37 layers to GPU
load_tensors:        CUDA0 model buffer size =  3127.61 MiB
llama_context: n_ctx         = 4096
llama_context: n_ubatch      = 4096
llama_kv_cache:      CUDA0 KV buffer size =   144.00 MiB
sched_reserve:      CUDA0 compute buffer size =  2470.16 MiB
"""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = ["llama-server", "-m", "/m/x.gguf", "-c", "4096", "-np", "1", "-ub", "4096"]
    machine.process(10, words, {0: 6200 * MIB}, ppid=5, links={"2": "/var/log/l.log"})
    machine.file("/var/log/l.log", log)
    found = explained(machine, 10)
    assert value(found, "llm.compute_bytes") == round(2470.16 * MIB)
    assert "large compute buffers: they follow -ub (here 4096)" in text_of(found)


def test_llama_cpp_23162_the_buffer_lines_are_hidden_by_default(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = ["llama-server", "-m", "/m/q.gguf", "-c", "4096", "-np", "1", "-ngl", "99"]
    machine.process(10, words, {0: 2 * GIB}, ppid=5)
    machine.file("/m/q.gguf", qwen3_06b())
    assert "the server logs no buffer sizes; llama-server does with -lv 4" in text_of(explained(machine, 10))


def test_llama_cpp_23162_a_projection_is_an_estimate_beside_the_split(tmp_path: Path) -> None:
    """With --log-jsonl the table of before loading is all that the default verbosity leaves."""
    row = {"kind": "device", "name": "CUDA0", "self": 1100, "model": 604, "context": 448, "compute": 48}
    table = {"type": "fit_memory_breakdown", "data": {"unit": "MiB", "rows": [row, {**row, "name": "Host"}]}}
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = ["llama-server", "-m", "/m/q.gguf", "-c", "4096", "-np", "1", "-ngl", "99", "--log-jsonl"]
    machine.process(10, words, {0: 2 * GIB}, ppid=5, links={"1": "/var/log/l.jsonl"})
    machine.file("/m/q.gguf", qwen3_06b())
    machine.file("/var/log/l.jsonl", json.dumps(table).encode() + b"\n")
    found = explained(machine, 10)
    assert value(found, "projected_compute_bytes") == 48 * MIB
    assert value(found, "llm.compute_bytes") is None
    assert "projection before loading (--fit): no measurement" in text_of(found)


def test_koboldcpp_2235_windows_at_full_size(tmp_path: Path) -> None:
    """Gemma 3 4B at 32K: 34 layers x 4 heads x 512 x 2 bytes x 32,768 tokens, not the 5 full ones'."""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = [
        "koboldcpp",
        "--model",
        "/m/g.gguf",
        "--contextsize",
        "32768",
        "--gpulayers",
        "99",
        "--flashattention",
    ]
    machine.process(10, words, {0: 8 * GIB}, ppid=5)
    machine.file("/m/g.gguf", gemma3_4b())
    found = explained(machine, 10)
    assert value(found, "llm.kv_cache_bytes") == 34 * 4 * 512 * 2 * 32768
    assert "--useswa keeps only the window" in text_of(found)


def test_report_055_what_pytorch_has_allocated_is_not_told_from_outside(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    maps = ["/v/torch/lib/libtorch_cuda.so", "/v/torch/lib/libc10_cuda.so", "/usr/lib/libcuda.so.1"]
    machine.process(10, ["python3", "train.py"], {0: 12433 * MIB}, ppid=5, maps=maps)
    found = explained(machine, 10)
    assert value(found, "torch_allocated_bytes") is None
    assert "can't be seen from outside" in says(found, "torch_allocated_bytes")
    text = text_of(found)
    assert "cuda, pytorch loaded" in text
    assert "context, PyTorch's allocator (tensors and its cache of freed blocks)" in text


def test_report_038_comfyuis_cache_is_told_apart_from_its_context(tmp_path: Path) -> None:
    """18 GiB held, idle: PyTorch has reserved 16.5, of which 10 are free for the next run. Not a leak."""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, ["python3", "main.py"], {0: 18 * GIB}, ppid=5, cwd="/srv/ComfyUI")
    machine.listen(10, 8188, inode=5)
    device = {"type": "cuda", "vram_total": 24 * GIB, "torch_vram_total": 16896 * MIB, "torch_vram_free": 10 * GIB}
    machine.http = {"127.0.0.1:8188/system_stats": {"body": {"devices": [device]}}}
    found = explained(machine, 10, probe=True)
    figures = {name: value(found, f"{name}_bytes") for name in ("torch_reserved", "torch_cache", "outside_torch")}
    assert figures == {"torch_reserved": 16896 * MIB, "torch_cache": 10 * GIB, "outside_torch": 1536 * MIB}
    assert value(found, "torch_used_bytes") == 6656 * MIB
    text = text_of(found)
    assert "a cache for the next run, no leak" in text
    assert "leak:" not in text


def test_report_118_comfyui_without_probe_is_one_honest_remainder(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, ["python3", "/srv/ComfyUI/main.py"], {0: 9 * GIB}, ppid=5)
    document = machine.snapshot()
    llm = row_of(document, 10)["llm"]
    assert llm is not None
    assert (llm["server"], llm["weights_bytes"], llm["overhead_bytes"]) == ("comfyui", None, None)
    assert sources_of(document, row_of(document, 10))["llm.kv_cache_bytes"] == "null:none not a language model"


VLLM = ["/v/bin/python3", "/v/bin/vllm", "serve", "facebook/opt-125m"]


def test_report_046_a_small_model_takes_the_card_by_policy(tmp_path: Path) -> None:
    """opt-125m on 24 GiB: 20 GiB held, of which 0.23 are weights."""
    log = b"INFO 05-10 10:00:00 model_runner.py:160] Loading model weights took 0.2389 GB\n"
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, VLLM, {0: 20 * GIB}, ppid=5, links={"2": "/var/log/vllm.log"})
    machine.file("/var/log/vllm.log", log)
    found = explained(machine, 10)
    text = text_of(found)
    assert value(found, "budget_bytes") == round(0.9 * 24 * GIB)
    assert value(found, "llm.weights_bytes") == round(0.2389 * GIB)
    assert value(found, "llm.kv_cache_bytes") == 20 * GIB - round(0.2389 * GIB)
    row = next(row for row in found.snapshot["processes"] or [] if row["pid"] == 10)
    entry = found.snapshot["provenance"][row["provenance"]]
    assert entry["llm.kv_cache_bytes"].startswith("estimated:--gpu-memory-utilization 0.9 (defaults:vllm)")
    assert "an estimate: --gpu-memory-utilization 0.9 (defaults:vllm) less weights" in text
    assert any(finding["code"] == "kv-dominates" for finding in found.document["findings"])


def test_report_014_what_lies_outside_the_budget(tmp_path: Path) -> None:
    """0.8 of 32 GB: 25.6 are the budget, 36.2 are held on a card of 64."""
    machine = Machine(tmp_path)
    machine.card(32 * GIB)
    machine.process(10, [*VLLM, "--gpu-memory-utilization", "0.8"], {0: 31 * GIB}, ppid=5)
    found = explained(machine, 10)
    assert value(found, "budget_bytes") == round(0.8 * 32 * GIB)
    assert value(found, "outside_budget_bytes") == 31 * GIB - round(0.8 * 32 * GIB)
    assert "outside the budget: graphs, runtime, context" in text_of(found)


def test_report_035_reserved_and_used_are_two_figures(tmp_path: Path) -> None:
    """vllm#822: weights and pool from the log, the used share from the API; without it null."""
    log = b"""INFO 12-28 04:31:36 model_runner.py:1077] Loading model weights took 7.9692 GB
model weights take 7.97GiB; non_torch_memory takes 0.07GiB; PyTorch activation peak memory takes 1.23GiB; \
the rest of the memory reserved for KV Cache is 11.92GiB.
"""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, VLLM, {0: 22 * GIB}, ppid=5, links={"2": "/var/log/vllm.log"})
    machine.file("/var/log/vllm.log", log)
    machine.listen(10, 8000, inode=5)
    metrics = (
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="5565"} 1.0\nvllm:kv_cache_usage_perc{} 0.25\n'
    )
    machine.http = {
        "127.0.0.1:8000/metrics": {"body": metrics},
        "127.0.0.1:8000/v1/models": {"body": {"data": [{"max_model_len": 4096}]}},
    }
    silent = row_of(machine.snapshot(), 10)["llm"]
    assert silent is not None
    assert (silent["kv_cache_bytes"], silent["kv_cache_used_bytes"]) == (round(11.92 * GIB), None)
    document = machine.snapshot(probe=True)
    llm = row_of(document, 10)["llm"]
    assert llm is not None
    assert llm["kv_cache_used_bytes"] == round(round(11.92 * GIB) * 0.25)
    assert llm["context_tokens"] == 5565 * 16
    assert sources_of(document, row_of(document, 10))["llm.kv_cache_used_bytes"] == "reported:api./metrics"
    assert "non_torch" not in str(llm)


def test_vllm_gguf_plugin_101_weights_are_the_logs_not_the_files(tmp_path: Path) -> None:
    """A GGUF that vLLM serves is dequantised in part: the file says 604 MiB, the engine takes 1.5 GiB."""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = ["/v/bin/python3", "/v/bin/vllm", "serve", "/m/q.gguf"]
    machine.process(10, words, {0: 20 * GIB}, ppid=5, maps=["/m/q.gguf"], links={"2": "/var/log/vllm.log"})
    machine.file("/m/q.gguf", qwen3_06b())
    machine.file(
        "/var/log/vllm.log", b"INFO 05-10 10:00:00 [x.py:1] Model loading took 1.50 GiB and 3.1 seconds\n"
    )
    assert value(explained(machine, 10), "llm.weights_bytes") == round(1.5 * GIB)


def test_sglang_36583_a_tiny_pool_beside_free_memory(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(80 * GIB, used=33 * GIB)
    launch = ["python3", "-m", "sglang.launch_server", "--model-path", "a/b", "--tp-size", "1"]
    machine.process(10, launch, ppid=5)
    machine.process(11, ["sglang::scheduler_TP0"], {0: 32 * GIB}, ppid=10)
    machine.listen(11, 30000, inode=5, owner=10)
    machine.entry("--- proc/10/fd/3 -> socket:[5]\n")
    usage = {"weight": 30.5, "kvcache": 0.16, "token_capacity": 1741, "graph": 0.5}
    machine.http = {"127.0.0.1:30000/server_info": {"body": {"internal_states": [{"memory_usage": usage}]}}}
    found = explained(machine, 11, probe=True)
    assert value(found, "llm.kv_cache_bytes") == round(0.16 * GIB)
    assert value(found, "llm.context_tokens") == 1741
    assert "/server_info: a KV pool of 0.2 GiB; what is free on the card lies beside it" in text_of(found)


def test_report_100_growth_is_in_the_remainder_and_the_cache_is_constant(tmp_path: Path) -> None:
    """llama.cpp#23446: 600 MiB more after some runs, the same server."""
    from gpusnap.diff import diff

    documents = []
    for held in (2 * GIB, 2 * GIB + 600 * MIB):
        machine = Machine(tmp_path)
        machine.card(24 * GIB)
        words = ["llama-server", "-m", "/m/q.gguf", "-c", "4096", "-np", "1", "-ngl", "99", "-ctk", "q8_0"]
        machine.process(10, words, {0: held}, ppid=5)
        machine.file("/m/q.gguf", qwen3_06b())
        machine.entry("--- proc/sys/kernel/random/boot_id\n1f0e9d8c-1111-4222-8333-444455556666\n")
        documents.append(machine.snapshot())
    (row,) = diff(*documents)["processes"]
    assert row["changes"]["llm.overhead_bytes"]["delta"] == 600 * MIB
    assert "llm.kv_cache_bytes" not in row["changes"]
    assert "llm.weights_bytes" not in row["changes"]
