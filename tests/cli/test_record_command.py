"""`gpusnap record FILE -- COMMAND`: the command is what it would be without us; its end says what it took."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.recorder import GPUSNAP, REPLAY, end, environment, record, samples, start
from tests.namespaces import needs_host_pids
from tests.standin import Card, Proc, Scenario

GIB = 1 << 30


@pytest.mark.parametrize("code", [0, 1, 2, 3, 70, 255])
def test_the_exit_code_is_the_commands(tmp_path: Path, code: int) -> None:
    done = record(str(tmp_path / "a.jsonl"), "--", "sh", "-c", f"exit {code}")
    assert done.returncode == code


def test_output_input_arguments_and_environment_are_the_commands(tmp_path: Path) -> None:
    script = (
        "import os, sys; print(os.environ['SEED'], sys.argv[1:], sys.stdin.read()); sys.stderr.write('warm\\n')"
    )
    done = subprocess.run(
        [
            *GPUSNAP,
            "record",
            str(tmp_path / "a.jsonl"),
            "--",
            sys.executable,
            "-c",
            script,
            "--",
            "--every",
            "x y",
        ],
        env=environment({"SEED": "7"}),
        input="from stdin",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == "7 ['--', '--every', 'x y'] from stdin\n"
    assert done.stderr.startswith("warm\n")


def test_one_sample_stands_before_one_after_and_samples_between(tmp_path: Path) -> None:
    path, marks = tmp_path / "a.jsonl", tmp_path / "marks"
    script = f"date +%s.%N > {marks}; sleep 1; date +%s.%N >> {marks}"
    done = record(str(path), "--every", "200ms", "--", "sh", "-c", script)
    assert done.returncode == 0
    from gpusnap.timefmt import parse_rfc3339

    first, last = map(float, marks.read_text().split())
    taken = [parse_rfc3339(doc["taken_at"]) for doc in samples(path)]
    assert taken[0] < first
    assert taken[-1] > last - 0.002  # milliseconds are rounded
    assert sum(first < moment < last for moment in taken) >= 2


def test_the_end_of_the_command_is_not_slept_through(tmp_path: Path) -> None:
    began = time.monotonic()
    done = record(str(tmp_path / "a.jsonl"), "--every", "1h", "--", "sleep", "0.3")
    assert done.returncode == 0
    assert time.monotonic() - began < 20
    assert len(samples(tmp_path / "a.jsonl")) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_the_commands_and_the_recording_goes_on_to_its_end(tmp_path: Path, number: int) -> None:
    path, ready = tmp_path / "a.jsonl", tmp_path / "ready"
    script = f"""
import pathlib, signal, sys, time
def leave(number, frame):
    sys.exit(number + 100)
signal.signal({int(number)}, leave)
pathlib.Path({str(ready)!r}).touch()
time.sleep(30)
"""
    process = start(str(path), "--", sys.executable, "-c", script)
    until = time.monotonic() + 20
    while time.monotonic() < until and not ready.exists():
        time.sleep(0.01)
    code, _, err = end(process, number)
    assert code == number + 100
    assert f"exit {number + 100} after" in err
    assert len(samples(path)) == 2


def test_a_command_that_a_signal_kills_is_128_and_its_number(tmp_path: Path) -> None:
    done = record(str(tmp_path / "a.jsonl"), "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_start_is_what_a_shell_would_say(tmp_path: Path, command: str, code: int) -> None:
    done = record(str(tmp_path / "a.jsonl"), "--", command)
    assert done.returncode == code
    assert done.stderr.startswith(f"gpusnap record: {command}: ")
    assert done.stderr.count("\n") == 1


def test_a_folder_of_the_path_that_may_not_be_looked_into_hides_no_missing_command(tmp_path: Path) -> None:
    """To an ordinary user exec(3) says "permission denied" then (a PATH kept through `su`); shells: not found."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    path = f"{closed}{os.pathsep}{os.environ['PATH']}"
    done = record(str(tmp_path / "a.jsonl"), "--", "no-such-command", more={"PATH": path})
    assert (done.returncode, done.stderr) == (127, "gpusnap record: no-such-command: command not found\n")


def test_ctrl_c_on_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    """A training run that gets it twice drops its checkpoint."""
    script = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
print("ready", flush=True)
until = time.monotonic() + 1.5
while time.monotonic() < until:
    time.sleep(0.05)
print(f"got {len(seen)}", flush=True)
sys.exit(10 + len(seen))
"""
    driver = """
import os, pty, sys
pid, controller = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-m", "gpusnap", "record", *sys.argv[1:]])
seen = b""
while b"ready" not in seen:
    seen += os.read(controller, 4096)
os.write(controller, b"\\x03")
while True:
    try:
        more = os.read(controller, 4096)
    except OSError:
        break
    if not more:
        break
    seen += more
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run(
        [sys.executable, "-c", driver, str(tmp_path / "a.jsonl"), "--", sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "11\n"


def scenario(used: int, *processes: Proc) -> Scenario:
    return Scenario([Card(total=16 * GIB, used=used, reserved=0, processes=processes)])


@needs_host_pids
def test_peak_and_what_was_left_behind_are_said_and_kept_as_json(tmp_path: Path) -> None:
    """The command changes the machine under the recorder: 2 GiB before, 12 GiB meanwhile, 3 GiB after."""
    more = scenario(2 * GIB).environment(tmp_path)
    for name, used, processes in [
        ("peak", 12 * GIB, [Proc(os.getpid(), 10 * GIB)]),
        ("after", 3 * GIB, [Proc(os.getpid(), 1 * GIB)]),
    ]:
        scenario(used, *processes).write(tmp_path / name)
    machine = more["GPUSNAP_TEST_NVML"]
    script = f"mv {tmp_path}/peak {machine}; sleep 1; mv {tmp_path}/after {machine}"
    summary = tmp_path / "summary.json"
    path = tmp_path / "a.jsonl"
    done = record(
        str(path),
        "--every",
        "100ms",
        "--summary",
        str(summary),
        "--",
        "sh",
        "-c",
        script,
        "--token=hf_abcdefghijklmnop",
        more=more,
    )
    assert done.returncode == 0
    found = json.loads(summary.read_bytes())
    assert found["schema"] == "gpusnap.summary/1"
    assert found["exit_code"] == 0
    assert found["command"][-1] == "--token=***"
    assert found["samples"] == len(samples(path))
    assert 0.9 < found["elapsed_seconds"] < 10
    (card,) = found["adapters"]
    assert card["peak_bytes"] == 12 * GIB
    assert card["left_bytes"] == 1 * GIB
    assert [(row["pid"], row["peak_bytes"]) for row in card["processes"]] == [(os.getpid(), 10 * GIB)]
    peak = next(doc for doc in samples(path) if doc["adapters"][0]["memory"]["used_bytes"] == 12 * GIB)
    assert card["peak_at"] == peak["taken_at"]
    (line,) = done.stderr.splitlines()
    assert "GPU 0: peak 12.0 GiB (" in line
    assert "left behind 1.0 GiB (" in line
    assert line.endswith(f"samples in {path}")
    assert "hf_abc" not in done.stderr


def test_a_recording_that_fails_does_not_cost_the_command_but_its_success(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    folder.mkdir()
    script = f"rm -r {folder}; sleep 1; echo done"
    done = record(str(folder / "a.jsonl"), "--every", "50ms", "--", "sh", "-c", script)
    assert done.stdout == "done\n"
    assert done.returncode == 3
    done = record(str(tmp_path / "b.jsonl"), "--every", "50ms", "--", "sh", "-c", "exit 9")
    assert done.returncode == 9


def test_without_a_command_a_summary_is_that_of_the_series(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    done = record(str(tmp_path / "a.jsonl"), *REPLAY, "--count", "2", "--summary", str(summary))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(summary.read_bytes())
    assert (found["command"], found["exit_code"], found["samples"]) == ([], 0, 2)


@pytest.mark.parametrize("linked", [False, True])
def test_a_summary_never_replaces_its_recording(tmp_path: Path, linked: bool) -> None:
    path, summary = tmp_path / "a.jsonl", tmp_path / ("link.json" if linked else "a.jsonl")
    assert record(str(path)).returncode == 0
    if linked:
        summary.symlink_to(path)
    before = path.read_bytes()
    done = record(str(path), "--summary", str(summary), "--", "true")
    assert done.returncode == 2
    assert "that is the recording itself" in done.stderr
    assert path.read_bytes() == before


def test_words_that_are_no_utf8_cost_neither_the_summary_nor_the_exit_code(tmp_path: Path) -> None:
    path, summary = tmp_path / "a.jsonl", tmp_path / "s.json"
    word = os.fsdecode(b"\xff")
    done = record(str(path), "--summary", str(summary), "--", "sh", "-c", "exit 5", word)
    assert done.returncode == 5
    assert json.loads(summary.read_text())["command"] == ["sh", "-c", "exit 5", "\\xff"]
