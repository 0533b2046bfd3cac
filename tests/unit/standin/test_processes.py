"""The stand-in's process lists, samples and partitions, read through nvidia-ml-py (13.615)."""

from __future__ import annotations

import time
from pathlib import Path

from tests.standin import Card, Partition, Proc, Sample, Scenario
from tests.standin.ask import ask, ask_machine

GIB = 1 << 30


def test_the_three_lists(tmp_path: Path) -> None:
    card = Card(
        processes=[
            Proc(100, 5 * GIB),
            Proc(101, None),
            Proc(102, 64 << 20, "graphics"),
            Proc(100, 5 * GIB, "graphics"),
            Proc(103, 27 << 20, "mps", 1, 0),
        ]
    )
    compute, graphics, mps, second, details = ask_machine(
        tmp_path,
        Scenario([card, Card()]),
        "nvmlDeviceGetComputeRunningProcesses(h(0))",
        "nvmlDeviceGetGraphicsRunningProcesses_v2(h(0))",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3(h(0))",
        "nvmlDeviceGetComputeRunningProcesses_v3(h(1))",
        "nvmlDeviceGetRunningProcessDetailList(h(0), nvmlProcessDetailList_v1, NVML_PROCESS_MODE_MPS)",
    )
    nowhere = {"gpuInstanceId": 0xFFFFFFFF, "computeInstanceId": 0xFFFFFFFF}
    assert compute == [
        {"pid": 100, "usedGpuMemory": 5 * GIB} | nowhere,
        {"pid": 101, "usedGpuMemory": None} | nowhere,
    ]
    assert [(row["pid"], row["usedGpuMemory"]) for row in graphics] == [(102, 64 << 20), (100, 5 * GIB)]
    assert mps == [{"pid": 103, "usedGpuMemory": 27 << 20, "gpuInstanceId": 1, "computeInstanceId": 0}]
    assert second == []
    assert [(row["pid"], row["usedGpuMemory"]) for row in details] == [(103, 27 << 20)]


def test_driver_535_scrambles_every_row_but_the_first(tmp_path: Path) -> None:
    card = Card(processes=[Proc(4711, 3 * GIB), Proc(4712, 2 * GIB), Proc(4713, GIB)])
    (rows,) = ask_machine(
        tmp_path, Scenario([card], process_layout="535"), "nvmlDeviceGetComputeRunningProcesses_v3(h(0))"
    )
    # 32-byte records read with a stride of 24: the second row begins in the first record's last field, so that
    # its pid is 0 and its bytes are the second record's pid (pynvml#50: "swapped").
    assert (rows[0]["pid"], rows[0]["usedGpuMemory"]) == (4711, 3 * GIB)
    assert (rows[1]["pid"], rows[1]["usedGpuMemory"] & 0xFFFFFFFF) == (0, 4712)
    assert rows[2]["pid"] == 0xFFFFFFFF  # the second record's gpuInstanceId


def test_process_samples_by_age(tmp_path: Path) -> None:
    card = Card()
    card.samples = [
        Sample(100, sm=80, memory=40, encoder=1, decoder=2, jpg=3, ofa=4, time_us=5_000_000),
        Sample(101, sm=5, time_us=1_000_000),
        Sample(102, sm=9, age=0.5),
    ]
    now = time.time_ns() // 1000
    every, late, newer, none = ask_machine(
        tmp_path,
        Scenario([card, Card()]),
        "nvmlDeviceGetProcessUtilization(h(0), 0)",
        "nvmlDeviceGetProcessUtilization(h(0), 1000000)",
        "nvmlDeviceGetProcessesUtilizationInfo(h(0), 4999999)",
        "nvmlDeviceGetProcessUtilization(h(1), 0)",
    )
    assert [row["pid"] for row in every] == [100, 101, 102]
    assert every[0] == {
        "pid": 100,
        "timeStamp": 5_000_000,
        "smUtil": 80,
        "memUtil": 40,
        "encUtil": 1,
        "decUtil": 2,
    }
    assert abs(every[2]["timeStamp"] - (now - 500_000)) < 60_000_000
    assert [row["pid"] for row in late] == [100, 102]
    assert (newer[0]["jpgUtil"], newer[0]["ofaUtil"], len(newer)) == (3, 4, 2)
    assert none == {"error": 6}


def test_partitions(tmp_path: Path) -> None:
    first = Partition(uuid="MIG-one", gpu_instance=7, used=3 * GIB, processes=[Proc(100, 3 * GIB)])
    second = Partition(uuid="MIG-two", gpu_instance=9, compute_instance=1, total=20 * GIB, compute_slices=2)
    machine = Scenario([Card(), Card(partitions={0: first, 1: second})])
    found = ask_machine(
        tmp_path,
        machine,
        "nvmlDeviceGetMaxMigDeviceCount(h(0))",
        "nvmlDeviceGetMigMode(h(1))",
        "nvmlDeviceGetMaxMigDeviceCount(h(1))",
        "nvmlDeviceGetUUID(p(1, 1))",
        "nvmlDeviceGetGpuInstanceId(p(1, 1))",
        "nvmlDeviceGetComputeInstanceId(p(1, 1))",
        "nvmlDeviceIsMigDeviceHandle(p(1, 0))",
        "nvmlDeviceIsMigDeviceHandle(h(1))",
        "nvmlDeviceGetIndex(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(p(1, 0)))",
        "nvmlDeviceGetMemoryInfo(p(1, 0), version=nvmlMemory_v2).used",
        "nvmlDeviceGetAttributes_v2(p(1, 1))",
        "p(1, 2)",
        "nvmlDeviceGetUtilizationRates(p(1, 0))",
        "nvmlDeviceGetUtilizationRates(h(1))",
        "nvmlDeviceGetProcessUtilization(p(1, 0), 0)",
        "nvmlDeviceGetComputeRunningProcesses_v3(p(1, 0))",
        "nvmlDeviceGetComputeRunningProcesses_v3(p(1, 1))",
        "nvmlDeviceGetComputeRunningProcesses_v3(h(1))",
    )
    row = {"pid": 100, "usedGpuMemory": 3 * GIB, "gpuInstanceId": 7, "computeInstanceId": 0}
    assert found[:10] == [0, [1, 1], 7, "MIG-two", 9, 1, 1, 0, 1, 3 * GIB]
    assert (found[10]["computeInstanceSliceCount"], found[10]["memorySizeMB"]) == (2, 20 << 10)
    assert found[11:15] == [{"error": 6}, {"error": 3}, {"error": 3}, {"error": 3}]
    assert found[15:] == [[row], [], [row]]


def test_calls_are_counted_by_card(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    part = Partition(uuid="MIG-one", gpu_instance=1)
    machine = Scenario([Card(), Card(partitions={0: part})]).environment(tmp_path, calls=calls)
    ask(machine, ["nvmlDeviceGetName(h(0))", "nvmlDeviceGetName(h(0))", "nvmlDeviceGetName(p(1, 0))"])
    lines = calls.read_text().splitlines()
    assert lines.count("nvmlInit -") == 1
    assert lines.count("nvmlDeviceGetName 0") == 2
    assert lines.count("nvmlDeviceGetName 1/0") == 1
