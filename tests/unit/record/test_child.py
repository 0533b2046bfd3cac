"""The command beside a recording: its exit code as a shell says it, its environment untouched."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gpusnap.record.child import CannotStart, Child


def wait(child: Child) -> int:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        code = child.exit_code()
        if code is not None:
            return code
        time.sleep(0.01)
    raise AssertionError("still running")


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_the_commands(code: int) -> None:
    child = Child([sys.executable, "-c", f"raise SystemExit({code})"])
    assert wait(child) == code
    assert child.exit_code() == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGTERM, 143), (signal.SIGSEGV, 139)])
def test_a_command_that_a_signal_ended_is_128_and_its_number(number: int, code: int) -> None:
    assert wait(Child([sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(number)})"])) == code


def test_a_running_command_has_no_exit_code_and_takes_signals() -> None:
    child = Child([sys.executable, "-c", "import time; time.sleep(30)"])
    assert child.exit_code() is None
    child.forward(signal.SIGTERM)
    assert wait(child) == 143
    child.forward(signal.SIGTERM)  # gone: no fault, nobody else is hit


def test_environment_arguments_and_standard_streams_pass_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    script = "import os, sys; print(os.environ['CUDA_VISIBLE_DEVICES'], sys.argv[1:], os.getcwd())"
    monkeypatch.chdir(tmp_path)
    assert wait(Child([sys.executable, "-c", script, "--count", "a b", ""])) == 0
    assert capfd.readouterr().out == f"2 ['--count', 'a b', ''] {os.path.realpath(tmp_path)}\n"


def test_the_recorders_signal_settings_do_not_reach_the_command() -> None:
    """Python ignores SIGPIPE; a command that inherits that writes into closed pipes for ever."""
    child = Child(
        [
            "sh",
            "-c",
            "ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status); "
            "[ $(( 0x$ignored & 0x1000 )) -eq 0 ]",
        ]
    )
    assert wait(child) == 0


def test_a_command_that_is_not_there_is_127_and_one_that_cannot_run_126(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no-such-command: command not found") as missing:
        Child(["no-such-command"])
    assert missing.value.exit_code == 127
    (tmp_path / "data").write_text("")
    with pytest.raises(CannotStart, match="Permission denied") as denied:
        Child([str(tmp_path / "data")])
    assert denied.value.exit_code == 126
