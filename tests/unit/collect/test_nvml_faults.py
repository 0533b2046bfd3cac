"""Every NVML call fails in turn, through the real binding on the stand-in library: it costs its own leaves, and
each of them says why. Which leaves those are is the contract's; what a code means is its table of reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract import check_contract, leaves
from tests.standin import (
    BEFORE_R450,
    BEFORE_R510,
    BEFORE_R535,
    UNAVAILABLE,
    Card,
    Partition,
    Proc,
    Sample,
    Scenario,
)
from tests.standin.snaps import Document, snaps

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
# A number that nobody has: process facts stay out of the comparison.
PID = 4_190_000

COSTS = {
    "nvmlDeviceGetName": {"model"},
    "nvmlDeviceGetPciInfo_v3": {"pci_address"},
    "nvmlDeviceGetUtilizationRates": {"load.gpu_percent", "load.memory_bandwidth_percent"},
    "nvmlDeviceGetEncoderUtilization": {"load.engines_percent.video_encode"},
    "nvmlDeviceGetDecoderUtilization": {"load.engines_percent.video_decode"},
    "nvmlDeviceGetTemperature": {"temperature.gpu_celsius"},
    "nvmlDeviceGetFieldValues": {"temperature.memory_celsius"},
    "field:82": {"temperature.memory_celsius"},
    "nvmlDeviceGetFanSpeed": {"temperature.fan_percent"},
    "nvmlDeviceGetPowerUsage": {"power.draw_watts"},
    "nvmlDeviceGetEnforcedPowerLimit": {"power.limit_watts"},
    "nvmlDeviceGetTotalEnergyConsumption": {"power.energy_joules"},
    "nvmlDeviceGetClockInfo": {"clocks.graphics_mhz", "clocks.memory_mhz"},
    "nvmlDeviceGetClockInfo:2": {"clocks.memory_mhz"},
    "nvmlDeviceGetCurrentClocksEventReasons": {"clocks.throttle_reasons"},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"pcie.generation"},
    "nvmlDeviceGetMaxPcieLinkGeneration": {"pcie.max_generation"},
    "nvmlDeviceGetCurrPcieLinkWidth": {"pcie.width"},
    "nvmlDeviceGetMaxPcieLinkWidth": {"pcie.max_width"},
    "nvmlDeviceGetEccMode": {"ecc.enabled"},
    "nvmlDeviceGetTotalEccErrors:0": {"ecc.corrected_volatile", "ecc.corrected_aggregate"},
    "nvmlDeviceGetTotalEccErrors:1": {"ecc.uncorrected_volatile", "ecc.uncorrected_aggregate"},
    "nvmlDeviceGetRetiredPages": {"ecc.retired_pages"},
    "nvmlDeviceGetRemappedRows": {"ecc.remapped_rows", "ecc.remap_pending", "ecc.remap_failed"},
    "nvmlDeviceGetMemoryInfo_v2": {
        *(f"memory.{name}" for name in ("total_bytes", "used_bytes", "free_bytes", "reserved_bytes", "kind")),
        *(f"accounting.{name}" for name in ("unattributed_bytes", "unattributed_max_bytes", "free_bytes")),
    },
    "nvmlDeviceGetProcessUtilization": {
        *(f"process.{name}" for name in ("gpu_percent", "engines_percent.video_encode")),
        "process.engines_percent.video_decode",
    },
}
# No leaf of a card that works depends on these.
FREE = ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetBAR1MemoryInfo")

# nvmlReturn_t and its name in nvml.h, and the contract's reason for it.
REASONS = {
    2: "failed NVML_ERROR_INVALID_ARGUMENT",
    3: "not-supported NVML_ERROR_NOT_SUPPORTED",
    4: "no-permission NVML_ERROR_NO_PERMISSION",
    6: "not-exposed NVML_ERROR_NOT_FOUND",
    10: "timeout NVML_ERROR_TIMEOUT",
    13: "not-exposed NVML_ERROR_FUNCTION_NOT_FOUND",
    15: "device-lost NVML_ERROR_GPU_IS_LOST",
    16: "device-lost NVML_ERROR_RESET_REQUIRED",
    17: "failed NVML_ERROR_OPERATING_SYSTEM",
    999: "failed NVML_ERROR_UNKNOWN",
}


def full_card() -> Card:
    """One that answers every call."""
    card = Card(used=9 * GIB, processes=[Proc(PID, 8 * GIB)], figures={"fan.0": 30})
    card.samples = [Sample(PID, sm=37, encoder=3, decoder=4)]
    card.retired = []
    return card


def failing(function: str, code: int) -> Scenario:
    card = full_card()
    card.fail(function, code)
    return Scenario([card])


def flat(document: Document) -> dict[str, tuple[Any, str]]:
    """Leaf -> (value, provenance) of the first card and of the process on it."""
    found = {}
    rows = [("", document["adapters"][0])] + [("process.", row) for row in document["processes"] or ()]
    for prefix, row in rows:
        sources = document["provenance"][row["provenance"]]
        for leaf, value in leaves(row).items():
            if leaf != "provenance":
                found[prefix + leaf] = (value, sources.get(leaf, ""))
    return found


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """ "" is the card without a fault."""
    machines = {"": Scenario([full_card()])}
    machines |= {name: failing(name, 999) for name in (*COSTS, *FREE)}
    found = snaps(tmp_path_factory.mktemp("faults"), list(machines.values()))
    return dict(zip(machines, found, strict=True))


def test_a_card_without_a_fault_lacks_nothing_that_nvml_gives(documents: dict[str, Document]) -> None:
    found = flat(documents[""])
    needed = set().union(*COSTS.values())
    assert not {leaf for leaf in needed if found[leaf][0] is None}


@pytest.mark.parametrize("function", COSTS)
def test_a_call_that_fails_costs_its_own_leaves(documents: dict[str, Document], function: str) -> None:
    check_contract(documents[function])
    before, after = flat(documents[""]), flat(documents[function])
    lost = {leaf for leaf in before if after[leaf][0] != before[leaf][0]}
    assert lost == COSTS[function]
    assert {after[leaf] for leaf in lost} == {(None, "null:failed NVML_ERROR_UNKNOWN")}


@pytest.mark.parametrize("function", FREE)
def test_a_call_that_is_not_needed_costs_nothing(documents: dict[str, Document], function: str) -> None:
    assert flat(documents[function]) == flat(documents[""])


def test_a_code_becomes_the_contract_s_reason(tmp_path: Path) -> None:
    found = snaps(tmp_path, [failing("nvmlDeviceGetPowerUsage", code) for code in REASONS])
    sources = [flat(document)["power.draw_watts"] for document in found]
    assert sources == [(None, f"null:{reason}") for reason in REASONS.values()]


def test_an_unreadable_uuid_leaves_the_address_as_id(tmp_path: Path) -> None:
    (document,) = snaps(tmp_path, [failing("nvmlDeviceGetUUID", 999)])
    check_contract(document)
    found = flat(document)
    assert found["id"][0] == found["process.adapter"][0] == "pci:0000:10:00.0"
    assert found["uuid"] == (None, "null:failed NVML_ERROR_UNKNOWN")


def test_a_list_that_fails_is_neither_empty_nor_complete(tmp_path: Path) -> None:
    one = full_card()
    one.fail("nvmlDeviceGetGraphicsRunningProcesses_v3", 999)
    none = full_card()
    for kind in ("Compute", "Graphics", "MPSCompute"):
        none.fail(f"nvmlDeviceGet{kind}RunningProcesses_v3", 4)
    lacking = full_card()
    lacking.fail("nvmlDeviceGetMPSComputeRunningProcesses_v3", 3)
    partial, unavailable, complete = snaps(tmp_path, [Scenario([card]) for card in (one, none, lacking)])
    assert [flat(document)["processes_listed"] for document in (partial, unavailable, complete)] == [
        ("partial", ""),
        ("unavailable", "null:no-permission NVML_ERROR_NO_PERMISSION"),
        ("complete", ""),
    ]
    assert unavailable["processes"] is None
    assert partial["processes"][0]["vram_bytes"] == 8 * GIB
    assert flat(unavailable)["accounting.attributed_bytes"][0] is None


def test_a_burst_of_new_processes_is_asked_for_again(tmp_path: Path) -> None:
    card = full_card()
    card.fail("nvmlDeviceGetComputeRunningProcesses_v3", 7, times=1)
    (document,) = snaps(tmp_path, [Scenario([card])])
    assert flat(document)["processes_listed"] == ("complete", "")
    assert document["processes"][0]["vram_bytes"] == 8 * GIB


def test_a_lost_card_costs_its_own_row(tmp_path: Path) -> None:
    lost = Card()
    lost.lose()
    (document,) = snaps(tmp_path, [Scenario([full_card(), lost])])
    check_contract(document)
    well, ill = document["adapters"]
    assert (well["health"], well["memory"]["used_bytes"]) == ("ok", 9 * GIB)
    assert (ill["index"], ill["health"], ill["processes_listed"]) == (1, "lost", "unavailable")
    sources = document["provenance"][ill["provenance"]]
    assert sources["memory.used_bytes"] == "null:device-lost NVML_ERROR_GPU_IS_LOST"


@pytest.mark.parametrize(
    ("code", "status", "name"),
    [
        (9, "failed", "NVML_ERROR_DRIVER_NOT_LOADED"),
        (18, "failed", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        (4, "denied", "NVML_ERROR_NO_PERMISSION"),
        (10, "timeout", "NVML_ERROR_TIMEOUT"),
    ],
)
def test_init_that_fails_is_a_backend_row(tmp_path: Path, code: int, status: str, name: str) -> None:
    machine = Scenario([Card()])
    machine.fail("nvmlInit", code)
    (document,) = snaps(tmp_path, [machine])
    check_contract(document)
    row = next(row for row in document["backends"] if row["name"] == "nvml")
    assert row["status"] == status
    assert row["detail"].startswith(name)
    assert (document["adapters"], document["processes"]) == ([], None)


@pytest.mark.parametrize(("missing", "listed"), [(BEFORE_R535, True), (BEFORE_R510, True), (BEFORE_R450, False)])
def test_symbols_that_an_old_driver_lacks(tmp_path: Path, missing: tuple[str, ...], listed: bool) -> None:
    (document,) = snaps(tmp_path, [Scenario([full_card()])], missing=missing)
    check_contract(document)
    found = flat(document)
    # The old call counts the reserved 540,016,640 bytes into used (gpustat#141), and has no name for them.
    old_memory = "nvmlDeviceGetMemoryInfo_v2" in missing
    assert found["memory.used_bytes"][0] == 9 * GIB + (540_016_640 if old_memory else 0)
    assert (found["memory.reserved_bytes"][0] is None) is old_memory
    assert found["clocks.throttle_reasons"][0] == ["gpu_idle"]
    assert found["processes_listed"][0] == ("complete" if listed else "unavailable")
    assert [row["vram_bytes"] for row in document["processes"] or ()] == ([8 * GIB] if listed else [])


@pytest.mark.parametrize("layout", [None, "535"], ids=["swapped", "driver-535"])
def test_report_002_scrambled_rows_are_no_processes(tmp_path: Path, layout: str | None) -> None:
    rows = [Proc(4711, 3 * GIB), Proc(4712, 2 * GIB)] if layout else [Proc(524_288_000, 10_734)]
    machine = Scenario([Card(used=9 * GIB, processes=rows)], driver="535.54.03", process_layout=layout)
    (document,) = snaps(tmp_path, [machine])
    check_contract(document)
    found = flat(document)
    assert document["processes"] is None
    assert found["processes_listed"][1].startswith("null:unknown-format")
    assert "535.54.03" in next(note["message"] for note in document["warnings"])
    assert found["memory.used_bytes"][0] == 9 * GIB


def test_all_ones_are_never_a_figure(tmp_path: Path) -> None:
    sentinels = {
        "memory.used": "memory.used_bytes",
        "utilization.gpu": "load.gpu_percent",
        "temperature.0": "temperature.gpu_celsius",
        "fan.0": "temperature.fan_percent",
        "power.usage": "power.draw_watts",
        "energy": "power.energy_joules",
        "clock.0": "clocks.graphics_mhz",
        "pcie.width": "pcie.width",
        "ecc.corrected.volatile": "ecc.corrected_volatile",
        "clocks.reasons": "clocks.throttle_reasons",
        "remapped.uncorrected": "ecc.remapped_rows",
        "remapped.pending": "ecc.remap_pending",
        "remapped.failed": "ecc.remap_failed",
    }
    card = full_card()
    card.figures |= dict.fromkeys(sentinels, UNAVAILABLE)
    (document,) = snaps(tmp_path, [Scenario([card])])
    check_contract(document)
    found = flat(document)
    wrong = {leaf: found[leaf] for leaf in sentinels.values() if found[leaf] != (None, "null:out-of-range")}
    assert not wrong
    assert found["health"][0] == "ok"
    # One warning for each keeps the raw number: a row may hold several.
    warned = [note for note in document["warnings"] if note["code"] == "out-of-range"]
    assert len(warned) == len(sentinels)


def test_a_library_without_a_version_in_its_name_is_not_called_version_1(tmp_path: Path) -> None:
    machine = Scenario([Card()])
    machine.fail("nvmlInit", 18)
    (document,) = snaps(tmp_path, [machine])
    row = next(row for row in document["backends"] if row["name"] == "nvml")
    assert row["detail"] == "NVML_ERROR_LIB_RM_VERSION_MISMATCH"


def test_partitions_are_adapters_and_their_parent_keeps_no_account(tmp_path: Path) -> None:
    parts = {
        0: Partition(uuid="MIG-one", gpu_instance=7, used=3 * GIB, processes=[Proc(PID, 3 * GIB)]),
        1: Partition(uuid="MIG-two", gpu_instance=9, compute_instance=1),
    }
    (document,) = snaps(tmp_path, [Scenario([Card(partitions=parts)])])
    check_contract(document)
    card, first, second = document["adapters"]
    assert (first["id"], first["kind"], first["parent"]) == ("MIG-one", "partition", card["id"])
    assert [one["partition"]["gpu_instance"] for one in (first, second)] == [7, 9]
    assert [one["accounting"]["attributed_bytes"] for one in (card, first, second)] == [None, 3 * GIB, 0]
    assert [(row["adapter"], row["vram_bytes"]) for row in document["processes"]] == [("MIG-one", 3 * GIB)]
    # Not supported there, and never 0 (nvtop#256).
    load = [document["provenance"][one["provenance"]]["load.gpu_percent"] for one in (card, first)]
    assert load == ["null:not-supported NVML_ERROR_NOT_SUPPORTED"] * 2
