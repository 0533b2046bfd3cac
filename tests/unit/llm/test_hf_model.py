"""Models of safetensors behind vLLM and SGLang: from a folder, from the cache, over ranks."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.llm.machine import GIB, MIB, Machine, facts, row_of, sources_of

if TYPE_CHECKING:
    from pathlib import Path

SNAPSHOT = "/home/alice/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/abc"
CONFIG = {
    "model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "hidden_size": 4096, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
}  # fmt: skip
PER_TOKEN = 36 * 8 * 128 * 2 * 2  # 147,456 bytes, as public logs of this model say


def safetensors(elements: int) -> bytes:
    """A header of one BF16 tensor; the data would follow."""
    header = json.dumps({"w": {"dtype": "BF16", "shape": [elements], "data_offsets": [0, 2 * elements]}}).encode()
    return struct.pack("<Q", len(header)) + header


def server(folder: Path, *flags: str, model: str = "Qwen/Qwen3-8B", log: bytes | None = None) -> Machine:
    machine = Machine(folder)
    machine.card(32 * GIB, "NVIDIA RTX 5090")
    links = {"2": "/var/log/v.log"} if log is not None else None
    words = ["/v/bin/python3", "/v/bin/vllm", "serve", model, *flags]
    machine.process(10, words, {0: 29 * GIB}, ppid=5, links=links, environ={"HOME": "/home/alice"})
    if log is not None:
        machine.file("/var/log/v.log", log)
    data = safetensors(8_190_735_360)
    for place in (SNAPSHOT, "/models/qwen"):
        machine.file(f"{place}/config.json", json.dumps(CONFIG).encode())
        machine.file(f"{place}/model.safetensors", data, size=len(data) + 2 * 8_190_735_360)
    return machine


def rows(machine: Machine, **options: Any) -> tuple[Any, Any, dict[str, str]]:
    document = machine.snapshot(**options)
    row = row_of(document, 10)
    return row["model"], row["llm"], sources_of(document, row)


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "/models/qwen"])
def test_a_models_facts_are_those_of_its_folder(tmp_path: Path, model: str) -> None:
    found, llm, sources = rows(server(tmp_path, model=model))
    assert facts(found, "architecture", "parameters", "quantization", "layers", "context_trained") == {
        "architecture": "qwen3",
        "parameters": 8_190_735_360,
        "quantization": "BF16",
        "layers": 36,
        "context_trained": 40960,
    }
    assert llm["weights_bytes"] == 2 * 8_190_735_360
    assert sources["llm.weights_bytes"] == "estimated:safetensors"
    assert llm["kv_bytes_per_token"] == PER_TOKEN
    assert sources["llm.kv_cache_bytes"].startswith("estimated:--gpu-memory-utilization 0.9")


def test_the_log_is_stronger_than_the_files(tmp_path: Path) -> None:
    """V109: 15.27 GiB and 89,040 tokens; at 147,456 bytes a token the pool is 12,521 MiB."""
    log = b"INFO 05-10 10:00:00 [r.py:1] Model loading took 15.27 GiB and 3.0 seconds\n"
    log += b"INFO 05-10 10:00:09 [k.py:1] GPU KV cache size: 89,040 tokens\n"
    _, llm, sources = rows(server(tmp_path, log=log))
    assert llm["weights_bytes"] == round(15.27 * GIB)
    assert llm["kv_cache_bytes"] == 89_040 * PER_TOKEN
    assert llm["kv_cache_bytes"] / MIB == pytest.approx(12521.2, abs=0.1)
    assert llm["context_tokens"] == 89_040
    assert sources["llm.kv_cache_bytes"] == "computed:tokens*config.json"


def test_the_cache_type_of_the_flags_counts(tmp_path: Path) -> None:
    _, llm, _ = rows(server(tmp_path, "--kv-cache-dtype", "fp8"))
    assert llm["kv_bytes_per_token"] == PER_TOKEN // 2


def test_a_model_that_is_nowhere_has_a_name_and_no_figures(tmp_path: Path) -> None:
    found, llm, sources = rows(server(tmp_path, model="somebody/else"))
    assert found["name"] == "somebody/else"
    assert (found["parameters"], llm["weights_bytes"], llm["kv_cache_bytes"]) == (None, None, None)
    assert sources["llm.weights_bytes"].startswith("null:not-exposed")


def test_a_model_that_the_environment_names_is_described_and_not_named(tmp_path: Path) -> None:
    """TGI's MODEL_ID: a setting; its value is not printed."""
    machine = server(tmp_path)
    environ = {"MODEL_ID": "Qwen/Qwen3-8B", "HOME": "/home/alice"}
    shard = ["/opt/conda/bin/python3", "/opt/conda/bin/text-generation-server", "serve-x"]
    machine.process(20, ["text-generation-launcher"], ppid=5, environ=environ)
    machine.process(21, shard, {0: 20 * GIB}, ppid=20, environ=environ)
    document = machine.snapshot()
    row = row_of(document, 21)
    assert row["model"] is not None
    assert (row["model"]["name"], row["model"]["path"], row["model"]["layers"]) == (None, None, 36)
    assert "Qwen3-8B" not in str(row)


def test_a_pipeline_stage_holds_its_share_of_the_layers(tmp_path: Path) -> None:
    """-tp 2 -pp 2: a quarter of the weights, half of the layers with half of the heads."""
    _, llm, sources = rows(server(tmp_path, "-tp", "2", "-pp", "2"))
    assert llm["weights_bytes"] == 2 * 8_190_735_360 // 4
    assert sources["llm.weights_bytes"] == "estimated:safetensors/4"
    assert llm["kv_bytes_per_token"] == PER_TOKEN // 4
    _, llm, sources = rows(server(tmp_path, "--pipeline-parallel-size", "5"))
    assert llm["kv_bytes_per_token"] is None  # 36 layers over 5 stages
    assert sources["llm.kv_bytes_per_token"].startswith("null:ambiguous which of 5 pipeline stages")


def test_experts_over_several_engines_are_not_shared_out_evenly(tmp_path: Path) -> None:
    _, llm, sources = rows(server(tmp_path, "-dp", "4", "--enable-expert-parallel"))
    assert llm["weights_bytes"] is None
    assert sources["llm.weights_bytes"].startswith("null:ambiguous experts are spread over several engines")
    assert rows(server(tmp_path, "-dp", "4"))[1]["weights_bytes"] == 2 * 8_190_735_360


@pytest.mark.parametrize(
    ("title", "used"), [("VLLM::EngineCore_DP1", 0.75), ("VLLM::Worker_DP0_TP0", 0.25), ("VLLM::Worker_TP0", None)]
)
def test_each_engine_has_its_own_share_in_use(tmp_path: Path, title: str, used: float | None) -> None:
    log = b"INFO 05-10 10:00:00 [r.py:1] Model loading took 15.27 GiB and 3.0 seconds\n"
    log += b"INFO 05-10 10:00:09 [k.py:1] Available KV cache memory: 8.00 GiB\n"
    machine = Machine(tmp_path)
    machine.card(32 * GIB)
    machine.process(10, ["/v/bin/vllm", "serve", "a/b", "-dp", "2"], ppid=5, links={"3": "socket:[777]"})
    machine.process(20, [title], {0: 29 * GIB}, ppid=10, links={"2": "/var/log/v.log"})
    machine.file("/var/log/v.log", log)
    machine.entry("--- proc/20/net/tcp\n  sl  local_address rem_address st\n")
    machine.entry("   0: 0100007F:1F40 00000000:0000 0A 0:0 00:0 0 1000 0 777 1\n")
    metrics = 'vllm:kv_cache_usage_perc{engine="0"} 0.25\nvllm:kv_cache_usage_perc{engine="1"} 0.75\n'
    machine.http = {
        "127.0.0.1:8000/metrics": {"body": metrics},
        "127.0.0.1:8000/v1/models": {"body": {"data": []}},
    }
    llm = row_of(machine.snapshot(probe=True), 20)["llm"]
    assert llm is not None
    assert llm["kv_cache_used_bytes"] == (None if used is None else round(8 * GIB * used))
