"""Runs `gpusnap record` as a real process and reads back what it wrote."""

from __future__ import annotations

import atexit
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
DESKTOP = ROOT / "examples" / "machines" / "rtx4080-desktop"
REPLAY = ("--replay", str(DESKTOP))
_started: list[subprocess.Popen[str]] = []
GPUSNAP = (sys.executable, "-m", "gpusnap")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return surroundings(more)


def record(
    *words: str, more: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GPUSNAP, "record", *words],
        env=environment(more),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def start(*words: str, more: Mapping[str, str] | None = None, **streams: Any) -> subprocess.Popen[str]:
    """In a session of its own, so that no terminal's keys are guessed behind a signal."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    process = subprocess.Popen(
        [*GPUSNAP, "record", *words], env=environment(more), text=True, start_new_session=True, **streams
    )
    _started.append(process)
    return process


@atexit.register
def kill_what_is_left() -> None:
    """No recorder outlives the tests, however they end."""
    while _started:
        process = _started.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


def samples(path: Path) -> list[dict[str, Any]]:
    """Every line must be whole: a torn or merged one fails here."""
    raw = path.read_bytes()
    assert raw.endswith(b"\n")
    found = [json.loads(line) for line in raw.splitlines()]
    assert all(doc["schema"] == "gpusnap.snapshot/1" for doc in found)
    return found


def wait_for_samples(path: Path, count: int, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never held {count} samples")


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out or "", err or ""
