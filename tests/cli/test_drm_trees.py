"""Kept machines laid out as real files, read by `gpusnap snap --procfs --sysfs` as a container reads its host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedHost
from tests.surroundings import surroundings

ROOT = Path(__file__).parents[2]
MACHINES = ROOT / "tests" / "machines"
LEAVES = ("vram_bytes", "spill_bytes", "vram_shared_bytes", "shared_with")


def lay_out(machine: Path, folder: Path) -> None:
    """Every entry as a file, a link or a folder of its own; those that deny access are not for root to make."""
    for path, entry in CapturedHost(machine).entries.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.target is not None:
            place.symlink_to(entry.target)
        elif entry.data is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(entry.data)
    (folder / "proc" / "uptime").write_text("86400.00 86400.00\n")


def snap(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "gpusnap", "snap", "--no-models"]
    command += ["--procfs", str(folder / "proc"), "--sysfs", str(folder / "sys")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=surroundings())
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    "name", ["rx7900-desktop-6.14", "hybrid-amd-sleeping-6.8", "strixhalo-96g-6.18", "rpi5-v3d-6.12", "fiji-5.8"]
)
def test_a_machine_of_real_files_gives_the_same_figures(name: str, tmp_path: Path) -> None:
    lay_out(MACHINES / name, tmp_path)
    document = snap(tmp_path)
    expected = json.loads((MACHINES / name / "expected.json").read_bytes())
    adapters = {row["id"]: row for row in document["adapters"]}
    for row in expected["adapters"]:
        for leaf, value in row["memory"].items():
            assert adapters[row["id"]]["memory"][leaf] == value, leaf
        assert adapters[row["id"]]["kind"] == row.get("kind", adapters[row["id"]]["kind"])
    rows = {(row["adapter"], row["pid"]): row for row in document["processes"]}
    assert rows.keys() == {(row["adapter"], row["pid"]) for row in expected["processes"]}
    for row in expected["processes"]:
        found = rows[row["adapter"], row["pid"]]
        assert {leaf: found[leaf] for leaf in LEAVES if leaf in row} == {
            leaf: row[leaf] for leaf in LEAVES if leaf in row
        }
