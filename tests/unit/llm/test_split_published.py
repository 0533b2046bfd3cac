"""Published examples of a running server's memory, each from a public report with its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.llm.machine import GIB, MIB, Machine, facts, in_mib, row_of, sources_of
from tests.unit.llm.models import qwen3_06b, qwen3_14b

if TYPE_CHECKING:
    from pathlib import Path

# What such a server logs at -lv 4: whole load, everything on the card.
QWEN_LOG = b"""0.00.100.000 I srv    load_model: loading model '/models/Qwen3-0.6B-Q8_0.gguf'
0.00.200.000 I load_tensors: offloaded 29/29 layers to GPU
0.00.200.001 I load_tensors:   CPU_Mapped model buffer size =   157.65 MiB
0.00.200.002 I load_tensors:        CUDA0 model buffer size =   604.15 MiB
0.00.300.000 I llama_context: constructing llama_context
0.00.300.001 I llama_context: n_ctx                 = 4096
0.00.300.002 I llama_context: n_seq_max             = 1
0.00.300.003 I llama_context:  CUDA_Host  output buffer size =     0.58 MiB
0.00.300.004 I llama_kv_cache:      CUDA0 KV buffer size =   448.00 MiB
0.00.300.005 I llama_kv_cache: size =  448.00 MiB (  4096 cells,  28 layers,  1/1 seqs), K (f16):  224.00 MiB
0.00.300.006 I sched_reserve:      CUDA0 compute buffer size =    30.01 MiB
0.00.300.007 I sched_reserve:  CUDA_Host compute buffer size =    10.01 MiB
"""


def qwen_machine(folder: Path, *, log: bytes | None) -> Machine:
    machine = Machine(folder)
    machine.card(8 * GIB, "NVIDIA GeForce RTX 3070", used=round(1.5 * GIB))
    words = ["/opt/llama-server", "-m", "/models/Qwen3-0.6B-Q8_0.gguf", "-c", "4096", "-np", "1", "-ngl", "99"]
    links = {"2": "/var/log/llama.log"} if log is not None else {"2": "pipe:[1]"}
    path = "/models/Qwen3-0.6B-Q8_0.gguf"
    machine.process(4711, words, {0: round(1.31 * GIB)}, maps=[path], links=links)
    machine.file(path, qwen3_06b(), size=639_446_688)
    if log is not None:
        machine.file("/var/log/llama.log", log)
    return machine


def test_qwen3_06b_at_4096_tokens_with_its_log(tmp_path: Path) -> None:
    """1.31 GiB measured: weights 604 MiB, KV 448 MiB at 112 KiB a token, compute 30, remainder 259."""
    document = qwen_machine(tmp_path, log=QWEN_LOG).snapshot()
    row = row_of(document, 4711)
    llm = row["llm"]
    assert llm is not None
    assert in_mib(llm, "weights_bytes", "kv_cache_bytes", "compute_bytes", "overhead_bytes") == {
        "weights_bytes": 604,
        "kv_cache_bytes": 448,
        "compute_bytes": 30,
        "overhead_bytes": 259,
    }
    assert llm["kv_bytes_per_token"] == 112 * 1024
    assert (llm["context_tokens"], llm["sequences"], llm["server"]) == (4096, 1, "llama.cpp")
    sources = sources_of(document, row)
    assert sources["llm.weights_bytes"] == "reported:log"
    assert sources["llm.overhead_bytes"] == "computed:vram-weights-kv-compute"


def test_qwen3_06b_without_a_log_is_computed_from_the_header(tmp_path: Path) -> None:
    document = qwen_machine(tmp_path, log=None).snapshot()
    row = row_of(document, 4711)
    llm, model = row["llm"], row["model"]
    assert llm is not None
    assert model is not None
    assert llm["weights_bytes"] is not None
    assert llm["weights_bytes"] == pytest.approx(604.15 * MIB, abs=0.01 * MIB)
    assert llm["kv_cache_bytes"] == 448 * MIB
    assert llm["compute_bytes"] is None
    assert llm["overhead_bytes"] == round(1.31 * GIB) - llm["weights_bytes"] - 448 * MIB
    sources = sources_of(document, row)
    assert sources["llm.weights_bytes"] == "computed:gguf -ngl 99"
    assert sources["llm.overhead_bytes"] == "computed:vram-weights-kv compute included"
    assert sources["llm.compute_bytes"].startswith("null:not-exposed")
    assert facts(model, "name", "architecture", "quantization", "layers", "context_trained") == {
        "name": "Qwen3 0.6B",
        "architecture": "qwen3",
        "quantization": "Q8_0",
        "layers": 28,
        "context_trained": 40960,
    }
    assert model["parameters"] == pytest.approx(596e6, rel=0.01)
    assert (model["file_bytes"], model["path"]) == (639_446_688, "/models/Qwen3-0.6B-Q8_0.gguf")


def test_qwen3_14b_at_32768_tokens(tmp_path: Path) -> None:
    """13.8 GiB: KV 40 layers x 8 heads x (128 + 128) x f16 x 32,768 tokens = 5.0 GiB, 160 KiB a token."""
    machine = Machine(tmp_path)
    machine.card(16 * GIB)
    words = [
        "llama-server",
        "--model",
        "../models/Qwen3-14B-Q4_K_M.gguf",
        "--ctx-size",
        "32768",
        "-np",
        "1",
        "-ngl",
        "99",
    ]
    machine.process(4711, words, {0: round(13.8 * GIB)}, cwd="/home/alice/run")
    machine.file("/home/alice/models/Qwen3-14B-Q4_K_M.gguf", qwen3_14b(), size=9_001_752_960)
    document = machine.snapshot()
    row = row_of(document, 4711)
    llm = row["llm"]
    assert llm is not None
    assert llm["kv_cache_bytes"] == 5 * GIB
    assert llm["kv_bytes_per_token"] == 160 * 1024
    assert llm["weights_bytes"] is not None
    assert llm["overhead_bytes"] == round(13.8 * GIB) - 5 * GIB - llm["weights_bytes"]
    assert row["model"] is not None
    assert row["model"]["path"] == "/home/alice/models/Qwen3-14B-Q4_K_M.gguf"
    assert row["model"]["parameters"] == pytest.approx(14.8e9, rel=0.01)
