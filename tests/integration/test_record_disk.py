"""A disk that is full, then has space again; one that turns read-only; a lock that is never let go."""

from __future__ import annotations

import fcntl
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.recorder import REPLAY, end, record, samples, start, wait_for_samples
from tests.integration.small_disk import remount, small_disk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def fill(place: Path, leave: int) -> Path:
    """Ballast that leaves so many bytes."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as growing:
        while True:
            try:
                growing.write(bytes(4096))
            except OSError:
                break
    with ballast.open("rb+") as shrinking:
        shrinking.truncate(ballast.stat().st_size - leave)
    return ballast


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_disk_that_fills_up_ends_in_a_whole_line_and_goes_on_with_space(tmp_path: Path, kind: str) -> None:
    with small_disk(kind, tmp_path) as place:
        ballast = fill(place, 100_000)
        path = place / "a.jsonl"
        done = record(str(path), *REPLAY, "--every", "1s")
        assert done.returncode == 3
        assert done.stderr == f"gpusnap record: {path}: No space left on device\n"
        kept = samples(path)
        assert len(kept) >= 3  # 12 kB each
        before = path.read_bytes()
        again = record(str(path), *REPLAY)
        assert (again.returncode, path.read_bytes()) == (3, before)
        ballast.unlink()
        done = record(str(path), *REPLAY)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(samples(path)) == len(kept) + 1


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_recorder_that_is_told_to_be_patient_goes_on_by_itself(tmp_path: Path, kind: str) -> None:
    with small_disk(kind, tmp_path) as place:
        ballast = fill(place, 20_000)
        path = place / "a.jsonl"
        process = start(str(path), "--every", "10ms", "--max-failures", "1000000")
        assert process.stderr is not None
        assert process.stderr.readline() == f"gpusnap record: {path}: No space left on device\n"
        kept = len(samples(path))
        ballast.unlink()
        wait_for_samples(path, kept + 3)
        code, _, err = end(process)
        assert code == 0
        assert re.fullmatch(r"gpusnap record: recording again, \d+ samples? lost\n", err)
        numbers = [doc["recording"]["sequence"] for doc in samples(path)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert samples(path)[kept]["recording"]["missed_ticks"] >= 1


def test_a_torn_tail_on_a_full_disk_stays_as_it_was(tmp_path: Path) -> None:
    with small_disk("tmpfs", tmp_path) as place:
        path = place / "a.jsonl"
        path.write_bytes(b'{"schema":"gpusnap.snapshot/1","ver')
        fill(place, 0)
        assert record(str(path), *REPLAY).returncode == 3
        assert path.read_bytes() == b'{"schema":"gpusnap.snapshot/1","ver'


def test_a_file_system_that_turns_read_only_is_one_line_and_3(tmp_path: Path) -> None:
    with small_disk("tmpfs", tmp_path) as place:
        path = place / "a.jsonl"
        process = start(str(path), "--every", "200ms", "--max-failures", "2")
        wait_for_samples(path, 2)
        for _ in range(100):
            try:
                remount(place, "ro")
                break
            except subprocess.CalledProcessError:  # a sample was being written
                time.sleep(0.02)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 3
        assert err == f"gpusnap record: {path}: Read-only file system\n"
        assert len(samples(path)) >= 2


def test_a_lock_that_is_never_let_go_ends_a_one_shot_with_3_after_ten_seconds(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert record(str(path), *REPLAY).returncode == 0
    before = path.read_bytes()
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        done = record(str(path), *REPLAY)
        assert 9 < time.monotonic() - began < 30
    assert done.returncode == 3
    assert done.stderr == f"gpusnap record: {path}: locked by another program for 10 s\n"
    assert path.read_bytes() == before
