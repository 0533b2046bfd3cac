"""A vLLM that says it had to preempt requests: the warning `kv-preemption`, and what `explain` makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusnap.explain.explanation import explain_snapshot
from tests.unit.llm.machine import GIB, Machine

if TYPE_CHECKING:
    from pathlib import Path

SERVE = ["/v/bin/python3", "/v/bin/vllm", "serve", "a/b", "-tp", "2"]
# The wording of vLLM 0.4 to 0.9's scheduler.
LOG = b"""INFO 05-10 10:00:00 model_runner.py:160] Loading model weights took 0.2389 GB
WARNING 05-10 10:05:00 scheduler.py:1057] Sequence group cmpl-4a-0 is preempted by PreemptionMode.RECOMPUTE mode \
because there is not enough KV cache space. This can affect the end-to-end performance. Increase \
gpu_memory_utilization or tensor_parallel_size to provide more KV cache memory. total_num_cumulative_preemption=1
WARNING 05-10 10:15:00 scheduler.py:1057] Sequence group cmpl-9c-0 is preempted by PreemptionMode.RECOMPUTE mode \
because there is not enough KV cache space. This can affect the end-to-end performance. Increase \
gpu_memory_utilization or tensor_parallel_size to provide more KV cache memory. total_num_cumulative_preemption=51
"""


def two_ranks(folder: Path, metrics: str) -> Machine:
    machine = Machine(folder)
    for number in (0, 1):
        machine.card(24 * GIB)
        machine.process(20 + number, [f"VLLM::Worker_TP{number}"], {number: 20 * GIB}, ppid=10)
        machine.entry(f"--- proc/{20 + number}/net/tcp\n  sl  local_address rem_address st\n")
        machine.entry("   0: 0100007F:1F40 00000000:0000 0A 0:0 00:0 0 1000 0 777 1\n")
    machine.process(10, SERVE, ppid=5, links={"3": "socket:[777]"})
    machine.http = {
        "127.0.0.1:8000/metrics": {"body": metrics},
        "127.0.0.1:8000/v1/models": {"body": {"data": []}},
    }
    return machine


def test_two_ranks_of_one_server_are_warned_of_once(tmp_path: Path) -> None:
    """Two engines' counters add up."""
    metrics = 'vllm:num_preemptions_total{engine="0"} 1200.0\nvllm:num_preemptions_total{engine="1"} 34.0\n'
    document = two_ranks(tmp_path, metrics).snapshot(probe=True)
    (warning,) = [w for w in document["warnings"] if w["code"] == "kv-preemption"]
    assert warning["pid"] == 20
    assert warning["message"] == (
        "vllm 10: 1,234 requests were preempted for want of KV cache since it started (/metrics)"
    )
    (finding,) = [f for f in explain_snapshot(document).document["findings"] if f["code"] == "kv-preemption"]
    assert "its KV cache was too small: requests were computed anew" in finding["title"]
    assert finding["evidence"] == [warning["message"]]


@pytest.mark.parametrize("line", ["vllm:num_preemptions_total{} 0.0", "vllm:num_preemptions_total{} NaN", ""])
def test_none_preempted_is_no_warning(tmp_path: Path, line: str) -> None:
    document = two_ranks(tmp_path, line + "\n").snapshot(probe=True)
    assert [w for w in document["warnings"] if w["code"] == "kv-preemption"] == []


def test_without_probe_nobody_says_so(tmp_path: Path) -> None:
    document = two_ranks(tmp_path, "vllm:num_preemptions_total{} 5.0\n").snapshot()
    assert [w for w in document["warnings"] if w["code"] == "kv-preemption"] == []


def test_the_older_schedulers_log_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, SERVE[:4], {0: 20 * GIB}, ppid=5, links={"2": "/var/log/vllm.log"})
    machine.file("/var/log/vllm.log", LOG)
    (warning,) = [w for w in machine.snapshot()["warnings"] if w["code"] == "kv-preemption"]
    assert warning["message"] == (
        "vllm 10: 51 requests were preempted for want of KV cache since it started (its log)"
    )
