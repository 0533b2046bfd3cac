"""A recorder of weeks: thousands of samples in which every process is a new one, in the same memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.recorder import end, start, wait_for_samples
from tests.standin import Card, Proc, Scenario

pytestmark = pytest.mark.integration

ROUNDS, SAMPLES_A_ROUND, CROWD = 60, 30, 40


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def test_memory_and_descriptors_stay_level_while_processes_come_and_go(tmp_path: Path) -> None:
    machine = Scenario([Card()])
    more = machine.environment(tmp_path)
    path = tmp_path / "a.jsonl"
    recorder = start(str(path), "--every", "2ms", "--no-fsync", more=more)
    wait_for_samples(path, 10)
    memory, descriptors = [], []
    written = 10
    for _ in range(ROUNDS):
        crowd = [subprocess.Popen(["sleep", "60"]) for _ in range(CROWD)]
        Scenario([Card(processes=[Proc(one.pid, 1 << 28) for one in crowd])]).write(
            Path(more["GPUSNAP_TEST_NVML"])
        )
        written += SAMPLES_A_ROUND
        wait_for_samples(path, written)
        written = path.read_bytes().count(b"\n")
        for one in crowd:
            one.kill()
            one.wait()
        memory.append(resident_kib(recorder.pid))
        descriptors.append(len(list(Path(f"/proc/{recorder.pid}/fd").iterdir())))
    assert end(recorder)[0] == 0
    quarter = ROUNDS // 4
    # 2,400 processes were met; what is kept of each would be a megabyte by now.
    assert max(memory[-quarter:]) - max(memory[quarter : 2 * quarter]) < 1024, memory
    assert max(descriptors) < 300, descriptors
