"""Real processes that hold a card without being listed: found, named, and told apart by state.

The NVIDIA machine is the stand-in; the holders, the zombie and their parents are real. A GPU's device file can't
be made here, so a holder opens a file of that name in a mount namespace of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.namespaces import needs_host_pids
from tests.snapping import run_gpusnap
from tests.standin import Card, Proc, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GIB = 1 << 30

HOLD = "mount -t tmpfs none /dev && : > /dev/nvidia0 && exec 3< /dev/nvidia0 && echo ready && exec sleep 120"


def may_unshare() -> bool:
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not may_unshare(),
    reason="a private mount namespace takes root on Linux; CI is root there",
)


@contextmanager
def holder() -> Iterator[int]:
    with subprocess.Popen(["unshare", "-m", "sh", "-c", HOLD], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


@contextmanager
def zombie() -> Iterator[int]:
    """A child that has ended and whose exit nobody takes, until the block ends."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        deadline = time.monotonic() + 10
        while b") Z " not in open(f"/proc/{pid}/stat", "rb").read():  # noqa: SIM115
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield pid
    finally:
        os.waitpid(pid, 0)


def explained(machine: Scenario, folder: Path) -> dict[str, Any]:
    done = run_gpusnap("explain", "--window", "0", "--json", machine=machine, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def finding(document: dict[str, Any], code: str) -> dict[str, Any]:
    (found,) = [one for one in document["findings"] if one["code"] == code]
    return dict(found)


@needs_namespaces
def test_report_080_a_real_holder_that_the_driver_does_not_list(tmp_path: Path) -> None:
    with holder() as pid:
        document = explained(Scenario(cards=[Card(used=6 * GIB)]), tmp_path)
    found = finding(document, "unlisted-holder")
    title = r"(1 process|\d+ processes) not listed by the driver holds? the card open"
    assert re.fullmatch(title, found["title"])
    # Other holders may be about: those of tests beside this one, or of a real card of this machine.
    (line,) = [line for line in found["evidence"] if line.startswith(f"pid {pid} ")]
    name = open(f"/proc/{os.getpid()}/comm").read().strip()  # noqa: SIM115
    parent = f"parent {os.getpid()} {name}"
    assert line == f"pid {pid} sleep (root): /dev/nvidia0 open, sleeping, {parent}; size unknown"
    assert "unlisted holders" in finding(document, "unattributed-memory")["title"]


@needs_namespaces
def test_a_holder_of_a_card_whose_memory_is_accounted_for_is_nothing_special(tmp_path: Path) -> None:
    with holder() as pid:
        document = explained(Scenario(cards=[Card(processes=[Proc(pid, 6 * GIB)])]), tmp_path)
    codes = [one["code"] for one in document["findings"]]
    assert "unlisted-holder" not in codes
    assert "unattributed-memory" not in codes


@needs_host_pids
def test_report_025_a_real_zombie_that_the_driver_lists(tmp_path: Path) -> None:
    with zombie() as pid:
        document = explained(Scenario(cards=[Card(processes=[Proc(pid, 5 * GIB)])]), tmp_path)
    found = finding(document, "zombie-or-dstate-holder")
    assert "is a zombie and the card still has its memory" in found["title"]
    assert found["subject"]["pid"] == pid
    assert any(f"its parent {os.getpid()}" in line for line in found["evidence"])
    assert "A zombie can't be killed" in " ".join(found["advice"])


def test_report_058_a_real_pid_that_is_gone(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    document = explained(Scenario(cards=[Card(processes=[Proc(child.pid, 5 * GIB)])]), tmp_path)
    found = finding(document, "zombie-or-dstate-holder")
    assert f"the driver lists pid {child.pid} with 5.0 GiB" in found["title"]


DSTATE = """--- proc/555/stat
555 (python3) D 900 555 555 0 -1 4194304 0 0 0 0 10 5 0 0 20 0 9 0 360000 1000 250 18446744073709551615 1 1 0 0 0
--- proc/555/comm
python3
--- proc/555/cmdline escaped
python3\\0train.py\\0
--- proc/555/status
Name:\tpython3
State:\tD (disk sleep)
Uid:\t1001\t1001\t1001\t1001
--- proc/self/ns/pid -> pid:[4026531836]
--- proc/sys/kernel/random/boot_id
0f7c9a52-3a55-4d9e-9b7f-6f1f2f6f8a01
--- root/etc/passwd
bob:x:1001:1001::/home/bob:/bin/sh
"""


def test_report_044_state_d_of_a_captured_machine(tmp_path: Path) -> None:
    (tmp_path / "tree.txt").write_text(DSTATE)
    machine = {"platform": "linux", "own_pid": 999, "users": {"1001": "bob"}}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    gib8 = {"total": 16 * GIB, "free": 8 * GIB, "used": 8 * GIB, "reserved": 0}
    calls: dict[str, Any] = {
        "nvmlSystemGetDriverVersion": "580.95.05",
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex 0": None,
        "nvmlDeviceGetName 0": "NVIDIA A10",
        "nvmlDeviceGetUUID 0": "GPU-00000000-0000-4000-8000-000000000000",
        "nvmlDeviceGetMemoryInfo_v2 0": gib8,
        "nvmlDeviceGetComputeRunningProcesses_v3 0": [{"pid": 555, "usedGpuMemory": 8 * GIB}],
        "nvmlDeviceGetGraphicsRunningProcesses_v3 0": [],
        "nvmlDeviceGetMPSComputeRunningProcesses_v3 0": [],
    }
    (tmp_path / "nvml.json").write_text(json.dumps({"version": "13.615.71", "init": None, "calls": calls}))
    done = run_gpusnap("explain", "--replay", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr.decode()
    found = finding(json.loads(done.stdout), "zombie-or-dstate-holder")
    assert "train.py (pid 555) is in uninterruptible sleep (D)" in found["title"]
    assert "kill does not work" in " ".join(found["advice"])
