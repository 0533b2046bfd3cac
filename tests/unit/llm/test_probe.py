"""Asking local APIs: whole request traces of each server, and everything that must not be asked."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.live import LiveHost
from gpusnap.llm.probe import Api, Silent, find_api, listening
from gpusnap.llm.program import Program
from gpusnap.llm.servers import (
    comfyui,
    koboldcpp,
    llama_cpp,
    lmstudio,
    ollama,
    sglang,
    tabbyapi,
    text_generation_webui,
    tgi,
    vllm,
)
from gpusnap.llm.workload import Workload
from tests.unit.llm.stand_in import StandIn

if TYPE_CHECKING:
    from types import ModuleType

METRICS = """# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",gpu_memory_utilization="0.9",num_gpu_blocks="5565"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="q"} 0.125
vllm:num_requests_running{engine="0"} 1.0
"""
PROPS = {
    "default_generation_settings": {"n_ctx": 32768},
    "total_slots": 1,
    "build_info": "b9400-abc",
    "model_path": "/m",
}

# (server, answers, every path that is asked for in order, what ends up in the workload).
TRACES: list[tuple[ModuleType, dict[str, Any], list[str], dict[str, object]]] = [
    (
        llama_cpp,
        {"/props": PROPS, "/v1/models": {"data": [{"meta": {"size": 604, "n_params": 5, "n_ctx_train": 40960}}]}},
        ["/props", "/v1/models"],
        {"total_slots": 1, "slot_context": 32768, "build_info": "b9400-abc", "size": 604, "n_ctx_train": 40960},
    ),
    (llama_cpp, {"/props": {"role": "router", "model_path": "none"}}, ["/props"], {}),
    (
        ollama,
        {"/api/ps": {"models": [{"name": "gemma3:4b", "size": 3_100_000_000, "size_vram": 3_000_000_000,
                                 "context_length": 131072, "expires_at": "2026-11-30T17:00:00Z"}]}},
        ["/api/ps"],
        {"size_vram": 3_000_000_000, "context_length": 131072, "name": "gemma3:4b",
         "expires_at": "2026-11-30T17:00:00Z"},
    ),
    (
        vllm,
        {"/metrics": METRICS.encode(),
         "/v1/models": {"data": [{"id": "q", "root": "Qwen/Qwen3-8B", "max_model_len": 40960}]}},
        ["/metrics", "/v1/models"],
        {"tokens": 89040, "used_share": 0.125, "cache_dtype": "auto", "fraction": 0.9, "max_model_len": 40960},
    ),
    (
        sglang,
        {"/server_info": {"api_key": "sk-secret", "internal_states": [{"memory_usage":
            {"weight": 15.25, "kvcache": 16.46, "token_capacity": 367404, "graph": 1.5}}]}},
        ["/server_info"],
        {"weights_bytes": round(15.25 * 2**30), "kv_bytes": round(16.46 * 2**30),
         "graph_bytes": round(1.5 * 2**30), "tokens": 367404},
    ),
    (
        sglang,
        {"/server_info": (404, {}, b""),
         "/get_server_info": {"internal_states": [{"memory_usage": {"weight": 1.0}}]}},
        ["/server_info", "/get_server_info"],
        {"weights_bytes": 2**30},
    ),
    (
        koboldcpp,
        {"/api/extra/true_max_context_length": {"value": 16384}, "/api/extra/version": {"version": "1.113"}},
        ["/api/extra/true_max_context_length", "/api/extra/version"],
        {"context": 16384, "build_info": "1.113"},
    ),
    (
        lmstudio,
        {"/api/v0/models": {"data": [{"id": "qwen3-8b", "state": "loaded", "loaded_context_length": 4096},
                                     {"id": "b", "state": "not-loaded"}]}},
        ["/api/v0/models"],
        {},
    ),
    (
        comfyui,
        {"/system_stats": {"devices": [{"type": "cuda", "vram_total": 24, "vram_free": 4, "torch_vram_total": 18,
                                        "torch_vram_free": 6}]}},
        ["/system_stats"],
        {"torch_vram_total": 18, "torch_vram_free": 6, "vram_total": 24, "vram_free": 4},
    ),
    (tgi, {"/info": {"model_id": "a/b", "max_total_tokens": 160}}, ["/info"], {"max_total_tokens": 160}),
    (
        tabbyapi,
        {"/v1/model": {"id": "m", "parameters": {"cache_size": 16384, "max_seq_len": 8192, "cache_mode": "Q8"}}},
        ["/v1/model"],
        {"cache_mode": "Q8"},
    ),
    (
        text_generation_webui,
        {"/v1/internal/model/info": {"model_name": "m.gguf", "loader": "llama.cpp"}},
        ["/v1/internal/model/info"],
        {"loader": "llama.cpp"},
    ),
]  # fmt: skip


def api_of(server: StandIn, paths: tuple[str, ...], key: str | None = None) -> Api:
    return Api(LiveHost(), "127.0.0.1", server.port, paths, key)


@pytest.mark.parametrize(("server", "answers", "trace", "said"), TRACES, ids=[t[0].__name__[20:] for t in TRACES])
def test_a_server_is_asked_its_trace_and_nothing_else(
    server: ModuleType, answers: dict[str, Any], trace: list[str], said: dict[str, object]
) -> None:
    workload = Workload(server.NAME)
    with StandIn(answers) as stand_in:
        server.ask(api_of(stand_in, server.PATHS), workload)
    assert stand_in.asked == trace
    assert stand_in.faults == [] or answers.get("/server_info") == (404, {}, b"")
    assert {key: workload.api[key] for key in said} == said
    assert "secret" not in repr(workload.api)


@pytest.mark.parametrize("server", [t[0] for t in TRACES[2:]], ids=lambda module: module.__name__[20:])
@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b"\xff",
     b'{"data":7,"models":7,"devices":7,"internal_states":[[]],"parameters":[]}',
     b'{"models":[{"size_vram":"x"}],"data":[{"state":"loaded"}],"devices":[null]}', b"[" * 100_000],
)  # fmt: skip
def test_an_odd_answer_is_silence_never_a_fault(server: ModuleType, body: bytes) -> None:
    workload = Workload(server.NAME)
    with StandIn(dict.fromkeys(server.PATHS, body)) as stand_in, contextlib.suppress(Silent):
        server.ask(api_of(stand_in, server.PATHS), workload)
    assert workload.claims == {}
    assert workload.context is None


def test_a_path_that_is_not_on_the_list_is_refused_before_anything_is_sent() -> None:
    with StandIn({}) as stand_in, pytest.raises(ValueError, match="allow-listed"):
        api_of(stand_in, ("/props",)).json("/slots")
    assert stand_in.asked == []


@pytest.mark.parametrize("harmful", ["/slots", "/metrics", "/api/show", "/props?model=a", "/models/load"])
def test_llama_servers_harmful_paths_are_on_no_list(harmful: str) -> None:
    """`/slots` wakes a sleeping server, `/metrics` resets its averages, `/props?model=` loads a model."""
    assert harmful not in llama_cpp.PATHS
    assert harmful not in ollama.PATHS


@pytest.mark.parametrize("status", [401, 403, 404, 500, 501, 302])
def test_a_refusal_is_a_fact(status: int) -> None:
    with StandIn({"/props": (status, {}, b"{}")}) as stand_in, pytest.raises(Silent) as caught:
        api_of(stand_in, ("/props",)).json("/props")
    assert caught.value.reason == ("no-permission" if status in (401, 403) else "failed")
    assert ("API key" in str(caught.value)) is (status in (401, 403))


def test_a_key_is_sent_only_when_it_is_handed_over() -> None:
    with StandIn({"/props": PROPS}, key="sk-1") as stand_in:
        with pytest.raises(Silent, match="API key"):
            api_of(stand_in, ("/props",)).json("/props")
        assert api_of(stand_in, ("/props",), "sk-1").json("/props")["total_slots"] == 1


def test_a_server_that_is_too_slow_or_says_too_much_is_silent() -> None:
    with StandIn({"/props": b"a" * ((1 << 20) + 1)}) as stand_in, pytest.raises(Silent) as caught:
        api_of(stand_in, ("/props",)).json("/props")
    assert caught.value.reason == "failed"
    listener = socket.create_server(("127.0.0.1", 0))  # accepts and never answers
    api = Api(LiveHost(), "127.0.0.1", listener.getsockname()[1], ("/props",))
    with listener, pytest.raises(Silent) as caught:
        api.json("/props")
    assert caught.value.reason == "timeout"


def test_only_a_socket_of_the_servers_own_processes_is_asked() -> None:
    """A stranger that listens on the default port is left alone: here the stranger is this test."""
    host = LiveHost()
    workload = Workload("llama.cpp")
    with StandIn({"/props": PROPS}) as stand_in:
        workload.port = stand_in.port
        mine = Program(host, os.getpid())
        assert find_api(host, mine, [os.getpid()], workload, ("/props",), None).port == stand_in.port
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            with pytest.raises(Silent, match="no listening socket"):
                find_api(host, Program(host, child.pid), [child.pid], workload, ("/props",), None)
        finally:
            child.communicate()
    assert stand_in.asked == []


def test_a_listener_on_an_outside_address_is_not_contacted() -> None:
    """127.0.0.1, ::1 and "all" are reached over the loopback; another address is not."""
    host = LiveHost()
    with (
        socket.create_server(("127.0.0.1", 0)) as local,
        socket.create_server(("0.0.0.0", 0)) as everywhere,  # noqa: S104 - what servers do
        socket.create_server(("127.0.0.2", 0)) as elsewhere,
    ):
        found = {port: address for address, port in listening(host, os.getpid()).values()}
        assert found[local.getsockname()[1]] == "127.0.0.1"
        assert found[everywhere.getsockname()[1]] == "127.0.0.1"
        assert elsewhere.getsockname()[1] not in found


def test_the_declared_port_must_be_its_own() -> None:
    host = LiveHost()
    workload = Workload("llama.cpp")
    with StandIn({}) as stand_in, socket.create_server(("127.0.0.1", 0)) as other:
        workload.port = 1
        with pytest.raises(Silent, match="port 1 is not its own"):
            find_api(host, Program(host, os.getpid()), [os.getpid()], workload, ("/props",), None)
        workload.port = other.getsockname()[1]
        found = find_api(host, Program(host, os.getpid()), [os.getpid()], workload, ("/props",), None)
        assert found.port == other.getsockname()[1]
    assert stand_in.asked == []
