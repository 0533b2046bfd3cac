"""Faults that the stand-in can play: what a test asks for is what nvidia-ml-py sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.standin import BEFORE_R450, BEFORE_R510, BEFORE_R535, FOREVER, UNAVAILABLE, Card, Proc, Scenario
from tests.standin.ask import ask, ask_machine

GIB = 1 << 30


def test_any_call_fails_with_any_code_on_one_card(tmp_path: Path) -> None:
    good, bad = Card(), Card()
    for code, call in enumerate(("Name", "UUID", "PowerUsage", "MemoryInfo_v2"), start=20):
        bad.fail(f"nvmlDeviceGet{call}", code)
    bad.fail("nvmlDeviceGetClockInfo:2", 999)
    calls = (
        "nvmlDeviceGetName(h({}))",
        "nvmlDeviceGetPowerUsage(h({}))",
        "nvmlDeviceGetMemoryInfo(h({}), version=nvmlMemory_v2)",
        "nvmlDeviceGetClockInfo(h({}), 2)",
        "nvmlDeviceGetClockInfo(h({}), 1)",
    )
    found = ask_machine(tmp_path, Scenario([good, bad]), *(call.format(1) for call in calls))
    assert found == [{"error": 20}, {"error": 22}, {"error": 23}, {"error": 999}, 345]
    untouched = ask_machine(tmp_path, Scenario([good, bad]), *(call.format(0) for call in calls))
    assert not [one for one in untouched if isinstance(one, dict) and "error" in one]


def test_a_fault_that_comes_and_goes(tmp_path: Path) -> None:
    card = Card()
    card.fail("nvmlDeviceGetPowerUsage", 7, times=2, after=1)
    found = ask_machine(tmp_path, Scenario([card]), *["nvmlDeviceGetPowerUsage(h(0))"] * 4)
    assert found == [71_250, {"error": 7}, {"error": 7}, 71_250]


def test_a_lost_card_answers_nothing_and_hides_no_other(tmp_path: Path) -> None:
    lost = Card()
    lost.lose()
    found = ask_machine(
        tmp_path, Scenario([lost, Card()]), "nvmlDeviceGetCount()", "h(0)", "nvmlDeviceGetName(h(1))"
    )
    assert found == [2, {"error": 15}, "NVIDIA H100 80GB HBM3"]


@pytest.mark.parametrize("code", [9, 18, 4, 999], ids=["not-loaded", "mismatch", "no-permission", "unknown"])
def test_init_fails(tmp_path: Path, code: int) -> None:
    machine = Scenario([Card()])
    machine.fail("nvmlInit", code)
    assert ask_machine(tmp_path, machine) == [{"error": code}]


def test_calls_before_init_and_after_shutdown_are_refused(tmp_path: Path) -> None:
    found = ask_machine(tmp_path, Scenario([Card()]), "nvmlShutdown()", "nvmlDeviceGetCount()")
    assert found == [None, {"error": 1}]


def test_error_texts_are_those_of_the_binding(tmp_path: Path) -> None:
    found = ask_machine(
        tmp_path,
        Scenario(),
        "{str(k): nvmlErrorString(k) for k in NVMLError._errcode_to_string}",
        "{str(k): v for k, v in NVMLError._errcode_to_string.items()}",
    )
    assert found[0] == found[1]
    assert len(found[0]) > 15


def test_symbols_of_old_drivers(tmp_path: Path) -> None:
    machine = Scenario([Card(used=8 * GIB, processes=[Proc(100, 8 * GIB)])])
    calls = (
        "nvmlDeviceGetComputeRunningProcesses(h(0))",
        "nvmlDeviceGetComputeRunningProcesses_v3(h(0))",
        "[row.pid for row in nvmlDeviceGetComputeRunningProcesses_v2(h(0))]",
        "nvmlDeviceGetMemoryInfo(h(0), version=nvmlMemory_v2)",
        "nvmlDeviceGetMemoryInfo(h(0)).used",
        "nvmlDeviceGetCurrentClocksEventReasons(h(0))",
        "nvmlDeviceGetCurrentClocksThrottleReasons(h(0))",
    )
    absent = {"error": 13}
    # An unversioned call raises a class of its own there, which is no NVMLError.
    mismatch = {"raises": "NVMLLibraryMismatchError"}
    v1_used = 8 * GIB + 540_016_640
    assert ask_machine(tmp_path, machine, *calls, missing=BEFORE_R510) == [
        mismatch, absent, [100], absent, v1_used, absent, 1,
    ]  # fmt: skip
    assert ask_machine(tmp_path, machine, *calls, missing=BEFORE_R450) == [
        mismatch, absent, absent, absent, v1_used, absent, 1,
    ]  # fmt: skip
    newer = ask_machine(tmp_path, machine, *calls, missing=BEFORE_R535)
    assert (newer[0][0]["pid"], newer[3]["used"], newer[5:]) == (100, 8 * GIB, [absent, 1])


def test_sentinels_fill_their_own_width(tmp_path: Path) -> None:
    card = Card(figures={"power.usage": UNAVAILABLE, "energy": UNAVAILABLE, "memory.used": UNAVAILABLE})
    found = ask_machine(
        tmp_path,
        Scenario([card]),
        "nvmlDeviceGetPowerUsage(h(0))",
        "nvmlDeviceGetTotalEnergyConsumption(h(0))",
        "nvmlDeviceGetMemoryInfo(h(0), version=nvmlMemory_v2).used",
    )
    assert found == [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF]


def test_a_name_that_is_not_utf8_raises_no_nvml_error(tmp_path: Path) -> None:
    machine = Scenario([Card(name=b"NVIDIA \xff\xfe"), Card(name="back\\slash  é")])
    found = ask_machine(tmp_path, machine, "nvmlDeviceGetName(h(0))", "nvmlDeviceGetName(h(1))")
    assert found == [{"raises": "UnicodeDecodeError"}, "back\\slash  é"]


def test_what_a_card_lacks_is_not_supported(tmp_path: Path) -> None:
    card = Card()
    card.drop("power.usage", "memory.total")
    found = ask_machine(
        tmp_path,
        Scenario([card]),
        "nvmlDeviceGetPowerUsage(h(0))",
        "nvmlDeviceGetMemoryInfo(h(0), version=nvmlMemory_v2)",
        "nvmlDeviceGetMemoryInfo(h(0))",
        "nvmlDeviceGetFanSpeed(h(0))",
        "nvmlDeviceGetDriverModel(h(0))",
    )
    assert found == [{"error": 3}] * 5


def test_a_slow_call_waits_and_one_that_hangs_never_returns(tmp_path: Path) -> None:
    slow, hung = Card(), Card()
    slow.slow("nvmlDeviceGetPcieThroughput", 80)
    hung.slow("nvmlDeviceGetName", FOREVER)
    clock = "__import__('time').monotonic()"
    machine = Scenario([slow, hung])
    before, _, _, after = ask_machine(
        tmp_path, machine, clock, *(f"nvmlDeviceGetPcieThroughput(h(0), {way})" for way in (0, 1)), clock
    )
    assert after - before >= 0.16
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [
                sys.executable,
                "-c",
                "from pynvml import *; nvmlInit(); nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(1))",
            ],
            env=os.environ | machine.environment(tmp_path),
            timeout=1,
            check=False,
        )


def test_a_running_process_sees_the_machine_change(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    machine = Scenario([Card(used=GIB)]).environment(before)
    changed = Scenario([Card(used=2 * GIB)], driver="580.1").environment(after)["GPUSNAP_TEST_NVML"]
    used = "nvmlDeviceGetMemoryInfo(handle, version=nvmlMemory_v2).used"
    move = f"__import__('os').replace({changed!r}, {machine['GPUSNAP_TEST_NVML']!r})"
    found = ask(machine, ["globals().update(handle=h(0))", used, move, used, "nvmlSystemGetDriverVersion()"])
    assert found == [None, GIB, None, 2 * GIB, "580.1"]
