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
