"""The stand-in libcuda: what a program allocates is what the stand-in NVML charges to it while it lives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.standin import Card, Proc, Scenario
from tests.standin.ask import ROOT, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
CONTEXT = 512 * MIB
LIST = "[(row.pid, row.usedGpuMemory) for row in nvmlDeviceGetComputeRunningProcesses(h({}))]"
USED = "nvmlDeviceGetMemoryInfo(h(0), version=nvmlMemory_v2).used"


@contextmanager
def holder(environment: dict[str, str], *argv: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tests/device/holder.py"), *argv],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        try:
            yield running
        finally:
            running.kill()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_allocation_is_charged_to_its_process_and_freed_with_it(tmp_path: Path) -> None:
    machine = Scenario([Card(processes=[Proc(7, MIB)], used=MIB), Card()]).environment(tmp_path, cuda=True)
    with holder(machine, str(256 * MIB + 1)) as running:
        held = CONTEXT + 258 * MIB
        assert ask(machine, [LIST.format(0), LIST.format(1), USED]) == [
            [[7, MIB], [running.pid, held]],
            [],
            MIB + held,
        ]
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(f"alloc {64 * MIB}\n")
        running.stdin.flush()
        assert json.loads(running.stdout.readline()) == {"in_use": held + 64 * MIB}
        assert ask(machine, [USED]) == [MIB + held + 64 * MIB]
    assert ask(machine, [LIST.format(0), USED]) == [[[7, MIB]], MIB]


def test_memory_stays_while_any_thread_lives_and_goes_with_an_unreaped_child(tmp_path: Path) -> None:
    machine = Scenario([Card()]).environment(tmp_path, cuda=True)
    with holder(machine, str(MIB * 2), "--leader-exits") as running:
        while state(running.pid) != "Z":
            pass
        assert ask(machine, [LIST.format(0)]) == [[[running.pid, CONTEXT + 2 * MIB]]]
    with holder(machine, str(MIB * 2)) as running:
        assert running.stdin is not None
        running.stdin.close()
        while state(running.pid) != "Z":
            pass
        assert ask(machine, [LIST.format(0)]) == [[]]
