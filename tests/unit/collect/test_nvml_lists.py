"""NVML's lists of any length, and what is asked once for a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.recorder import record, samples
from tests.standin import Card, Proc, Scenario
from tests.standin.snaps import snaps

MIB = 1 << 20


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 500])
def test_every_process_of_a_list_is_there_with_its_bytes(tmp_path: Path, count: int) -> None:
    rows = [Proc(4_000_000 - number, number * MIB) for number in range(count)]
    (document,) = snaps(tmp_path, [Scenario([Card(processes=rows)])])
    found = {row["pid"]: row["vram_bytes"] for row in document["processes"]}
    assert found == {row.pid: row.bytes for row in rows}


def test_a_list_that_grows_and_shrinks_between_samples_is_followed(tmp_path: Path) -> None:
    machine = Scenario([Card(processes=[Proc(os.getpid(), MIB)])])
    more = machine.environment(tmp_path)
    from tests.cli.recorder import end, start, wait_for_samples

    path = tmp_path / "a.jsonl"
    process = start(str(path), "--every", "20ms", more=more)
    wait_for_samples(path, 2)
    for count in (300, 5, 100):
        rows = [Proc(4_000_000 - number, MIB) for number in range(count)]
        Scenario([Card(processes=rows)]).write(Path(more["GPUSNAP_TEST_NVML"]))
        wait_for_samples(path, len(samples(path)) + 3)
        assert len(samples(path)[-1]["processes"]) == count
    assert end(process)[0] == 0


def test_what_a_card_does_not_have_is_asked_once_in_a_recording_and_its_figures_each_time(tmp_path: Path) -> None:
    card = Card()
    card.drop("power.usage")  # the call answers "not supported"
    calls = tmp_path / "calls"
    more = Scenario([card]).environment(tmp_path, calls=calls)
    assert record(str(tmp_path / "a.jsonl"), "--every", "10ms", "--count", "5", more=more).returncode == 0
    asked = [line.split(" ")[0] for line in calls.read_text().splitlines()]
    assert asked.count("nvmlDeviceGetPowerUsage") == 1
    assert asked.count("nvmlDeviceGetMaxPcieLinkWidth") == 1
    assert asked.count("nvmlDeviceGetMemoryInfo_v2") == 5
    assert asked.count("nvmlInit") + asked.count("nvmlInit_v2") + asked.count("nvmlInitWithFlags") == 1
    for doc in samples(tmp_path / "a.jsonl"):
        assert doc["adapters"][0]["power"]["draw_watts"] is None
        assert doc["adapters"][0]["pcie"]["max_width"] == 16
        sources = doc["provenance"][doc["adapters"][0]["provenance"]]
        assert sources["power.draw_watts"] == "null:not-supported NVML_ERROR_NOT_SUPPORTED"
        assert sources["pcie.max_width"] == "measured:nvml.MaxPcieLinkWidth"
