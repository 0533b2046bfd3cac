"""How a recording ends: the line is whole, the exit code says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.recorder import GPUSNAP, end, environment, samples, start, wait_for_samples
from tests.standin import Card, Scenario


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
@pytest.mark.parametrize("every", ["1h", "10ms"])
def test_report_050_a_signal_ends_it_after_a_whole_line(
    tmp_path: Path, number: int, code: int, every: str
) -> None:
    path = tmp_path / "a.jsonl"
    process = start(str(path), "--every", every)
    wait_for_samples(path, 1)
    ended, out, err = end(process, number)
    assert (ended, out, err) == (code, "", "")
    assert [doc["recording"]["sequence"] for doc in samples(path)] == list(range(1, len(samples(path)) + 1))


@pytest.mark.parametrize("words", [(), ("--every", "1h")])
def test_sigterm_while_the_driver_is_being_opened_ends_with_0_and_a_whole_line(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The stand-in's nvmlInit takes two seconds: the signal comes long before there is a sample."""
    machine = Scenario([Card()])
    machine.slow("nvmlInit", 2000)
    calls = tmp_path / "calls"
    path = tmp_path / "a.jsonl"
    process = start(str(path), *words, more=machine.environment(tmp_path, calls=calls))
    until = time.monotonic() + 20
    while time.monotonic() < until and not (calls.exists() and "nvmlInit" in calls.read_text()):
        time.sleep(0.01)
    assert not path.exists()
    assert end(process) == (0, "", "")
    assert len(samples(path)) == 1


def test_sigterm_while_python_still_imports_ends_with_0(tmp_path: Path) -> None:
    """A typer that takes its time to load stands for a cold disk."""
    (tmp_path / "typer.py").write_text(
        "import time\nopen(__file__ + '.seen', 'w').close()\ntime.sleep(1)\n"
        "raise ImportError('the test ends here')\n"
    )
    path = tmp_path / "a.jsonl"
    words = [*GPUSNAP, "record", str(path), "--every", "1h"]
    more = {"PYTHONPATH": os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])}
    process = subprocess.Popen(words, env=environment(more), stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 20
    while time.monotonic() < until and not (tmp_path / "typer.py.seen").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    # The signal did not kill it: it went on to the import's end.
    assert process.returncode == 70
    assert "the test ends here" in err


def test_a_second_signal_leaves_a_driver_that_hangs_at_once(tmp_path: Path) -> None:
    machine = Scenario([Card()])
    machine.cards[0].slow("nvmlDeviceGetMemoryInfo", -1)
    machine.cards[0].slow("nvmlDeviceGetMemoryInfo_v2", -1)
    calls = tmp_path / "calls"
    path = tmp_path / "a.jsonl"
    process = start(
        str(path), "--every", "1s", "--timeout", "50s", more=machine.environment(tmp_path, calls=calls)
    )
    until = time.monotonic() + 20
    while time.monotonic() < until and not (calls.exists() and "nvmlDeviceGetMemoryInfo" in calls.read_text()):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.poll() is None  # it finishes its sample, which may take 50 s
    code, _, err = end(process, signal.SIGINT)
    assert (code, err) == (130, "")


def test_report_050_after_the_terminal_is_gone_it_ends_cleanly(tmp_path: Path) -> None:
    """The terminal hangs up while progress is shown: writing there fails, the file does not suffer."""
    script = """
import os, sys, pty
pid, controller = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-m", "gpusnap", "record", sys.argv[1], "--every", "20ms"])
seen = b""
while b"3 samples" not in seen:
    seen += os.read(controller, 4096)
os.close(controller)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
"""
    path = tmp_path / "a.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env=environment({"TERM": "xterm"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "0\n"
    assert len(samples(path)) >= 3
