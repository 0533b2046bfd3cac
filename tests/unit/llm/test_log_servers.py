"""vLLM's, SGLang's and ollama's own log lines, in the wordings of public logs."""

from __future__ import annotations

import pytest

from gpusnap.llm.logs import sglang, vllm
from gpusnap.llm.logs.lines import memory_lines
from gpusnap.llm.logs.llama_cpp import last_complete, read
from gpusnap.llm.logs.load import MIB
from tests.unit.llm.log_data import lines, values

GIB = 1 << 30


@pytest.mark.parametrize("name", ["V032", "V033", "V036", "V038", "V109", "V110", "V112"])
def test_vllm_weights_and_cache_are_what_the_log_states(name: str) -> None:
    stated = {row["id"]: row for row in values()}[name]
    (rank,) = vllm.read(lines(name)).values()
    assert rank.weights_bytes is not None
    assert rank.weights_bytes / MIB == pytest.approx(float(stated["model_buffer_mib"]), rel=1e-6)
    if rank.kv_bytes is not None and name not in ("V032", "V033"):
        assert rank.kv_bytes / MIB == pytest.approx(float(stated["kv_mib"]), rel=1e-6)
    if name in ("V032", "V033"):  # blocks of 16 tokens, 128 KiB a token; the log rounds to 0.01 GiB
        assert rank.kv_bytes is not None
        assert rank.kv_bytes / MIB == pytest.approx(float(stated["kv_mib"]), abs=0.006 * 1024)


def test_vllm_tokens_ranks_and_budget() -> None:
    (rank,) = vllm.read(lines("V112")).values()
    assert rank.tokens == 90_841
    (rank,) = vllm.read(lines("V032")).values()
    assert rank.utilization == 0.9
    assert rank.budget_bytes is not None
    assert rank.budget_bytes / GIB == pytest.approx(23.58 * 0.9)
    assert list(vllm.read(lines("V036"))) == ["pid:105"]
    assert list(vllm.read(lines("V038"))) == ["pid:196"]


def test_report_035_the_parts_of_vllms_start_up_log() -> None:
    text = b"""INFO 12-28 04:31:36 model_runner.py:1077] Loading model weights took 7.9692 GB
INFO 12-28 04:31:38 worker.py:232] Memory profiling results: total_gpu_memory=23.55GiB
the current vLLM instance can use total_gpu_memory (23.55GiB) x gpu_memory_utilization (0.90) = 21.19GiB
model weights take 7.97GiB; non_torch_memory takes 0.07GiB; PyTorch activation peak memory takes 1.23GiB; \
the rest of the memory reserved for KV Cache is 11.92GiB.
"""
    (rank,) = vllm.read(memory_lines(text)).values()
    gib = {name: round(getattr(rank, name) / GIB, 2) for name in ("budget_bytes", "weights_bytes", "kv_bytes")}
    assert gib == {"budget_bytes": 21.19, "weights_bytes": 7.97, "kv_bytes": 11.92}
    assert (rank.non_torch_bytes, rank.activation_bytes) == (round(0.07 * GIB), round(1.23 * GIB))


def test_a_torn_memory_profile_is_read_as_far_as_it_goes() -> None:
    text = (
        b"Memory profiling results: total_gpu_memory=\xff non_torch_memory=0.35GiB gpu_memory_utilization=0.90\n"
    )
    (rank,) = vllm.read(memory_lines(text)).values()
    assert (rank.non_torch_bytes, rank.budget_bytes) == (round(0.35 * GIB), None)


def test_vllms_last_start_counts_and_ranks_stay_apart() -> None:
    text = b"""(EngineCore_DP0 pid=90) INFO 05-13 16:41:31 [core.py:97] Initializing a V1 LLM engine (v0.14.1) with
(Worker_TP0 pid=92) INFO 05-13 16:42:00 [runner.py:4960] Model loading took 10.00 GiB memory and 23.1 seconds
(Worker_TP0 pid=92) INFO 05-13 16:42:09 [gpu_worker.py:456] Available KV cache memory: 1.00 GiB
(EngineCore_DP0 pid=190) INFO 05-13 17:41:31 [core.py:97] Initializing a V1 LLM engine (v0.14.1) with
(Worker_TP0 pid=192) INFO 05-13 17:42:00 [runner.py:4960] Model loading took 15.26 GiB memory and 2.1 seconds
(Worker_TP1 pid=193) INFO 05-13 17:42:00 [runner.py:4960] Model loading took 15.27 GiB memory and 2.1 seconds
(Worker_TP1 pid=193) INFO 05-13 17:42:09 [gpu_worker.py:456] Available KV cache memory: 17.36 GiB
"""
    ranks = vllm.read(memory_lines(text))
    loaded = {tag: round(rank.weights_bytes / GIB, 2) for tag, rank in ranks.items() if rank.weights_bytes}
    assert loaded == {"pid:192": 15.26, "pid:193": 15.27}
    assert ranks["pid:192"].kv_bytes is None
    assert ranks["pid:193"].kv_bytes == round(17.36 * GIB)


def test_report_014_vllms_budget_and_what_lies_outside_it() -> None:
    text = (
        b"(EngineCore pid=2884597) INFO 04-15 06:30:01 [worker.py:575] Free memory on device (60.86/61.27 GiB) on "
        b"startup. Desired GPU memory utilization is (0.9, 55.14 GiB). Actual usage: 1.14 GiB for weights, "
        b"0.22 GiB for peak activation, 0.13 GiB for non-torch memory, 0.04 GiB for NPU graph memory.\n"
    )
    (rank,) = vllm.read(memory_lines(text)).values()
    assert (rank.utilization, rank.budget_bytes) == (0.9, round(55.14 * GIB))
    assert (rank.activation_bytes, rank.non_torch_bytes) == (round(0.22 * GIB), round(0.13 * GIB))


def test_sglang_prints_gb_and_means_gib() -> None:
    (rank,) = sglang.read(lines("V035")).values()
    assert rank.kv_bytes is not None
    assert rank.kv_bytes / MIB == pytest.approx(16855.04)
    # 367,404 tokens x 94 layers x 128 x 2 bytes, K and V: within the two printed decimals
    assert rank.kv_bytes == pytest.approx(2 * 367_404 * 94 * 128 * 2, abs=0.01 * GIB)
    assert rank.pools[0].tokens == 367_404


def test_sglangs_draft_pool_adds_to_the_models() -> None:
    ranks = sglang.read(lines("V039"))
    target, draft = ranks["rank:TP0"].pools
    assert target.nbytes / MIB == pytest.approx(7086.08)
    assert target.tokens == 454_112
    assert draft.nbytes / MIB == pytest.approx(2.16 * 1024)


def test_sglangs_weights_and_graphs() -> None:
    text = b"""[2025-11-10 19:58:08 TP1] Load weight begin. avail mem=78.81 GB
[2025-11-10 19:58:18 TP1] Load weight end. type=Q, dtype=torch.bfloat16, avail mem=63.55 GB, mem usage=15.26 GB.
[2025-11-10 19:58:20 TP1] KV Cache is allocated. #tokens: 100000, KV size: 12.50 GB
[2025-11-10 19:59:08 TP1] Capture cuda graph end. Time elapsed: 11.35 s. mem usage=1.04 GB. avail mem=11.22 GB.
"""
    rank = sglang.read(memory_lines(text))["rank:TP1"]
    assert rank.weights_bytes == round(15.26 * GIB)
    assert rank.kv_bytes == round(12.5 * GIB)
    assert rank.graph_bytes == round(1.04 * GIB)


OLLAMA = b"""time=2025-08-24T08:25:51Z level=INFO source=server.go:383 msg="starting runner" \
cmd="/usr/bin/ollama runner --ollama-engine --model /m/blobs/sha256-aaaa --port 36629"
time=2025-08-24T08:25:59.9Z level=INFO source=ggml.go:362 msg="offloaded 41/41 layers to GPU"
time=2025-08-24T08:26:00.3Z level=INFO source=backend.go:310 msg="model weights" device=CUDA0 size="4.1 GiB"
time=2025-08-24T08:26:00.3Z level=INFO source=backend.go:315 msg="model weights" device=CPU size="525.0 MiB"
time=2025-08-24T08:26:00.3Z level=INFO source=backend.go:321 msg="kv cache" device=CUDA0 size="936.0 MiB"
time=2025-08-24T08:26:00.3Z level=INFO source=backend.go:332 msg="compute graph" device=CUDA0 size="98.0 MiB"
time=2025-08-24T08:26:00.3Z level=INFO source=backend.go:337 msg="compute graph" device=CPU size="8.0 MiB"
time=2025-08-24T08:26:00.3Z level=INFO source=backend.go:342 msg="total memory" size="5.6 GiB"
"""


def test_ollamas_own_engine_logs_its_buffers() -> None:
    load = last_complete(read(memory_lines(OLLAMA)))
    assert load is not None
    assert load.by_device() == {"CUDA0": {"weights": round(4.1 * GIB), "kv": 936 * MIB, "compute": 98 * MIB}}
    assert (load.port, load.models[0].path, load.models[0].offloaded) == (36629, "/m/blobs/sha256-aaaa", (41, 41))


def test_ollamas_runners_are_told_apart_by_their_start() -> None:
    second = OLLAMA.replace(b"36629", b"40001").replace(b"aaaa", b"bbbb").replace(b"936.0", b"100.0")
    loads = [load for load in read(memory_lines(OLLAMA + second)) if load.is_complete()]
    assert [(load.port, load.by_device()["CUDA0"]["kv"] // MIB) for load in loads] == [(36629, 936), (40001, 100)]


def test_ollamas_prediction_is_no_figure() -> None:
    text = (
        b'time=2025-01-16T04:29:50Z level=INFO source=memory.go:356 msg="offload to cuda" layers.requested=-1 '
        b'layers.model=62 layers.offload=5 memory.required.full="415.7 GiB" memory.required.kv="9.5 GiB" '
        b'memory.weights.total="385.0 GiB" memory.graph.full="654.0 MiB"\n'
    )
    assert [load.rows() for load in read(memory_lines(text))] in ([], [[]])
