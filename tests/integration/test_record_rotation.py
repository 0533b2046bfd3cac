"""Debian's own logrotate, run by the shipped example, while a recorder writes."""

from __future__ import annotations

import gzip
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.recorder import ROOT, end, samples, start, wait_for_samples

pytestmark = pytest.mark.integration

EXAMPLE = ROOT / "examples" / "logrotate" / "gpusnap"
ROTATIONS = 3


def config(folder: Path, path: Path) -> Path:
    """The example for this file; rotated each time we ask, so with seconds in the name, and as whoever we are."""
    text = EXAMPLE.read_text().replace("/var/log/gpusnap/*.jsonl", str(path))
    text = text.replace("    dateext\n", "    dateext\n    dateformat -%Y%m%d-%s\n")
    text = text.replace("create 0640 root adm", "create 0640 root root")
    assert "copytruncate\n" not in text
    made = folder / "logrotate.conf"
    made.write_text(text)
    made.chmod(0o644)
    return made


def test_no_sample_is_lost_over_three_rotations(tmp_path: Path) -> None:
    logs = tmp_path / "log"
    logs.mkdir(mode=0o750)
    path = logs / "gpus.jsonl"
    settings = config(tmp_path, path)
    process = start(str(path), "--every", "2ms", "-v")
    wait_for_samples(path, 20)
    for _ in range(ROTATIONS):
        subprocess.run(["logrotate", "--force", "--state", str(tmp_path / "state"), str(settings)], check=True)
        wait_for_samples(path, 20)
        time.sleep(1.1)
    code, _, err = end(process)
    assert code == 0
    acknowledged = err.count(" sequence ")
    rotated = sorted(found for found in logs.iterdir() if found != path)
    # All but the latest are compressed (delaycompress), under names that readers know.
    assert [found.name.endswith(".jsonl.gz") for found in rotated] == [True] * (ROTATIONS - 1) + [False]
    numbers: list[int] = []
    for part in (*rotated, path):
        if part.suffix == ".gz":
            plain = tmp_path / "plain"
            plain.write_bytes(gzip.decompress(part.read_bytes()))
            part = plain
        numbers += [doc["recording"]["sequence"] for doc in samples(part)]
    assert numbers == list(range(1, acknowledged + 1))
