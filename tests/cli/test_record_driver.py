"""A driver that fails, hangs or is replaced under a recorder: each sample says so, and the record goes on."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recorder import end, record, samples, start, wait_for_samples
from tests.standin import Card, Proc, Scenario

GIB = 1 << 30


def nvml(doc: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in doc["backends"] if row["name"] == "nvml")
    return row


@pytest.mark.parametrize("code", [9, 18, 999], ids=["not-loaded", "mismatch", "unknown"])
def test_a_one_shot_whose_backend_fails_writes_its_line_and_exits_3(tmp_path: Path, code: int) -> None:
    machine = Scenario([Card()])
    machine.fail("nvmlInit", code)
    path = tmp_path / "a.jsonl"
    done = record(str(path), more=machine.environment(tmp_path))
    assert done.returncode == 3
    assert done.stderr.startswith("gpusnap: nothing could be measured: nvml: NVML_ERROR_")
    assert done.stderr.count("\n") == 1
    (doc,) = samples(path)
    assert nvml(doc)["status"] == "failed"
    assert (doc["adapters"], doc["processes"]) == ([], None)


def test_a_series_with_one_good_sample_is_a_success(tmp_path: Path) -> None:
    machine = Scenario([Card()])
    machine.fail("nvmlInit", 999, times=1)
    path = tmp_path / "a.jsonl"
    done = record(str(path), "--every", "30ms", "--count", "2", more=machine.environment(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert [nvml(doc)["status"] for doc in samples(path)] == ["failed", "ok"]


def mapped_libraries(pid: int) -> list[tuple[int, bool]]:
    """(inode, deleted) of each NVML library that the process has mapped."""
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "libnvidia-ml.so" in line:
            found.add((int(line.split()[4]), line.endswith("(deleted)")))
    return sorted(found)


def test_report_104_a_driver_replaced_mid_run_is_error_lines_then_figures_of_the_new_one(tmp_path: Path) -> None:
    """An unattended upgrade: the library file is replaced, the old one mismatches, the module is loaded anew."""
    machine = Scenario([Card(used=GIB)], driver="460.56")
    more = machine.environment(tmp_path)
    folder = tmp_path / "lib"
    shutil.copytree(more["LD_LIBRARY_PATH"].split(os.pathsep)[0], folder)
    more["LD_LIBRARY_PATH"] = str(folder)
    library = folder / "libnvidia-ml.so.1"
    path = tmp_path / "a.jsonl"
    process = start(str(path), "--every", "30ms", more=more)
    wait_for_samples(path, 2)
    old = mapped_libraries(process.pid)
    assert old == [(library.stat().st_ino, False)]

    shutil.copy(library, folder / "new")
    (folder / "new").replace(library)
    broken = Scenario([Card(used=GIB)], driver="460.56")
    broken.fail("nvmlDeviceGetCount_v2", 999)
    broken.fail("nvmlInit", 18)
    scenario = Path(more["GPUSNAP_TEST_NVML"])
    broken.write(scenario)
    wait_for_samples(path, len(samples(path)) + 4)
    Scenario([Card(used=2 * GIB)], driver="470.57.02").write(scenario)
    wait_for_samples(path, len(samples(path)) + 4)
    assert mapped_libraries(process.pid) == [(library.stat().st_ino, False)]
    code, _, err = end(process)
    assert (code, err) == (0, "")

    docs = samples(path)
    told = [(nvml(doc)["status"], nvml(doc)["driver_version"]) for doc in docs]
    assert [doc["recording"]["sequence"] for doc in docs] == list(range(1, len(docs) + 1))
    phases = [one for number, one in enumerate(told) if number == 0 or told[number - 1] != one]
    assert phases[0] == ("ok", "460.56")
    assert phases[-1] == ("ok", "470.57.02")
    assert {status for status, _ in phases[1:-1]} == {"failed"}
    assert any("LIB_RM_VERSION_MISMATCH" in (nvml(doc)["detail"] or "") for doc in docs)
    for doc in docs:
        used = [card["memory"]["used_bytes"] for card in doc["adapters"]]
        assert used == {"460.56": [GIB], "470.57.02": [2 * GIB]}.get(nvml(doc)["driver_version"] or "", []) or (
            nvml(doc)["status"] == "failed" and used == []
        )
        assert doc["processes"] is None if nvml(doc)["status"] == "failed" else doc["processes"] == []


def test_report_050_a_driver_that_hangs_costs_a_sample_its_figures_and_the_process_still_leaves(
    tmp_path: Path,
) -> None:
    machine = Scenario([Card(used=GIB)])
    more = machine.environment(tmp_path)
    path = tmp_path / "a.jsonl"
    process = start(str(path), "--every", "50ms", "--timeout", "200ms", more=more)
    wait_for_samples(path, 2)
    sick = Scenario([Card(used=GIB)])
    sick.cards[0].slow("nvmlDeviceGetMemoryInfo_v2", -1)
    sick.write(Path(more["GPUSNAP_TEST_NVML"]))
    until = time.monotonic() + 20
    while time.monotonic() < until and nvml(samples(path)[-1])["status"] != "timeout":
        time.sleep(0.02)
    wait_for_samples(path, len(samples(path)) + 2)
    code, _, err = end(process)
    assert (code, err) == (0, "")
    docs = samples(path)
    assert nvml(docs[0])["status"] == "ok"
    assert nvml(docs[-1])["status"] == "timeout"
    assert docs[-1]["processes"] is None
    # The first that waited took 200 ms: ticks of 50 ms passed meanwhile and are counted.
    assert sum(doc["recording"]["missed_ticks"] for doc in docs) >= 3


def test_report_095_a_figure_that_fails_costs_only_itself_in_every_sample(tmp_path: Path) -> None:
    good, bad = Card(used=GIB), Card(used=2 * GIB)
    bad.fail("nvmlDeviceGetPowerUsage", 3)
    path = tmp_path / "a.jsonl"
    more = Scenario([bad, good]).environment(tmp_path)
    assert record(str(path), "--every", "20ms", "--count", "2", more=more).returncode == 0
    for doc in samples(path):
        assert [card["power"]["draw_watts"] for card in doc["adapters"]] == [None, 71.25]
        assert [card["memory"]["used_bytes"] for card in doc["adapters"]] == [2 * GIB, GIB]
        source = doc["provenance"][doc["adapters"][0]["provenance"]]["power.draw_watts"]
        assert source.startswith("null:not-supported")


def test_report_049_every_card_and_every_process_is_recorded_by_default(tmp_path: Path) -> None:
    """An inference server that has nothing to do with whoever records."""
    machine = Scenario([Card(processes=[Proc(os.getpid(), GIB)]), Card(processes=[Proc(1, 2 * GIB)])])
    path = tmp_path / "a.jsonl"
    assert record(str(path), more=machine.environment(tmp_path)).returncode == 0
    (doc,) = samples(path)
    assert [(row["adapter"][:12], row["pid"], row["vram_bytes"]) for row in doc["processes"]] == [
        ("GPU-00000000", os.getpid(), GIB),
        ("GPU-00000001", 1, 2 * GIB),
    ]


def test_report_067_compute_and_graphics_processes_are_in_each_sample(tmp_path: Path) -> None:
    rows = [Proc(os.getpid(), GIB), Proc(1, GIB, kind="graphics")]
    path = tmp_path / "a.jsonl"
    more = Scenario([Card(processes=rows)]).environment(tmp_path)
    assert record(str(path), "--every", "20ms", "--count", "2", more=more).returncode == 0
    for doc in samples(path):
        assert {row["pid"]: row["type"] for row in doc["processes"]} == {os.getpid(): "compute", 1: "graphics"}


def test_report_029_a_series_for_each_pid_is_one_line_of_python(tmp_path: Path) -> None:
    """The file is plain JSON Lines: no header, no frames, one object a sample."""
    machine = Scenario([Card(processes=[Proc(os.getpid(), GIB)])])
    more = machine.environment(tmp_path)
    path = tmp_path / "a.jsonl"
    for size in (1, 2, 3):
        Scenario([Card(processes=[Proc(os.getpid(), size * GIB)])]).write(Path(more["GPUSNAP_TEST_NVML"]))
        assert record(str(path), more=more).returncode == 0
    docs = samples(path)
    series = [(doc["taken_at"], row["vram_bytes"]) for doc in docs for row in doc["processes"]]
    assert [used for _, used in series] == [GIB, 2 * GIB, 3 * GIB]
    assert [moment for moment, _ in series] == sorted(moment for moment, _ in series)


def test_report_064_an_idle_holder_has_a_measured_0_in_every_sample(tmp_path: Path) -> None:
    """What `explain` needs to say "held 12 GiB for 24 h, never busy": zeros that were measured, not nulls."""
    machine = Scenario([Card(processes=[Proc(os.getpid(), 12 * GIB)], figures={"utilization.gpu": 0})])
    path = tmp_path / "a.jsonl"
    more = machine.environment(tmp_path)
    assert record(str(path), "--every", "20ms", "--count", "3", more=more).returncode == 0
    for doc in samples(path):
        assert doc["adapters"][0]["load"]["gpu_percent"] == 0
        assert doc["processes"][0]["vram_bytes"] == 12 * GIB
