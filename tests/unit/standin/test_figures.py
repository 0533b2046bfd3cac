"""Every figure that the stand-in NVML gives, read through nvidia-ml-py (13.615)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.standin import UNAVAILABLE, Card, Retired, Scenario
from tests.standin.ask import ask_machine

GIB = 1 << 30


# Every figure has a value of its own, so that no key can stand in for another.
FIGURES: dict[str, tuple[str, str | int | bytes]] = {
    "nvmlDeviceGetBrand(h(0))": ("brand", 5),
    "nvmlDeviceGetSerial(h(0))": ("serial", "0325017"),
    "nvmlDeviceGetMinorNumber(h(0))": ("minor", 6),
    "nvmlDeviceGetBoardId(h(0))": ("board_id", 0x4100),
    "nvmlDeviceGetPersistenceMode(h(0))": ("persistence", 1),
    "nvmlDeviceGetComputeMode(h(0))": ("compute_mode", 3),
    "nvmlDeviceGetPerformanceState(h(0))": ("pstate", 8),
    "nvmlDeviceGetArchitecture(h(0))": ("architecture", 7),
    "nvmlDeviceGetTemperature(h(0), NVML_TEMPERATURE_GPU)": ("temperature.0", 61),
    "nvmlDeviceGetTemperatureThreshold(h(0), NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)": ("threshold.1", 91),
    "nvmlDeviceGetFanSpeed(h(0))": ("fan.0", 34),
    "nvmlDeviceGetFanSpeed_v2(h(0), 1)": ("fan.1", 35),
    "nvmlDeviceGetPowerUsage(h(0))": ("power.usage", 287_654),
    "nvmlDeviceGetEnforcedPowerLimit(h(0))": ("power.enforced_limit", 350_000),
    "nvmlDeviceGetPowerManagementLimit(h(0))": ("power.limit", 360_000),
    "nvmlDeviceGetTotalEnergyConsumption(h(0))": ("energy", 98_765_432_109_876),
    "nvmlDeviceGetClockInfo(h(0), NVML_CLOCK_GRAPHICS)": ("clock.0", 1410),
    "nvmlDeviceGetClockInfo(h(0), NVML_CLOCK_SM)": ("clock.1", 1411),
    "nvmlDeviceGetClockInfo(h(0), NVML_CLOCK_MEM)": ("clock.2", 9501),
    "nvmlDeviceGetClockInfo(h(0), NVML_CLOCK_VIDEO)": ("clock.3", 1275),
    "nvmlDeviceGetMaxClockInfo(h(0), NVML_CLOCK_GRAPHICS)": ("max_clock.0", 2100),
    "nvmlDeviceGetCurrentClocksThrottleReasons(h(0))": ("clocks.reasons", 0x44),
    "nvmlDeviceGetCurrPcieLinkGeneration(h(0))": ("pcie.generation", 3),
    "nvmlDeviceGetMaxPcieLinkGeneration(h(0))": ("pcie.max_generation", 4),
    "nvmlDeviceGetCurrPcieLinkWidth(h(0))": ("pcie.width", 8),
    "nvmlDeviceGetMaxPcieLinkWidth(h(0))": ("pcie.max_width", 16),
    "nvmlDeviceGetPcieThroughput(h(0), NVML_PCIE_UTIL_TX_BYTES)": ("pcie.kbps.0", 1111),
    "nvmlDeviceGetPcieThroughput(h(0), NVML_PCIE_UTIL_RX_BYTES)": ("pcie.kbps.1", 2222),
    "nvmlDeviceGetTotalEccErrors(h(0), 0, 0)": ("ecc.corrected.volatile", 10),
    "nvmlDeviceGetTotalEccErrors(h(0), 0, 1)": ("ecc.corrected.aggregate", 11),
    "nvmlDeviceGetTotalEccErrors(h(0), 1, 0)": ("ecc.uncorrected.volatile", 12),
    "nvmlDeviceGetTotalEccErrors(h(0), 1, 1)": ("ecc.uncorrected.aggregate", 1 << 40),
    "nvmlDeviceGetMemoryErrorCounter(h(0), 1, 0, 2)": ("ecc.uncorrected.volatile.2", 14),
    "nvmlDeviceGetRetiredPagesPendingStatus(h(0))": ("retired_pages.pending", 1),
}


def test_every_single_figure(tmp_path: Path) -> None:
    card = Card(figures=dict(FIGURES.values()))
    assert ask_machine(tmp_path, Scenario([card]), *FIGURES) == [value for _, value in FIGURES.values()]


def test_figures_of_several_parts(tmp_path: Path) -> None:
    card = Card(pci="00000002:8A:1C.0")
    card.figures |= {
        "utilization.gpu": 97,
        "utilization.memory": 41,
        "utilization.encoder": 7,
        "utilization.decoder": 8,
        "utilization.period": 166_667,
        "ecc.pending": 0,
        "remapped.corrected": 3,
        "remapped.uncorrected": 4,
        "remapped.pending": 1,
        "capability.minor": 6,
    }
    load, encoder, decoder, ecc, rows, capability, pci, bar1 = ask_machine(
        tmp_path,
        Scenario([card]),
        "nvmlDeviceGetUtilizationRates(h(0))",
        "nvmlDeviceGetEncoderUtilization(h(0))",
        "nvmlDeviceGetDecoderUtilization(h(0))",
        "nvmlDeviceGetEccMode(h(0))",
        "nvmlDeviceGetRemappedRows(h(0))",
        "nvmlDeviceGetCudaComputeCapability(h(0))",
        "{k: getattr(nvmlDeviceGetPciInfo(h(0)), k) for k in ('domain', 'bus', 'device', 'pciDeviceId')} | "
        "{k: getattr(nvmlDeviceGetPciInfo(h(0)), k) for k in ('busId', 'busIdLegacy')}",
        "nvmlDeviceGetBAR1MemoryInfo(h(0))",
    )
    assert load == {"gpu": 97, "memory": 41}
    assert encoder == [7, 166_667]
    assert decoder == [8, 166_667]
    assert ecc == [1, 0]
    assert rows == [3, 4, 1, 0]
    assert capability == [9, 6]
    assert pci == {
        "domain": 2,
        "bus": 0x8A,
        "device": 0x1C,
        "pciDeviceId": 0x233010DE,
        "busId": "00000002:8A:1C.0",
        "busIdLegacy": "0002:8A:1C.0",
    }
    assert bar1 == {"bar1Total": 128 * GIB, "bar1Free": 128 * GIB - (1 << 20), "bar1Used": 1 << 20}


@pytest.mark.parametrize(
    ("inside", "free"), [(False, 66), (True, 68)], ids=["reserved-apart", "reserved-inside-used"]
)
def test_memory_in_both_conventions(tmp_path: Path, inside: bool, free: int) -> None:
    card = Card(total=80 * GIB, used=12 * GIB, reserved=2 * GIB, inside=inside)
    second, first = ask_machine(
        tmp_path,
        Scenario([card]),
        "nvmlDeviceGetMemoryInfo(h(0), version=nvmlMemory_v2)",
        "nvmlDeviceGetMemoryInfo(h(0))",
    )
    assert second == {
        "version": 0x02000028,
        "total": 80 * GIB,
        "reserved": 2 * GIB,
        "free": free * GIB,
        "used": 12 * GIB,
    }
    # The first version of the call has no reserved part: it is in used (gpustat#141).
    assert first == {"total": 80 * GIB, "free": free * GIB, "used": (80 - free) * GIB}


def test_versions_and_count(tmp_path: Path) -> None:
    machine = Scenario([Card(), Card()], driver="550.54.14", nvml="12.550.54.14", cuda=12040)
    calls = ("SystemGetDriverVersion", "SystemGetNVMLVersion", "SystemGetCudaDriverVersion_v2", "DeviceGetCount")
    found = ask_machine(tmp_path, machine, *(f"nvml{call}()" for call in calls))
    assert found == ["550.54.14", "12.550.54.14", 12040, 2]


def test_a_card_is_found_by_index_uuid_and_address(tmp_path: Path) -> None:
    machine = Scenario([Card(), Card(uuid="GPU-second", pci="00000000:65:00.0")])
    found = ask_machine(
        tmp_path,
        machine,
        "nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(1))",
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID('GPU-second'))",
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId('00000000:65:00.0'))",
        "h(2)",
        "nvmlDeviceGetHandleByUUID('GPU-third')",
    )
    assert found == ["GPU-second", 1, 1, {"error": 2}, {"error": 6}]


def test_retired_pages_by_cause(tmp_path: Path) -> None:
    card = Card()
    card.retired = [Retired(0x1000, 0, 11), Retired(0x2000, 1, 12), Retired(0x3000, 0, 13)]
    single, double, unknown = ask_machine(
        tmp_path,
        Scenario([card, Card()]),
        "nvmlDeviceGetRetiredPages_v2(h(0), 0)",
        "nvmlDeviceGetRetiredPages(h(0), 1)",
        "nvmlDeviceGetRetiredPages(h(1), 0)",
    )
    assert single == [{"address": 0x1000, "timestamp": 11}, {"address": 0x3000, "timestamp": 13}]
    assert double == [0x2000]
    assert unknown == {"error": 3}


def test_a_field_fails_alone(tmp_path: Path) -> None:
    card = Card(figures={"field.82": "uint 71", "field.83": "u64 98765432109", "field.142": f"uint {UNAVAILABLE}"})
    card.fail("field:142", 4)
    found = ask_machine(tmp_path, Scenario([card]), "fields(h(0), [82, 83, 142, 145])")
    assert found == [[71, 98_765_432_109, {"error": 4}, {"error": 3}]]
