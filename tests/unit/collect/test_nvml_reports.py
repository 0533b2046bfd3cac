"""Public reports on NVIDIA machines, each as the smallest machine that shows it, through the real bindings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.sleeping import sleeping
from tests.snapping import run_gpusnap, snap, source
from tests.standin import BEFORE_R510, FOREVER, UNAVAILABLE, Card, Partition, Proc, Sample, Scenario
from tests.surroundings import surroundings

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
GIB = 1 << 30
NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, FUNCTION_NOT_FOUND, LOST, MISMATCH, UNKNOWN = (
    3,
    4,
    9,
    13,
    15,
    18,
    999,
)
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
SNAP = "import sys; sys.argv[1:] = ['snap']; from gpusnap.__main__ import main; main()"
LISTS = [f"{name}{version}" for name in (COMPUTE, GRAPHICS) for version in ("_v3", "_v2")]


def test_report_001_card_that_cannot_list_has_no_empty_list(tmp_path: Path) -> None:
    card = Card(name="GeForce GT 710", total=1996 * MIB, used=350 * MIB, reserved=0)
    for function in LISTS:
        card.fail(function, NOT_SUPPORTED)
    card.drop("utilization.gpu")
    machine = Scenario(cards=[card])
    document = snap(machine, tmp_path)
    (row,) = document["adapters"]
    assert document["processes"] is None
    assert row["processes_listed"] == "unavailable"
    assert source(document, row, "processes_listed") == "null:not-supported NVML_ERROR_NOT_SUPPORTED"
    assert row["memory"]["used_bytes"] == 350 * MIB
    assert row["accounting"]["unattributed_bytes"] is None
    shown = run_gpusnap("ps", machine=machine, folder=tmp_path).stdout.decode()
    assert "cannot list its processes: not supported" in shown
    assert "0.3 of 1.9 GiB used" in shown


@pytest.mark.parametrize("scrambled", [Proc(pid=524_288_000, bytes=10_734), Proc(pid=2**32 - 1, bytes=MIB)])
def test_report_002_swapped_fields_of_driver_535_are_rejected(tmp_path: Path, scrambled: Proc) -> None:
    document = snap(Scenario(cards=[Card(used=GIB, processes=[scrambled])], driver="535.54.03"), tmp_path)
    (row,) = document["adapters"]
    assert document["processes"] is None
    entry = source(document, row, "processes_listed")
    assert entry.startswith("null:unknown-format NVML struct mismatch (driver 535.54.03, binding ")


def test_report_017_memory_not_supported_keeps_process_figures(tmp_path: Path) -> None:
    card = Card(name="NVIDIA GB10", processes=[Proc(pid=os.getpid(), bytes=37 * GIB)])
    card.fail("nvmlDeviceGetMemoryInfo", NOT_SUPPORTED)
    card.fail("nvmlDeviceGetMemoryInfo_v2", NOT_SUPPORTED)
    document = snap(Scenario(cards=[card]), tmp_path)
    (row,) = document["adapters"]
    assert row["memory"]["total_bytes"] is None
    assert row["memory"]["used_bytes"] is None
    assert row["memory"]["kind"] == "unified"
    assert source(document, row, "memory.used_bytes").startswith("null:not-supported")
    (process,) = document["processes"]
    assert process["vram_bytes"] == 37 * GIB
    assert source(document, process, "spill_bytes") == "null:unified-memory"
    assert row["load"]["memory_bandwidth_percent"] is None  # llama-swap#782: always 0 there


def test_report_019_every_card_is_an_entry(tmp_path: Path) -> None:
    document = snap(
        Scenario(cards=[Card(total=16_380 * MIB, reserved=0), Card(total=5 * MIB, reserved=0)]), tmp_path
    )
    assert [row["memory"]["total_bytes"] for row in document["adapters"]] == [16_380 * MIB, 5 * MIB]
    assert document["processes"] == []


def test_report_022_reserved_memory_is_not_a_ghost_process(tmp_path: Path) -> None:
    new = Card(total=8 * GIB, used=0, reserved=308 * MIB)
    document = snap(Scenario(cards=[new]), tmp_path)
    (row,) = document["adapters"]
    assert row["memory"]["used_bytes"] == 0
    assert row["memory"]["reserved_bytes"] == 308 * MIB
    assert row["accounting"]["unattributed_bytes"] == 0


def test_report_022_first_memory_call_counts_reserved_as_used(tmp_path: Path) -> None:
    old = Scenario(cards=[Card(total=8 * GIB, used=0, reserved=308 * MIB)])
    document = snap(old, tmp_path, missing=BEFORE_R510)
    (row,) = document["adapters"]
    assert row["memory"]["used_bytes"] == 308 * MIB
    assert row["memory"]["reserved_bytes"] is None
    assert source(document, row, "memory.used_bytes") == "measured:nvml.MemoryInfo"
    assert source(document, row, "memory.reserved_bytes").startswith("null:not-exposed")
    assert row["accounting"]["reserved_bytes"] == 0
    assert row["accounting"]["unattributed_bytes"] == 308 * MIB


def test_reserved_inside_used_is_told_by_the_totals(tmp_path: Path) -> None:
    """The other convention of the second memory call: total = used + free, the reserved part inside used."""
    card = Card(total=8 * GIB, used=GIB, reserved=308 * MIB, inside=True, processes=[Proc(os.getpid(), 512 * MIB)])
    document = snap(Scenario(cards=[card]), tmp_path)
    (row,) = document["adapters"]
    assert row["accounting"]["reserved_bytes"] == 308 * MIB
    assert row["accounting"]["unattributed_bytes"] == (1024 - 512 - 308) * MIB


def test_report_023_a_lost_card_costs_only_its_own_row(tmp_path: Path) -> None:
    cards = [Card(), Card(), Card(), Card(processes=[Proc(os.getpid(), GIB)])]
    cards[2].lose()
    document = snap(Scenario(cards=cards), tmp_path)
    healthy, lost = document["adapters"][0], document["adapters"][2]
    assert len(document["adapters"]) == 4
    assert lost["health"] == "lost"
    assert [row["health"] for row in document["adapters"] if row is not lost] == ["ok"] * 3
    assert lost.keys() == healthy.keys()
    assert lost["memory"].keys() == healthy["memory"].keys()
    assert lost["memory"]["used_bytes"] is None
    assert source(document, lost, "memory.used_bytes") == "null:device-lost NVML_ERROR_GPU_IS_LOST"
    assert [row["vram_bytes"] for row in document["processes"]] == [GIB]


@pytest.mark.parametrize("version", ["_v3", "_v2"])
def test_report_037_mps_clients_are_marked(tmp_path: Path, version: str) -> None:
    missing = BEFORE_R510 if version == "_v2" else ()
    with sleeping(2) as (client, other):
        both = [Proc(client, 700 * MIB), Proc(client, 700 * MIB, kind="mps")]
        machine = Scenario(cards=[Card(processes=[*both, Proc(other, 27 * MIB)])])
        document = snap(machine, tmp_path, missing=missing)
    assert [(row["pid"], row["type"]) for row in document["processes"]] == [(client, "mps"), (other, "compute")]


def test_report_041_failing_lists_give_null_not_a_crash(tmp_path: Path) -> None:
    card = Card()
    for function in LISTS:
        card.fail(function, UNKNOWN)
    document = snap(Scenario(cards=[card]), tmp_path)
    assert document["processes"] is None
    entry = source(document, document["adapters"][0], "processes_listed")
    assert entry == "null:failed NVML_ERROR_UNKNOWN"


def test_report_043_partitions_stand_beside_a_parent_without_figures(tmp_path: Path) -> None:
    part = Partition(uuid="MIG-0a", gpu_instance=7, name="NVIDIA A100 MIG 1g.5gb", total=4864 * MIB, used=0)
    parent = Card(partitions={0: part})
    parent.fail("nvmlDeviceGetMemoryInfo", NO_PERMISSION)
    parent.fail("nvmlDeviceGetMemoryInfo_v2", NO_PERMISSION)
    document = snap(Scenario(cards=[parent]), tmp_path)
    top, child = document["adapters"]
    assert source(document, top, "memory.total_bytes") == "null:no-permission NVML_ERROR_NO_PERMISSION"
    assert source(document, top, "accounting.unattributed_bytes") == "null:partitioned"
    assert child["kind"] == "partition"
    assert child["parent"] == top["id"]
    assert child["partition"] == {"gpu_instance": 7, "compute_instance": 0, "profile": "1g.5gb"}
    assert child["memory"]["total_bytes"] == 4864 * MIB
    assert child["memory"]["used_bytes"] == 0


def test_report_059_a_missing_power_sensor_is_null(tmp_path: Path) -> None:
    card = Card()
    card.drop("power.usage")
    done = run_gpusnap("snap", machine=Scenario(cards=[card]), folder=tmp_path)
    assert b"NaN" not in done.stdout
    assert b"N/A" not in done.stdout
    document = json.loads(done.stdout)
    assert document["adapters"][0]["power"]["draw_watts"] is None
    assert document["adapters"][0]["power"]["limit_watts"] == 700


def test_report_061_load_of_a_partition_is_unknown_not_idle(tmp_path: Path) -> None:
    part = Partition(uuid="MIG-0a", gpu_instance=1, used=2 * GIB, processes=[Proc(os.getpid(), GIB)])
    document = snap(Scenario(cards=[Card(partitions={0: part})]), tmp_path)
    for row in document["adapters"]:
        assert row["load"]["gpu_percent"] is None
    (process,) = document["processes"]
    assert process["gpu_percent"] is None
    assert process["adapter"] == "MIG-0a"


def test_report_079_device_load_is_never_copied_onto_processes(tmp_path: Path) -> None:
    with sleeping(3) as pids:
        card = Card(processes=[Proc(pid, GIB) for pid in pids], figures={"utilization.gpu": 99})
        document = snap(Scenario(cards=[card]), tmp_path)
    assert document["adapters"][0]["load"]["gpu_percent"] == 99
    assert {row["pid"] for row in document["processes"]} == set(pids)
    assert {row["gpu_percent"] for row in document["processes"]} == {None}


def test_report_086_version_mismatch_names_both_versions(tmp_path: Path) -> None:
    machine = Scenario(cards=[Card()])
    machine.fail("nvmlInit", MISMATCH)
    done = run_gpusnap("snap", machine=machine, folder=tmp_path)
    assert done.returncode == 3
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1
    assert "NVML_ERROR_LIB_RM_VERSION_MISMATCH" in lines[0]
    document = json.loads(done.stdout)
    row = next(row for row in document["backends"] if row["name"] == "nvml")
    assert row["status"] == "failed"
    assert document["processes"] is None


def test_a_driver_that_is_not_loaded_is_failed(tmp_path: Path) -> None:
    machine = Scenario(cards=[Card()])
    machine.fail("nvmlInit", DRIVER_NOT_LOADED)
    done = run_gpusnap("snap", machine=machine, folder=tmp_path)
    rows = {row["name"]: row for row in json.loads(done.stdout)["backends"]}
    assert done.returncode == 3
    assert rows["nvml"]["status"] == "failed"
    assert "NVML_ERROR_DRIVER_NOT_LOADED" in rows["nvml"]["detail"]


def test_report_091_graphics_only_processes_are_listed(tmp_path: Path) -> None:
    document = snap(Scenario(cards=[Card(processes=[Proc(os.getpid(), GIB, kind="graphics")])]), tmp_path)
    (row,) = document["processes"]
    assert row["type"] == "graphics"
    assert source(document, row, "vram_bytes") == "measured:nvml.GraphicsRunningProcesses"


def test_a_pid_in_both_lists_is_one_row_with_the_larger_figure(tmp_path: Path) -> None:
    pid = os.getpid()
    card = Card(used=2 * GIB, processes=[Proc(pid, GIB), Proc(pid, 10 * MIB, kind="graphics")])
    document = snap(Scenario(cards=[card]), tmp_path)
    (row,) = document["processes"]
    assert (row["type"], row["vram_bytes"]) == ("both", GIB)


def test_report_094_all_ones_sentinel_is_never_a_figure(tmp_path: Path) -> None:
    card = Card(total=24 * GIB, used=14_360 * MIB, reserved=0, processes=[Proc(os.getpid(), None)])
    document = snap(Scenario(cards=[card]), tmp_path)
    (row,) = document["processes"]
    assert row["vram_bytes"] is None
    assert source(document, row, "vram_bytes") == "null:not-supported NVML_VALUE_NOT_AVAILABLE"
    (adapter,) = document["adapters"]
    assert adapter["memory"]["used_bytes"] == 14_360 * MIB
    assert adapter["accounting"]["attributed_bytes"] == 0
    assert adapter["accounting"]["unmeasured_processes"] == 1
    assert adapter["accounting"]["by_category"]["unknown"] is None or row["category"] != "unknown"
    shown = run_gpusnap("ps", machine=Scenario(cards=[card]), folder=tmp_path).stdout.decode()
    assert "unattributed up to 14.0" in shown
    assert "17179869184" not in shown


def test_report_095_a_bad_field_costs_that_field_only(tmp_path: Path) -> None:
    card = Card(total=32_510 * MIB, used=0, reserved=0)
    card.fail("nvmlDeviceGetFanSpeed", UNKNOWN)
    good = Card(figures={"utilization.gpu": 7})
    document = snap(Scenario(cards=[card, good]), tmp_path)
    row = document["adapters"][0]
    assert row["temperature"]["fan_percent"] is None
    assert source(document, row, "temperature.fan_percent") == "null:failed NVML_ERROR_UNKNOWN"
    assert row["memory"]["used_bytes"] == 0
    assert document["adapters"][1]["load"]["gpu_percent"] == 7


def test_a_sample_outside_its_range_is_null_with_a_warning(tmp_path: Path) -> None:
    """nvtop#110: a zombie's utilisation reads in the ten thousands of percent."""
    pid = os.getpid()
    card = Card(processes=[Proc(pid, GIB)])
    card.samples = [Sample(pid, sm=37_100, encoder=3)]
    document = snap(Scenario(cards=[card]), tmp_path)
    (row,) = document["processes"]
    assert source(document, row, "gpu_percent") == "null:out-of-range"
    assert row["engines_percent"]["video_encode"] == 3
    assert any("37100" in note["message"] for note in document["warnings"])


def test_fresh_samples_count_and_stale_ones_do_not(tmp_path: Path) -> None:
    with sleeping(2) as (fresh, stale):
        card = Card(processes=[Proc(fresh, GIB), Proc(stale, GIB)])
        card.samples = [Sample(fresh, sm=10, age=0.6), Sample(fresh, sm=42, age=0.1), Sample(stale, sm=99, age=30)]
        document = snap(Scenario(cards=[card]), tmp_path)
    shares = {row["pid"]: row["gpu_percent"] for row in document["processes"]}
    assert shares == {fresh: 42, stale: None}


def test_report_112_pids_stay_listed_without_figures(tmp_path: Path) -> None:
    with sleeping(2) as pids:
        document = snap(Scenario(cards=[Card(processes=[Proc(pid, None) for pid in pids])]), tmp_path)
    assert sorted(row["pid"] for row in document["processes"]) == sorted(pids)
    assert all(row["vram_bytes"] is None for row in document["processes"])


def test_report_113_numbers_are_numbers(tmp_path: Path) -> None:
    document = snap(Scenario(cards=[Card(figures={"clock.0": 2200, "utilization.gpu": 4})]), tmp_path)
    (row,) = document["adapters"]
    assert row["clocks"]["graphics_mhz"] == 2200
    assert row["load"]["gpu_percent"] == 4
    assert row["temperature"]["fan_percent"] is None


def test_report_128_a_library_in_a_known_place_is_found_without_the_loaders_path(tmp_path: Path) -> None:
    """gpu-manager#101: `libnvidia-ml.so.1` in /usr/local/nvidia/lib64 only; here its place is another folder."""
    environment = Scenario(cards=[Card(used=GIB)]).environment(tmp_path)
    folder = environment.pop("LD_LIBRARY_PATH").partition(os.pathsep)[0]
    code = f"from gpusnap import live_nvml; live_nvml.LIBRARY_PLACES = ('/no/folder', {folder!r}); {SNAP}"
    environ = surroundings(environment)
    del environ["LD_LIBRARY_PATH"]
    found = subprocess.check_output([sys.executable, "-c", code], env=environ)
    (row,) = json.loads(found)["adapters"]
    assert (row["vendor"], row["memory"]["used_bytes"]) == ("nvidia", GIB)


def test_report_128_a_library_that_is_nowhere_is_absent_with_the_places_tried() -> None:
    """Under a name that no driver's library has: whatever machine this is, there is none."""
    code = f"from gpusnap import live_nvml; live_nvml._SONAME = 'libnvidia-ml.so.nowhere'; {SNAP}"
    done = subprocess.run([sys.executable, "-c", code], env=surroundings(), capture_output=True, check=False)
    row = next(row for row in json.loads(done.stdout)["backends"] if row["name"] == "nvml")
    assert done.returncode == 0
    assert done.stderr == b""
    assert row["status"] == "absent"
    assert "libnvidia-ml.so.nowhere" in row["detail"]
    assert "/usr/local/nvidia/lib64" in row["detail"]


def test_a_name_that_is_not_utf8_costs_the_name_only(tmp_path: Path) -> None:
    """nvitop#127: driver 555 under WSL answers garbage as the device's name."""
    document = snap(Scenario(cards=[Card(name=b"\xf8\x95\xa0\x81")]), tmp_path)
    (row,) = document["adapters"]
    assert row["model"] is None
    assert source(document, row, "model") == "null:unknown-format not UTF-8"
    assert row["memory"]["total_bytes"] == 85_520_809_984


def test_a_call_that_hangs_costs_the_backend_not_the_run(tmp_path: Path) -> None:
    card = Card()
    card.slow("nvmlDeviceGetTemperature", FOREVER)
    done = run_gpusnap("snap", "--timeout", "500ms", machine=Scenario(cards=[card]), folder=tmp_path, timeout=20)
    document = json.loads(done.stdout)
    row = next(row for row in document["backends"] if row["name"] == "nvml")
    assert row["status"] == "timeout"
    assert done.returncode == 3
    assert document["processes"] is None


def test_a_call_that_hangs_costs_a_live_difference_no_longer_than_its_timeout(tmp_path: Path) -> None:
    card = Card()
    machine = Scenario(cards=[card])
    (tmp_path / "before.json").write_text(json.dumps(snap(machine, tmp_path)))
    card.slow("nvmlDeviceGetTemperature", FOREVER)
    words = ("diff", str(tmp_path / "before.json"), "live", "--timeout", "500ms", "--json")
    done = run_gpusnap(*words, machine=machine, folder=tmp_path, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"")
    (card_row,) = json.loads(done.stdout)["adapters"]
    assert card_row["status"] == "disappeared"


def test_figures_outside_the_card_are_no_figures(tmp_path: Path) -> None:
    card = Card(total=8 * GIB, used=GIB, reserved=0, processes=[Proc(os.getpid(), 9 * GIB)])
    document = snap(Scenario(cards=[card]), tmp_path)
    (row,) = document["processes"]
    assert source(document, row, "vram_bytes") == "null:out-of-range"
    assert document["adapters"][0]["accounting"]["attributed_bytes"] == 0


def test_unavailable_energy_counter_is_null(tmp_path: Path) -> None:
    document = snap(Scenario(cards=[Card(figures={"energy": UNAVAILABLE})]), tmp_path)
    assert document["adapters"][0]["power"]["energy_joules"] is None


@pytest.mark.parametrize("code", [4, 15, 999])
def test_one_broken_list_of_two_is_partial(tmp_path: Path, code: int) -> None:
    card = Card(used=2 * GIB, processes=[Proc(os.getpid(), GIB)])
    card.fail(GRAPHICS + "_v3", code)
    document = snap(Scenario(cards=[card]), tmp_path)
    assert document["adapters"][0]["processes_listed"] == "partial"
    assert len(document["processes"]) == 1


def test_drivers_before_r510_list_by_their_second_version(tmp_path: Path) -> None:
    """The binding raises NVMLLibraryMismatchError there, which is no NVMLError."""
    machine = Scenario(cards=[Card(processes=[Proc(os.getpid(), GIB)])])
    document = snap(machine, tmp_path, missing=BEFORE_R510)
    assert [row["vram_bytes"] for row in document["processes"]] == [GIB]
    assert document["adapters"][0]["processes_listed"] == "complete"


def test_function_that_answers_not_found_falls_back_too(tmp_path: Path) -> None:
    card = Card(processes=[Proc(os.getpid(), GIB)])
    card.fail(COMPUTE + "_v3", FUNCTION_NOT_FOUND)
    card.fail(GRAPHICS + "_v3", FUNCTION_NOT_FOUND)
    document = snap(Scenario(cards=[card]), tmp_path)
    assert [row["vram_bytes"] for row in document["processes"]] == [GIB]


def test_throughput_is_measured_only_with_a_window(tmp_path: Path) -> None:
    machine = Scenario(cards=[Card()])
    without, with_window = snap(machine, tmp_path), snap(machine, tmp_path, "--window", "50ms")
    assert without["adapters"][0]["pcie"]["rx_bytes_per_second"] is None
    assert without["window_seconds"] is None
    assert with_window["adapters"][0]["pcie"]["tx_bytes_per_second"] == 1_500_000
    assert with_window["adapters"][0]["pcie"]["rx_bytes_per_second"] == 250_000
    assert with_window["window_seconds"] >= 0.05


def test_health_tells_pending_remaps_and_hardware_slowdowns(tmp_path: Path) -> None:
    cards = [
        Card(figures={"remapped.pending": 1}),
        Card(figures={"ecc.uncorrected.volatile": 1}),
        Card(figures={"clocks.reasons": 0x40}),
        Card(figures={"ecc.corrected.aggregate": 37, "remapped.corrected": 1}),
    ]
    document = snap(Scenario(cards=cards), tmp_path)
    assert [row["health"] for row in document["adapters"]] == ["degraded", "degraded", "degraded", "ok"]
    assert document["adapters"][2]["clocks"]["throttle_reasons"] == ["hw_thermal_slowdown"]
    # Report 28: the aggregate keeps repaired errors; both counters are shown.
    assert document["adapters"][3]["ecc"]["corrected_aggregate"] == 37
    assert document["adapters"][3]["ecc"]["corrected_volatile"] == 0
