"""NVML's lists of any length, and what is asked once for a run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.cli.recorder import record, samples
from tests.contract import check_contract
from tests.standin import Card, Partition, Proc, Scenario
from tests.standin.snaps import snaps

MIB = 1 << 20
MIG = Path(__file__).parents[2] / "machines/nvidia-a100-mig"


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


def test_rows_of_the_one_list_that_answers_make_the_list_partial(tmp_path: Path) -> None:
    """A list is not called unavailable beside rows of it, which the account would leave out."""
    rows = [Proc(4_000_001, 3 * MIB, kind="mps")]
    card = Card(used=10 * MIB, processes=rows)
    for name in ("Compute", "Graphics"):
        card.fail(f"nvmlDeviceGet{name}RunningProcesses_v3", 999)
    (document,) = snaps(tmp_path, [Scenario([card])])
    check_contract(document)
    (row,) = document["adapters"]
    assert [(found["pid"], found["vram_bytes"]) for found in document["processes"]] == [(4_000_001, 3 * MIB)]
    assert (row["processes_listed"], row["accounting"]["attributed_bytes"]) == ("partial", 3 * MIB)


def test_rows_that_the_cards_list_has_of_a_partition_make_its_own_failed_list_partial(tmp_path: Path) -> None:
    part = Partition(uuid="MIG-one", gpu_instance=7, used=5 * MIB)
    for name in ("Compute", "Graphics", "MPSCompute"):
        part.fail(f"nvmlDeviceGet{name}RunningProcesses_v3", 4)
    rows = [Proc(4_000_001, 3 * MIB, gpu_instance=7, compute_instance=0)]
    (document,) = snaps(tmp_path, [Scenario([Card(partitions={0: part}, processes=rows)])])
    check_contract(document)
    _, row = document["adapters"]
    assert [(found["adapter"], found["vram_bytes"]) for found in document["processes"]] == [("MIG-one", 3 * MIB)]
    assert (row["processes_listed"], row["accounting"]["unattributed_bytes"]) == ("partial", 2 * MIB)


@pytest.mark.parametrize("count", [-1, 2**31, 2**32 - 1])
def test_a_number_of_cards_or_partitions_that_cannot_be_is_not_counted_up_to(tmp_path: Path, count: int) -> None:
    answers = json.loads((MIG / "nvml.json").read_bytes())
    shutil.copytree(MIG, tmp_path / "machine")
    for call, cards in (("nvmlDeviceGetMaxMigDeviceCount 0", 1), ("nvmlDeviceGetCount", 0)):
        answers["calls"][call] = count
        (tmp_path / "machine/nvml.json").write_text(json.dumps(answers))
        document = json.loads(dumps(collect(CapturedHost(tmp_path / "machine"), CollectOptions(timeout=5))))
        check_contract(document)
        row = next(row for row in document["backends"] if row["name"] == "nvml")
        assert row["status"] == ("ok" if cards else "failed")
        assert len([found for found in document["adapters"] if found["uuid"] is not None]) >= cards
