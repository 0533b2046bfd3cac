"""What a local API may say that no server would: numbers beyond any machine, booleans, keys that are no keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.live import LiveHost
from gpusnap.llm.probe import Api, Silent
from tests.unit.llm.machine import GIB, Machine, row_of, sources_of
from tests.unit.llm.models import qwen3_06b
from tests.unit.llm.test_explain_process import explained
from tests.unit.llm.test_reports import ollama

if TYPE_CHECKING:
    from pathlib import Path

LLAMA = ["llama-server", "-m", "/m/q.gguf", "-ngl", "99"]
SGLANG = ["python3", "-m", "sglang.launch_server", "--model-path", "a/b"]


def sglang(value: object) -> dict[str, Any]:
    usage = {"weight": value, "kvcache": value, "token_capacity": value}
    return {"/server_info": {"internal_states": [{"memory_usage": usage}]}}


def llama(value: object) -> dict[str, Any]:
    return {
        "/props": {"default_generation_settings": {"n_ctx": value}, "total_slots": value},
        "/v1/models": {"data": [{"meta": {"size": value, "n_params": value}}]},
    }


SERVERS: dict[str, tuple[list[str], int, Any]] = {
    "llama.cpp": (LLAMA, 8080, llama),
    "sglang": (SGLANG, 30000, sglang),
    "vllm": (
        ["/v/bin/vllm", "serve", "a/b"],
        8000,
        lambda value: {
            "/metrics": f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{value}"}} 1.0\n'
            f"vllm:num_preemptions_total{{}} {value}\n",
            "/v1/models": {"data": [{"max_model_len": value}]},
        },
    ),
    "koboldcpp": (
        ["koboldcpp", "--model", "/m/q.gguf"],
        5001,
        lambda value: {
            "/api/extra/true_max_context_length": {"value": value},
            "/api/extra/version": {"version": value},
        },
    ),
    "tabbyapi": (
        ["python3", "/srv/tabbyAPI/main.py"],
        5000,
        lambda value: {"/v1/model": {"id": "m", "parameters": {"cache_size": value}}},
    ),
    "lmstudio": (
        ["lm-studio"],
        1234,
        lambda value: {
            "/api/v0/models": {"data": [{"id": "a", "state": "loaded", "loaded_context_length": value}]}
        },
    ),
    "comfyui": (
        ["python3", "/srv/ComfyUI/main.py"],
        8188,
        lambda value: {
            "/system_stats": {"devices": [{"type": "cuda", "torch_vram_total": value, "torch_vram_free": value}]}
        },
    ),
}


def serve(folder: Path, words: list[str], port: int, answers: dict[str, Any]) -> Machine:
    machine = Machine(folder)
    machine.card(24 * GIB)
    machine.process(10, words, {0: 8 * GIB}, ppid=5)
    machine.listen(10, port, inode=5)
    machine.file("/m/q.gguf", qwen3_06b())
    machine.http = {f"127.0.0.1:{port}{path}": {"body": body} for path, body in answers.items()}
    return machine


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("value", [10**30, 1 << 53, -1, -(10**30), True, False, 1e308, float("nan")])
def test_a_number_that_no_machine_has_is_no_figure(tmp_path: Path, name: str, value: float) -> None:
    """The contract: no integer passes 2^53; `snapshot` holds the document against it."""
    words, port, answers = SERVERS[name]
    machine = serve(tmp_path, words, port, answers(value))
    llm = row_of(machine.snapshot(probe=True), 10)["llm"]
    assert llm is not None
    assert (llm["context_tokens"], llm["kv_cache_bytes"]) == (None, None)
    for figure in explained(machine, 10, probe=True).document["figures"]:
        if isinstance(figure["value"], int | float):
            assert 0 <= figure["value"] < 1 << 53


@pytest.mark.parametrize("value", [10**30, 1 << 53, -1, -(10**30), True, 0.5, None])
def test_a_claim_that_no_machine_can_hold_is_none(tmp_path: Path, value: object) -> None:
    ps = {"size": value, "size_vram": value, "context_length": value}
    machine = ollama(tmp_path, qwen3_06b(), "m", "latest", {0: 2 * GIB}, "-np", "1", ps=ps)
    document = machine.snapshot(probe=True)
    assert [warning["code"] for warning in document["warnings"]] == []
    llm = row_of(document, 11)["llm"]
    assert llm is not None
    assert llm["context_tokens"] is None


def test_slots_times_context_can_pass_the_bound_too(tmp_path: Path) -> None:
    """Each alone is possible, both together are not."""
    answers = llama(0) | {"/props": {"default_generation_settings": {"n_ctx": 1 << 40}, "total_slots": 1 << 30}}
    document = serve(tmp_path, LLAMA, 8080, answers).snapshot(probe=True)
    sources = sources_of(document, row_of(document, 10))
    assert sources["llm.context_tokens"].startswith("null:out-of-range")


def test_a_log_can_lie_as_well(tmp_path: Path) -> None:
    log = b"""load_tensors:        CUDA0 model buffer size = 999999999999.00 MiB
llama_kv_cache:      CUDA0 KV buffer size = 999999999999.00 MiB
sched_reserve:      CUDA0 compute buffer size = 999999999999.00 MiB
0.00.998.025 I srv    load_model: initializing, n_slots = 9999999999, n_ctx_slot = 9999999999, kv_unified = 'false'
"""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, LLAMA, {0: 8 * GIB}, ppid=5, links={"2": "/var/log/l.log"})
    machine.file("/m/q.gguf", qwen3_06b())
    machine.file("/var/log/l.log", log)
    llm = row_of(machine.snapshot(), 10)["llm"]
    assert llm is not None
    figures = ("weights_bytes", "kv_cache_bytes", "compute_bytes", "context_tokens")
    assert [llm[name] for name in figures] == [None] * 4  # type: ignore[literal-required]


@pytest.mark.parametrize(
    "key", [b"sk-secret-1\r\nX-Other: y\n", "schl\u00fcssel-secret\n".encode(), b"\xff\xfesecret", b""]
)
def test_a_key_that_is_no_key_costs_the_api_only_and_is_never_printed(tmp_path: Path, key: bytes) -> None:
    machine = serve(tmp_path, [*LLAMA, "-c", "4096", "-np", "1"], 8080, llama(4096))
    machine.file("/keys/k", key)
    document = machine.snapshot(probe=True, api_key_file="/keys/k")
    llm = row_of(document, 10)["llm"]
    assert llm is not None
    assert llm["kv_cache_bytes"] is not None
    assert [warning["code"] for warning in document["warnings"]] == []
    assert "secret" not in json.dumps(document)
    found = explained(machine, 10, probe=True, api_key_file="/keys/k")
    assert "secret" not in json.dumps(found.document)


@pytest.mark.parametrize("key", ["sk-secret\nX: y", "schl\u00fcssel-secret", "sk-secret\x00"])
def test_a_key_with_a_line_break_is_never_sent(key: str) -> None:
    api = Api(LiveHost(), "127.0.0.1", 9, ("/props",), key)
    with pytest.raises(Silent, match="not one line of plain text") as caught:
        api.json("/props")
    assert "secret" not in str(caught.value)
