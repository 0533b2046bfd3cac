"""A recording of any size is explained in bounded memory: ten times the file, hardly more of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.large_recording import write

if TYPE_CHECKING:
    from pathlib import Path

MEASURE = (
    "import resource, subprocess, sys, json; "
    "done = subprocess.run([sys.executable, '-m', 'gpusnap', *sys.argv[1:]], stdout=subprocess.DEVNULL); "
    "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; "
    "print(json.dumps([done.returncode, peak * (1 if sys.platform == 'darwin' else 1024)]))"
)


def peak_bytes(*words: str) -> int:
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, check=True)
    code, peak = json.loads(done.stdout)
    assert code == 0
    return int(peak)


@pytest.mark.skipif(sys.platform == "win32", reason="getrusage is Unix'")
@pytest.mark.parametrize("form", ["text", "html", "openmetrics"])
def test_ten_times_the_recording_takes_at_most_half_more_memory(tmp_path: Path, form: str) -> None:
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    write(small, 3)
    assert write(large, 30) > 3000
    before = peak_bytes("explain", str(small), "--format", form)
    after = peak_bytes("explain", str(large), "--format", form)
    assert after <= 1.5 * before
    assert after <= 150e6
