"""A process number that the kernel gives again; only root may choose the next one."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from gpusnap.live import LiveTree

pytestmark = pytest.mark.integration


def test_a_number_that_is_given_again_is_read_from_its_new_process() -> None:
    """The kernel's next pid can be chosen by root: `ns_last_pid` (proc(5))."""
    tree = LiveTree("/proc")
    first = subprocess.Popen(["sleep", "30"])
    old = tree.read_record(f"{first.pid}/stat")
    first.kill()
    first.wait()
    time.sleep(0.05)  # into another clock tick
    second: subprocess.Popen[bytes] | None = None
    for _ in range(200):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
        second = subprocess.Popen(["sleep", "31"])
        if second.pid == first.pid:
            break
        second.kill()
        second.wait()
    assert second is not None
    assert second.pid == first.pid
    new = tree.read_record(f"{second.pid}/stat")
    second.kill()
    second.wait()
    assert new != old
    assert new.split()[21] != old.split()[21]  # another start stamp
