"""Records of /proc that are read again and again: fresh each time, of the process that has the number now."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpusnap.live import LiveTree


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def letter(tree: LiveTree, pid: int) -> bytes:
    return tree.read_record(f"{pid}/stat").rpartition(b") ")[2][:1]


def test_a_record_is_written_anew_at_each_read() -> None:
    tree = LiveTree("/proc")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    try:
        assert letter(tree, process.pid) in (b"R", b"S", b"D")
        process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 10
        while time.monotonic() < until and letter(tree, process.pid) != b"T":
            time.sleep(0.01)
        assert letter(tree, process.pid) == b"T"
    finally:
        process.kill()
        process.wait()


def test_a_record_of_a_process_that_is_gone_is_an_error_and_its_descriptor_is_closed() -> None:
    tree = LiveTree("/proc")
    before = open_files()
    process = subprocess.Popen(["sleep", "30"])
    tree.read_record(f"{process.pid}/stat")
    process.kill()
    process.wait()
    with pytest.raises((FileNotFoundError, ProcessLookupError)):
        tree.read_record(f"{process.pid}/stat")
    assert open_files() == before


def test_descriptors_are_bounded(tmp_path: Path) -> None:
    for number in range(700):
        (tmp_path / str(number)).write_bytes(str(number).encode())
    tree = LiveTree(str(tmp_path))
    before = open_files()
    for number in range(700):
        assert tree.read_record(str(number)) == str(number).encode()
    assert open_files() - before <= 256
