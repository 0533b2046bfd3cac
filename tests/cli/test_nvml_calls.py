"""How often gpusnap asks the driver, counted by the stand-in library, and what it does when no answer comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.contract import check_contract
from tests.standin import FOREVER, Card, Proc, Scenario
from tests.surroundings import surroundings


def gpusnap(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpusnap", *argv],
        env=surroundings(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def two_cards() -> Scenario:
    return Scenario([Card(processes=[Proc(os.getpid(), 1 << 30)]), Card()])


def count(calls: Path, function: str) -> int:
    return [line.partition(" ")[0] for line in calls.read_text().splitlines()].count(function)


def test_one_snapshot_asks_each_question_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    done = gpusnap(two_cards().environment(tmp_path, calls=calls), "snap")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in calls.read_text().splitlines() if line.endswith(" 1")]
    # Its arguments are not in the log: clocks, error counters and page causes are several questions each. The size
    # of a list is asked for before the list, by the binding.
    several = {
        "nvmlDeviceGetClockInfo 1": 2,
        "nvmlDeviceGetTotalEccErrors 1": 4,
        "nvmlDeviceGetRetiredPages 1": 2,
    }
    assert not {line: lines.count(line) for line in lines if lines.count(line) > several.get(line, 1)}
    # gpustat asks 19 a card, nvitop 30, nvtop 57, with less to show for it.
    assert len(lines) <= 40


def test_a_snapshot_without_a_window_does_not_wait_for_byte_counters(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    environment = two_cards().environment(tmp_path, calls=calls)
    gpusnap(environment, "snap")
    assert count(calls, "nvmlDeviceGetPcieThroughput") == 0
    done = gpusnap(environment, "snap", "--window", "50ms")
    assert count(calls, "nvmlDeviceGetPcieThroughput") == 4
    card: dict[str, Any] = json.loads(done.stdout)["adapters"][0]
    assert (card["pcie"]["tx_bytes_per_second"], card["pcie"]["rx_bytes_per_second"]) == (1_500_000, 250_000)


def test_a_recording_opens_the_driver_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    recording = tmp_path / "rec.jsonl"
    environment = two_cards().environment(tmp_path, calls=calls)
    done = gpusnap(environment, "record", str(recording), "--every", "50ms", "--count", "4")
    assert done.returncode == 0, done.stderr
    assert len(recording.read_text().splitlines()) == 4
    assert count(calls, "nvmlInit") == 1
    assert count(calls, "nvmlDeviceGetHandleByIndex_v2") == 2
    assert count(calls, "nvmlDeviceGetName") == 2
    assert count(calls, "nvmlDeviceGetMemoryInfo_v2") == 8


def test_a_call_that_hangs_costs_the_backend_not_the_run(tmp_path: Path) -> None:
    machine = two_cards()
    machine.cards[1].slow("nvmlDeviceGetPowerUsage", FOREVER)
    began = time.monotonic()
    done = gpusnap(machine.environment(tmp_path), "snap", "--timeout", "500ms")
    assert 0.5 <= time.monotonic() - began < 10
    document = json.loads(done.stdout)
    check_contract(document)
    row = next(row for row in document["backends"] if row["name"] == "nvml")
    assert row["status"] == "timeout"
    assert document["processes"] is None
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1


def test_a_slow_driver_is_waited_for(tmp_path: Path) -> None:
    machine = two_cards()
    machine.cards[0].slow("nvmlDeviceGetPowerUsage", 300)
    done = gpusnap(machine.environment(tmp_path), "snap")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["adapters"][0]["power"]["draw_watts"] == 71.25
