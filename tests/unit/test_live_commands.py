"""Commands of this machine: found where the system keeps them, and held to a time and a size."""

from __future__ import annotations

import errno
import os
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from gpusnap import live
from gpusnap.live import LiveHost

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("scripts with #! are not Windows'", allow_module_level=True)


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "npu-smi"
    path.write_text('#!/bin/sh\necho "$0 $*"\n')
    path.chmod(0o755)
    return path


def test_a_tool_outside_of_crons_path_is_found(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(live, "_SYSTEM_FOLDERS", (str(tool.parent),))
    assert LiveHost().run(["npu-smi", "info"], 5.0).stdout == f"{tool} info\n".encode()


def test_path_goes_first(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(live, "_SYSTEM_FOLDERS", ("/nowhere",))
    assert LiveHost().run(["npu-smi"], 5.0).stdout == f"{tool} \n".encode()


def test_what_is_nowhere_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError):
        LiveHost().run(["npu-smi-that-is-nowhere"], 5.0)


def test_a_command_that_never_stops_talking_is_ended_and_costs_little_memory(tmp_path: Path) -> None:
    # `yes` says gigabytes a second until somebody ends it.
    tracemalloc.start()
    begun = time.monotonic()
    with pytest.raises(OSError, match="more than 1,048,576 bytes") as fault:
        LiveHost().run(["yes"], 30.0, 1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fault.value.errno == errno.EFBIG
    assert time.monotonic() - begun < 10
    assert peak < 4 << 20


def test_an_answer_of_just_the_limit_is_whole() -> None:
    answer = LiveHost().run(["sh", "-c", "printf 12345678; printf abc >&2; exit 3"], 10.0, 8)
    assert answer == (b"12345678", b"abc", 3)
    with pytest.raises(OSError, match="more than 7 bytes"):
        LiveHost().run(["sh", "-c", "printf 12345678"], 10.0, 7)


def test_a_command_that_hangs_is_left_in_time_and_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 s"):
        LiveHost().run(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"], 0.2)
    assert time.monotonic() - begun < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_nobody_waits_for_a_child_that_keeps_the_pipe_open(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        LiveHost().run(["sh", "-c", "sleep 8 & exit 0"], 0.3)
    assert time.monotonic() - begun < 5
