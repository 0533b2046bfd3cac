"""Closed, full, unbuffered and non-blocking standard streams: one line, the right code, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.snapping import run_gpusnap
from tests.standin import Card, Proc, Scenario
from tests.surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")
# More than a pipe holds: 64 KiB on Linux.
MANY = Scenario(cards=[Card(processes=[Proc(4_000_000 + n, 1 << 20) for n in range(60)]) for _ in range(3)])
SHELL = ("sh", "-c")


def _shell(line: str, *, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """`g` is gpusnap, `$M` a machine to replay."""
    environ = surroundings(env) | {"PYTHON": sys.executable, "M": EXAMPLE}
    return subprocess.run(
        [*SHELL, f'g() {{ "$PYTHON" -m gpusnap "$@"; }}; {line}'],
        env=environ,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        'snap --replay "$M"',
        'ps --replay "$M"',
        'ps --json --replay "$M"',
        'explain --replay "$M"',
        'diff live live --replay "$M"',
        'record - --replay "$M"',
        "snap --schema",
        "snap --help",
        "--version",
        "--help",
    ],
)
@pytest.mark.parametrize(("where", "words"), [(">&-", b"Bad file descriptor"), (">/dev/full", b"No space left")])
def test_output_that_goes_nowhere_is_one_line_and_3(command: str, where: str, words: bytes) -> None:
    done = _shell(f"g {command} {where}", env={"PYTHONUNBUFFERED": ""})
    assert (done.returncode, done.stdout) == (3, b"")
    (line,) = done.stderr.splitlines()
    assert b"standard output: " + words in line


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_message_that_nobody_can_read_changes_no_exit_code(where: str, unbuffered: str) -> None:
    environ = {"PYTHONUNBUFFERED": unbuffered}
    assert _shell(f"g ps --bogus {where}", env=environ).returncode == 2
    assert _shell(f"g ps --sort x {where}", env=environ).returncode == 2
    assert _shell(f"g {where}", env=environ).returncode == 2
    good = _shell(f'g snap -v --replay "$M" {where}', env=environ)
    assert good.returncode == 0
    assert json.loads(good.stdout)["schema"] == "gpusnap.snapshot/1"


@pytest.mark.parametrize("command", ["ps --from -", "diff - x.json", "explain --from -"])
def test_a_closed_standard_input_is_one_line_and_2(command: str) -> None:
    done = _shell(f"g {command} <&-")
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert line.endswith(b"standard input: bad file descriptor")


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What a driver library writes to standard error must not land in the recording."""
    file = tmp_path / "r.jsonl"
    (tmp_path / "pynvml.py").write_text("import os\nos.write(2, b'noise')\nraise ImportError('none')\n")
    done = _shell(
        f"g record {file} --every 1ms --count 2 <&- >&- 2>&-",
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )
    assert done.returncode == 0
    assert b"noise" not in file.read_bytes()
    sample, _ = file.read_bytes().splitlines()
    assert json.loads(sample)["recording"]["sequence"] == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_takes_a_part_is_not_success(tmp_path: Path, unbuffered: str) -> None:
    """Python's unbuffered stream drops the rest in silence: a cut document and exit code 0."""
    environ = MANY.environment(tmp_path) | {"PYTHONUNBUFFERED": unbuffered}
    done = _shell(f"ulimit -f 20; g snap > {tmp_path}/cut.json", env=environ)
    assert done.returncode == 3
    assert done.stderr == b"gpusnap snap: standard output: File too large\n"


@pytest.mark.parametrize("words", [("snap",), ("record", "-")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_was_made_non_blocking_gets_all(
    tmp_path: Path, words: tuple[str, ...], unbuffered: str
) -> None:
    environ = surroundings(MANY.environment(tmp_path) | {"PYTHONUNBUFFERED": unbuffered})
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    command = [sys.executable, "-m", "gpusnap", *words]
    with subprocess.Popen(command, env=environ, stdout=writer, stderr=subprocess.PIPE) as child:
        os.close(writer)
        data = b"".join(_slowly(reader))
        assert child.wait(30) == 0
    assert len(json.loads(data)["processes"]) == 180
    assert len(data) > 1 << 16


def _slowly(reader: int) -> Iterator[bytes]:
    time.sleep(0.5)  # the pipe is full by then
    with open(reader, "rb", closefd=True) as stream:
        while part := stream.read1(1 << 14):
            yield part


def test_what_others_name_drives_no_terminal(tmp_path: Path) -> None:
    """File names and words stand in messages."""
    folder = f"{tmp_path}/\x1b[31m\udcff"
    done = run_gpusnap("snap", "-o", f"{folder}/a.json")
    assert done.returncode == 3
    assert b"/\\x1b[31m\\udcff/a.json: No such file or directory\n" in done.stderr
    for words in (("record", f"{folder}/r"), ("ps", "--from", folder), ("\x1b[31m",), ("ps", "--\x1b[31m")):
        assert b"\x1b" not in run_gpusnap(*words).stderr


def test_help_lasts_where_a_reader_leaves() -> None:
    done = _shell("g explain --help | head -n 1")
    assert done.stdout == b"Usage: gpusnap explain [OPTIONS] [WHAT]\n"
    assert done.stderr == b""
