"""This machine's own processes, held against psutil's reading of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from gpusnap.collect.options import CollectOptions
from gpusnap.collect.processes import ProcessTable
from gpusnap.live import LiveHost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., int]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program and give its pid; it is ended and reaped afterwards."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, **options: object) -> int:
        running.append(subprocess.Popen(argv, **options))  # type: ignore[call-overload]
        return running[-1].pid

    yield begin
    for process in running:
        process.kill()
        process.wait()


def facts(pid: int) -> dict[str, object]:
    table = ProcessTable(LiveHost(), CollectOptions())
    return {leaf: reading.value for leaf, reading in table.facts(pid, "here", lambda _: None).items()}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_reads_as_psutil_reads_it(start: Start, tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    pid = start(str(program), "600", cwd=tmp_path)
    peer = psutil.Process(pid)
    wait_for(lambda: peer.name() == program.name and peer.status() == psutil.STATUS_SLEEPING)
    found = facts(pid)
    assert found["name"] == peer.name() == "a) R 1 (b"
    assert found["exe"] == peer.exe() == str(program)
    assert found["cmdline"] == peer.cmdline() == [str(program), "600"]
    assert found["cwd"] == peer.cwd() == str(tmp_path)
    assert found["ppid"] == peer.ppid() == os.getpid()
    assert (found["uid"], found["user"]) == (peer.uids().effective, peer.username())
    assert found["state"] == "sleeping"
    assert found["rss_bytes"] == pytest.approx(peer.memory_info().rss, rel=0.5)
    monotonic = peer._proc.create_time(monotonic=True)  # type: ignore[attr-defined] # what psutil tells processes by
    assert found["start_ticks"] == round(monotonic * os.sysconf("SC_CLK_TCK"))
    assert found["self"] is False


def test_own_row_is_told_by_the_pid() -> None:
    assert facts(os.getpid())["self"] is True


def test_report_025_a_real_zombie_is_one(start: Start) -> None:
    pid = start("true")
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    found = facts(pid)
    assert (found["state"], found["name"], found["ppid"]) == ("zombie", "true", os.getpid())
    assert (found["exe"], found["cwd"], found["cmdline"]) == (None, None, None)


def test_a_stopped_process_is_stopped(start: Start) -> None:
    pid = start("sleep", "600")
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    assert facts(pid)["state"] == "stopped"


def test_report_004_a_reaped_process_has_exited(start: Start) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    table = ProcessTable(LiveHost(), CollectOptions())
    assert table.facts(process.pid, "here", lambda _: None)["name"].provenance == "null:exited"


TICKS = 5  # percent: two ticks of 10 ms in half a second, and what is rounded


def test_a_busy_process_has_cpu_and_a_sleeping_one_none(start: Start) -> None:
    busy = start(sys.executable, "-c", "while True: pass")
    idle = start("sleep", "600")
    table = ProcessTable(LiveHost(), CollectOptions())
    # Two looks of a peer around each of the table's own: whatever else runs here, its figure lies between theirs.
    looks = [spent_by(busy)]
    table.prime([busy, idle])
    looks.append(spent_by(busy))
    time.sleep(0.5)
    looks.append(spent_by(busy))
    table.begin_sample()
    percent = [table.facts(pid, "here", lambda _: None)["cpu_percent"].value for pid in (busy, idle)]
    looks.append(spent_by(busy))
    (time0, cpu0), (time1, cpu1), (time2, cpu2), (time3, cpu3) = looks
    least, most = 100 * (cpu2 - cpu1) / (time3 - time0), 100 * (cpu3 - cpu0) / (time2 - time1)
    assert isinstance(percent[0], float)
    assert least - TICKS <= percent[0] <= most + TICKS
    assert percent[1] == 0.0


def spent_by(pid: int) -> tuple[float, float]:
    """Now, and the CPU seconds of a process."""
    times = psutil.Process(pid).cpu_times()
    return time.monotonic(), times.user + times.system


def test_every_process_here_reads_without_a_fault() -> None:
    table = ProcessTable(LiveHost(), CollectOptions())
    for pid in psutil.pids():
        row = table.facts(pid, "here", lambda _: None)
        assert (row["start_ticks"].value is None) is row["name"].is_null
