"""Two real `snap` runs around what really happens to real processes: start, growth, end, a reused pid.

The processes allocate through the stand-in libcuda and the stand-in NVML lists them while they live, so neither
the pids nor the start stamps nor the bytes are made up by the test.

"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.namespaces import needs_host_pids
from tests.snapping import run_gpusnap
from tests.standin import Card, Proc, Scenario
from tests.standin.ask import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB, GIB = 1 << 20, 1 << 30
# What the stand-in libcuda charges for a context, beside the allocation (tests/standin/cuda/cuda.c).
CONTEXT = 512 * MIB
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


class Machine:
    """One card on which processes can allocate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.card = Card(total=24 * GIB, used=0, reserved=0)
        self.scenario = Scenario([self.card])
        self.environment = self.scenario.environment(folder, cuda=True)
        self.taken = 0

    def snap(self) -> str:
        self.taken += 1
        path = str(self.folder / f"{self.taken}.json")
        done = run_gpusnap("snap", "-o", path, env=self.environment)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        return path

    def diff(self, before: str, after: str, *words: str, code: int = 0) -> dict[str, Any]:
        done = run_gpusnap("diff", before, after, "--json", *words)
        assert done.returncode == code, done.stderr.decode()
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def text(self, before: str, after: str) -> list[str]:
        return run_gpusnap("diff", before, after).stdout.decode().splitlines()

    @contextmanager
    def holder(self, size: int, *, pid: int | None = None) -> Iterator[Holder]:
        one = Holder(self.environment, size) if pid is None else at_pid(pid, self.environment, size)
        try:
            yield one
        finally:
            one.end()


class Holder:
    """A real process with a context and an allocation on card 0; it obeys lines on stdin."""

    def __init__(self, environment: dict[str, str], size: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/device/holder.py"), str(size)],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self.process.pid
        self._hear()

    def allocate(self, size: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"alloc %d\n" % size)
        self.process.stdin.flush()
        self._hear()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline()


def at_pid(pid: int, environment: dict[str, str], size: int) -> Holder:
    """A holder with exactly this pid: the kernel gives the number after the one that was written."""
    for _ in range(50):
        LAST_PID.write_text(str(pid - 1))
        one = Holder(environment, size)
        if one.pid == pid:
            return one
        one.end()
    raise AssertionError(f"pid {pid} was not given again")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def verdicts(document: dict[str, Any]) -> list[tuple[int, str, int | None]]:
    """(pid, status, change of VRAM) of every row; no change is 0."""
    return sorted(
        (row["pid"], row["status"], row["changes"].get("vram_bytes", {"delta": 0})["delta"])
        for row in document["processes"]
    )


def used_delta(document: dict[str, Any]) -> int:
    delta: int = document["adapters"][0]["changes"].get("memory.used_bytes", {"delta": 0})["delta"]
    return delta


@needs_host_pids
def test_a_process_that_really_starts(machine: Machine) -> None:
    with machine.holder(64 * MIB) as old:
        before = machine.snap()
        with machine.holder(1024 * MIB) as new:
            after = machine.snap()
    document = machine.diff(before, after)
    assert verdicts(document) == sorted([(old.pid, "same", 0), (new.pid, "appeared", CONTEXT + 1024 * MIB)])
    assert used_delta(document) == CONTEXT + 1024 * MIB
    assert document["unattributed"][0]["delta_bytes"] == 0
    assert document["elapsed_seconds"] > 0
    assert machine.text(before, after)[0].startswith("H100 80GB HBM3: +1.5 GiB in ")


@needs_host_pids
def test_a_process_that_really_exits_and_gives_back_all_it_held(machine: Machine) -> None:
    with machine.holder(256 * MIB) as gone:
        before = machine.snap()
    after = machine.snap()
    document = machine.diff(before, after, "--fail-above", "0")
    assert verdicts(document) == [(gone.pid, "exited", -(CONTEXT + 256 * MIB))]
    assert document["unattributed"][0]["explained_by"] == []


@needs_host_pids
def test_a_process_that_exits_without_its_memory_coming_free_is_named(machine: Machine) -> None:
    """nvitop#134: the driver goes on to count what a dead process held, and lists nobody for it."""
    held = CONTEXT + 256 * MIB
    with machine.holder(256 * MIB) as gone:
        before = machine.snap()
    machine.card.memory(24 * GIB, held, 0)
    machine.scenario.write(machine.folder / "nvml.scenario")
    after = machine.snap()
    document = machine.diff(before, after)
    assert used_delta(document) == 0
    assert verdicts(document) == [(gone.pid, "exited", -held)]
    (suspect,) = document["unattributed"][0]["explained_by"]
    assert (suspect["pid"], suspect["bytes"]) == (gone.pid, held)
    assert suspect["says"] == "exited holding 768 MiB; 0 B came free"
    assert machine.text(before, after)[0].endswith("exited holding 768 MiB and 0 B came free.")


def test_a_process_that_the_driver_still_lists_after_its_end_is_unknown_not_the_same(machine: Machine) -> None:
    """nvitop#134, the other way: "No Such Process" with 32 GiB. Its start stamp died with it."""
    held = CONTEXT + 256 * MIB
    with machine.holder(256 * MIB) as gone:
        before = machine.snap()
    machine.card.processes.append(Proc(gone.pid, held))
    machine.card.memory(24 * GIB, held, 0)
    machine.scenario.write(machine.folder / "nvml.scenario")
    after = machine.snap()
    document = machine.diff(before, after)
    assert [status for _, status, _ in verdicts(document)] == ["unknown", "unknown"]
    assert [warning["code"] for warning in document["warnings"]] == ["unknown-start"]


@needs_host_pids
def test_a_process_that_really_grows(machine: Machine) -> None:
    with machine.holder(64 * MIB) as one:
        before = machine.snap()
        one.allocate(512 * MIB)
        after = machine.snap()
    document = machine.diff(before, after, "--fail-above", "512MiB", "--fail-above", "process:512MiB")
    assert verdicts(document) == [(one.pid, "changed", 512 * MIB)]
    assert used_delta(document) == 512 * MIB
    machine.diff(before, after, "--fail-above", "511MiB", code=1)
    machine.diff(before, after, "--fail-above", "process:511MiB", code=1)
    # Read backwards it shrank.
    assert verdicts(machine.diff(after, before)) == [(one.pid, "changed", -512 * MIB)]


@needs_host_pids
@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK) or os.geteuid() != 0, reason="choosing a pid needs root")
def test_report_083_a_pid_that_is_really_reused(machine: Machine) -> None:
    with machine.holder(1024 * MIB) as first:
        before = machine.snap()
    with machine.holder(64 * MIB, pid=first.pid) as second:
        after = machine.snap()
    assert second.pid == first.pid
    document = machine.diff(before, after)
    assert verdicts(document) == [
        (first.pid, "appeared", CONTEXT + 64 * MIB),
        (first.pid, "exited", -(CONTEXT + 1024 * MIB)),
    ]
    stamps = {row["status"]: row["start_ticks"] for row in document["processes"]}
    assert stamps["appeared"] > stamps["exited"]
    assert used_delta(document) == -960 * MIB
    # The same program of the same user: one run after the other, when asked.
    (row,) = machine.diff(before, after, "--match", "program")["processes"]
    assert (row["status"], row["changes"]["vram_bytes"]["delta"]) == ("replaced", -960 * MIB)


@needs_host_pids
def test_a_process_that_becomes_another_program_is_still_itself(machine: Machine) -> None:
    """execve keeps pid and start stamp: the row is the same, its name is another."""
    with subprocess.Popen(["sh", "-c", "read _; exec sleep 60"], stdin=subprocess.PIPE) as child:
        machine.card.processes.append(Proc(child.pid, GIB))
        machine.card.memory(24 * GIB, GIB, 0)
        machine.scenario.write(machine.folder / "nvml.scenario")
        before = machine.snap()
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        while Path(f"/proc/{child.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        after = machine.snap()
        child.kill()
    (row,) = machine.diff(before, after)["processes"]
    assert row["status"] in ("same", "changed")  # the scheduler may have caught it in another state
    assert (row["changes"]["name"]["before"], row["changes"]["name"]["after"]) == ("sh", "sleep")
    assert "vram_bytes" not in row["changes"]


@needs_host_pids
def test_live_and_a_recording_of_the_same_machine(machine: Machine) -> None:
    recording = str(machine.folder / "rec.jsonl")
    with machine.holder(64 * MIB) as one:
        assert run_gpusnap("record", recording, env=machine.environment).returncode == 0
        one.allocate(512 * MIB)
        assert run_gpusnap("record", recording, env=machine.environment).returncode == 0
        live = run_gpusnap("diff", f"{recording}@first", "live", "--json", env=machine.environment)
    assert verdicts(json.loads(live.stdout)) == [(one.pid, "changed", 512 * MIB)]
    alone = json.loads(run_gpusnap("diff", recording, "--json").stdout)
    assert verdicts(alone) == [(one.pid, "changed", 512 * MIB)]
