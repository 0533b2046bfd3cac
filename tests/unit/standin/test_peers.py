"""A second opinion that the stand-in is an NVML: gpustat 1.1.1 and nvitop 1.7.2 run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sleeping import sleeping
from tests.standin import Card, Proc, Sample, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 30
BIN = Path(sys.executable).parent


def run_peer(environment: dict[str, str], *argv: str) -> str:
    return subprocess.run(
        [str(BIN / argv[0]), *argv[1:]],
        env=os.environ | environment | {"LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def pids() -> Iterator[list[int]]:
    with sleeping(2) as started:
        yield started


@pytest.fixture
def peers_machine(pids: list[int], tmp_path: Path) -> dict[str, str]:
    known, unknown = pids
    card = Card(
        used=12 * GIB,
        processes=[Proc(known, 8 * GIB), Proc(unknown, None)],
        figures={"utilization.gpu": 42, "temperature.0": 45, "power.usage": 300_000, "fan.0": 30},
    )
    card.samples = [Sample(known, sm=37, memory=12)]
    return Scenario([card, Card()]).environment(tmp_path)


def test_gpustat_runs_on_it(pids: list[int], peers_machine: dict[str, str]) -> None:
    found = json.loads(run_peer(peers_machine, "gpustat", "--json"))
    assert found["driver_version"] == "575.57.08"
    first, second = found["gpus"]
    shown = ("utilization.gpu", "temperature.gpu", "power.draw", "enforced.power.limit", "fan.speed")
    assert [first[key] for key in shown] == [42, 45, 300, 700, 30]
    assert (first["memory.used"], first["memory.total"]) == (12 << 10, 81559)
    assert [(row["pid"], row["gpu_memory_usage"]) for row in first["processes"]] == [
        (pids[0], 8 << 10),
        (pids[1], None),
    ]
    assert second["processes"] == []


def test_nvitop_runs_on_it(pids: list[int], peers_machine: dict[str, str]) -> None:
    text = run_peer(peers_machine, "nvitop", "-1")
    assert "Driver Version: 575.57.08" in text
    for shown in ("12288MiB / 79.65GiB", "300W / 700W", "45C", "42%"):
        assert shown in text
    row = next(line for line in text.splitlines() if f" {pids[0]} C" in line)
    assert "8192MiB" in row
    assert row.split()[6:8] == ["37", "12"]
