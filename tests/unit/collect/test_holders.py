"""Who has a GPU's device files open or mapped, and which card each file stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusnap.collect import Collector
from gpusnap.collect.device_files import DeviceFiles, is_gpu_file, name_of_number
from gpusnap.collect.harvest import AdapterFacts
from gpusnap.collect.holders import find_holders, gpu_file_test, holders_of
from gpusnap.collect.options import CollectOptions
from tests.unit.collect.machine import INITIAL, host, process, table

if TYPE_CHECKING:
    from pathlib import Path

    from gpusnap.captured import CapturedHost

# Two cards whose minor numbers are not NVML's order, as on a server with a card that was replaced.
INFORMATION = """--- proc/driver/nvidia/gpus/0000:01:00.0/information
Model: \t\t NVIDIA A100
GPU UUID:   \t GPU-aaaa
Bus Location: \t 0000:01:00.0
Device Minor: \t 1
--- proc/driver/nvidia/gpus/0000:41:00.0/information
Model: \t\t NVIDIA A100
Device Minor: \t 0
"""
SYSFS = """--- sys/class/drm/card0 -> ../../devices/pci0000:00/0000:00:02.0/drm/card0
--- sys/class/drm/renderD128 -> ../../devices/pci0000:00/0000:00:02.0/drm/renderD128
--- sys/class/drm/card1 -> ../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/drm/card1
--- sys/class/drm/renderD129 -> ../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/drm/renderD129
--- sys/class/accel/accel0 -> ../../devices/pci0000:00/0000:00:0b.0/accel/accel0
"""


def adapter(key: str, vendor: str = "nvidia", **identity: object) -> AdapterFacts:
    facts = AdapterFacts(key)
    facts.identity = {"id": key, "vendor": vendor, "pci_address": key if ":" in key else None, "parent": None}
    facts.identity.update(identity)
    return facts


NVIDIA = [adapter("0000:01:00.0", index=0), adapter("0000:41:00.0", index=1)]


def held(machine: CapturedHost, adapters: list[AdapterFacts]) -> list[tuple[str, int, str]]:
    return find_holders(machine, DeviceFiles(machine, adapters).owners)[0]


def test_report_080_workers_that_the_driver_does_not_list_are_holders(tmp_path: Path) -> None:
    tree = INITIAL + INFORMATION + process(1, "systemd", ppid=0, uid=0)
    for pid in (4711, 4712):  # DataLoader workers, their trainer is gone
        tree += process(pid, "python", ppid=1, start=pid, fds=("/dev/null", "/dev/nvidia0", "/dev/nvidiactl"))
    machine = host(tmp_path, tree)
    rows, unreadable = holders_of(machine, table(machine), NVIDIA)
    assert unreadable == 0
    assert rows["0000:01:00.0"] == []
    assert rows["0000:41:00.0"] == [
        {
            "pid": pid,
            "start_ticks": pid,
            "name": "python",
            "user": "alice",
            "state": "sleeping",
            "via": "/dev/nvidia0",
        }
        for pid in (4711, 4712)
    ]


def test_a_cards_file_is_told_by_the_kernels_minor_and_not_by_nvmls_index(tmp_path: Path) -> None:
    machine = host(tmp_path, INFORMATION + process(5, fds=("/dev/nvidia1",)))
    assert held(machine, NVIDIA) == [("0000:01:00.0", 5, "/dev/nvidia1")]


def test_in_a_container_without_the_kernels_folder_nvml_tells_the_minor(tmp_path: Path) -> None:
    calls = '{"calls": {"nvmlDeviceGetMinorNumber 0": 3, "nvmlDeviceGetMinorNumber 1": {"error": 3}}}'
    (tmp_path / "nvml.json").write_text(calls)
    machine = host(tmp_path, process(5, fds=("/dev/nvidia3",)) + process(6, fds=("/dev/nvidia1",)))
    # Card 1 does not say: its index is the best that is known.
    assert held(machine, NVIDIA) == [("0000:01:00.0", 5, "/dev/nvidia3"), ("0000:41:00.0", 6, "/dev/nvidia1")]


def test_a_drivers_common_file_makes_a_candidate_of_every_card(tmp_path: Path) -> None:
    tree = INFORMATION + process(5, fds=("/dev/nvidiactl",)) + process(6, fds=("/dev/nvidia-uvm", "/dev/nvidia0"))
    assert held(host(tmp_path, tree), NVIDIA) == [
        ("0000:01:00.0", 5, "/dev/nvidiactl"),
        ("0000:41:00.0", 5, "/dev/nvidiactl"),
        ("0000:41:00.0", 6, "/dev/nvidia0"),  # and not of card 0, of which it has no file
    ]


def test_a_mapping_without_a_descriptor_holds_too(tmp_path: Path) -> None:
    maps = (
        "--- proc/5/maps\n7f00-7f01 rw-s 00000000 00:05 1024   /dev/nvidia0\n"
        "7f02-7f03 r--p 00000000 08:01 77   /usr/lib/libcuda.so.1\n"
        "--- proc/6/maps\n7f02-7f03 r--p 00000000 08:01 77   /home/a/dev/nvidia0.txt\n7f04-7f05 rw-p 0 00:00 0\n"
    )
    machine = host(tmp_path, INFORMATION + process(5) + process(6) + maps)
    assert held(machine, NVIDIA) == [("0000:41:00.0", 5, "/dev/nvidia0")]


def test_mappings_are_read_only_where_no_descriptor_tells(tmp_path: Path) -> None:
    machine = host(tmp_path, INFORMATION + process(5, fds=("/dev/nvidia0",)) + "--- proc/5/maps !EIO\n")
    assert held(machine, NVIDIA) == [("0000:41:00.0", 5, "/dev/nvidia0")]
    assert "proc/5/maps" not in machine.opened


def test_own_descriptors_do_not_count(tmp_path: Path) -> None:
    machine = host(tmp_path, INFORMATION + process(999, fds=("/dev/nvidia0",)), own_pid=999)
    assert held(machine, NVIDIA) == []


def test_report_116_processes_that_cannot_be_looked_into_are_counted(tmp_path: Path) -> None:
    denied = process(5, uid=0).replace("proc/5/fd/ dir", "proc/5/fd !EACCES")
    gone = process(6).replace("proc/6/fd/ dir", "proc/6/fd !ENOENT")
    machine = host(tmp_path, INFORMATION + denied + gone + process(7, fds=("/dev/nvidia1",)))
    found, unreadable = find_holders(machine, DeviceFiles(machine, NVIDIA).owners)
    assert (found, unreadable) == ([("0000:01:00.0", 7, "/dev/nvidia1")], 1)


def test_drm_and_accel_nodes_are_told_by_their_pci_function(tmp_path: Path) -> None:
    cards = [adapter("0000:01:00.0", index=0), adapter("0000:00:02.0", "intel"), adapter("0000:00:0b.0", "intel")]
    tree = (
        SYSFS
        + process(5, "Xorg", fds=("/dev/dri/card1", "/dev/dri/renderD128"))
        + process(6, fds=("/dev/accel/accel0",))
    )
    assert held(host(tmp_path, tree + process(7, fds=("/dev/dri/renderD130",))), cards) == [
        ("0000:00:02.0", 5, "/dev/dri/renderD128"),
        ("0000:00:0b.0", 6, "/dev/accel/accel0"),
        ("0000:01:00.0", 5, "/dev/dri/card1"),
    ]


def test_a_gpu_without_pci_is_told_by_its_cards_number(tmp_path: Path) -> None:
    tree = (
        "--- sys/class/drm/card1 -> ../../devices/platform/soc/fec00000.v3d/drm/card1\n"
        "--- sys/class/drm/renderD128 -> ../../devices/platform/soc/fec00000.v3d/drm/renderD128\n"
        "--- sys/devices/platform/soc/fec00000.v3d/drm/card1/device -> ../..\n"
        "--- sys/devices/platform/soc/fec00000.v3d/drm/renderD128/device -> ../..\n"
        + process(5, fds=("/dev/dri/renderD128",)) + process(6, fds=("/dev/dri/card1",))
    )  # fmt: skip
    assert held(host(tmp_path, tree), [adapter("drm-index:1", "other")]) == [
        ("drm-index:1", 5, "/dev/dri/renderD128"),
        ("drm-index:1", 6, "/dev/dri/card1"),
    ]


def test_report_032_whoever_opened_kfd_is_a_candidate_of_every_amd_card(tmp_path: Path) -> None:
    cards = [adapter("0000:03:00.0", "amd"), adapter("0000:01:00.0", index=0)]
    assert held(host(tmp_path, process(5, fds=("/dev/kfd",))), cards) == [("0000:03:00.0", 5, "/dev/kfd")]


def test_ascend_files_stand_for_chips_in_their_order(tmp_path: Path) -> None:
    cards = [adapter("0000:c1:00.0", "huawei", index=0), adapter("0000:81:00.0", "huawei", index=1)]
    tree = process(5, fds=("/dev/davinci1", "/dev/davinci_manager")) + process(6, fds=("/dev/davinci_manager",))
    assert held(host(tmp_path, tree), cards) == [
        ("0000:81:00.0", 5, "/dev/davinci1"),
        ("0000:81:00.0", 6, "/dev/davinci_manager"),
        ("0000:c1:00.0", 6, "/dev/davinci_manager"),
    ]


def test_a_mig_partition_is_told_by_its_capability_node(tmp_path: Path) -> None:
    part = adapter("MIG-1", parent="0000:41:00.0", index=0, partition={"gpu_instance": 3, "compute_instance": 0})
    tree = INFORMATION + (
        "--- proc/driver/nvidia/capabilities/gpu0/mig/gi3/access\nDeviceFileMinor: 30\nDeviceFileMode: 292\n"
        "--- proc/driver/nvidia/capabilities/gpu0/mig/gi3/ci0/access\nDeviceFileMinor: 31\nDeviceFileMode: 292\n"
    )
    caps = ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31")
    assert held(host(tmp_path, tree + process(5, fds=caps)), [*NVIDIA, part]) == [
        ("0000:41:00.0", 5, "/dev/nvidia0"),
        ("MIG-1", 5, "/dev/nvidia-caps/nvidia-cap31"),
    ]


def test_a_node_that_was_removed_or_renamed_is_still_held(tmp_path: Path) -> None:
    tree = (
        INFORMATION + process(5, fds=("/dev/nvidia0 (deleted)",)) + process(6, fds=("/dev/gpu-a", "/dev/ttyUSB0"))
    )
    machine = host(tmp_path, tree + "--- root/dev/gpu-a rdev=195:1\n--- root/dev/ttyUSB0 rdev=188:0\n")
    assert held(machine, NVIDIA) == [
        ("0000:01:00.0", 6, "/dev/nvidia1"),
        ("0000:41:00.0", 5, "/dev/nvidia0 (deleted)"),
    ]


@pytest.mark.parametrize(
    ("number", "name"),
    [((195, 0), "/dev/nvidia0"), ((195, 255), "/dev/nvidiactl"), ((195, 254), "/dev/nvidia-modeset"),
     ((226, 128), "/dev/dri/renderD128"), ((226, 9), None), ((261, 0), "/dev/accel/accel0"), ((1, 3), None)],
)  # fmt: skip
def test_device_numbers_have_the_kernels_names(tmp_path: Path, number: tuple[int, int], name: str | None) -> None:
    tree = (
        "--- sys/dev/char/226:128 -> ../../devices/pci0000:00/0000:00:02.0/drm/renderD128\n"
        "--- sys/dev/char/261:0 -> ../../devices/pci0000:00/0000:00:0b.0/accel/accel0\n"
    )
    assert name_of_number(host(tmp_path, tree), number) == name


@pytest.mark.parametrize(
    ("target", "is_one"),
    [("/dev/nvidia0", True), ("/dev/nvidia-uvm", True), ("/dev/nvidiactl", True), ("/dev/dri/card0", True),
     ("/dev/kfd", True), ("/dev/accel/accel0", True), ("/dev/davinci3", True), ("/dev/dxg", True),
     ("/dev/nvidia-nvswitch0", False), ("/dev/null", False), ("/tmp/dev/nvidia0", False), ("socket:[1]", False),
     ("/dev/shm/nvidia0", False)],
)  # fmt: skip
def test_which_files_are_a_gpus(target: str, is_one: bool) -> None:
    assert is_gpu_file(target) is is_one


def test_holding_is_yes_no_or_cannot_say(tmp_path: Path) -> None:
    tree = process(5, fds=("/dev/nvidia0",)) + process(6, fds=("/dev/null",))
    holds = gpu_file_test(host(tmp_path, tree + process(7).replace("proc/7/fd/ dir", "proc/7/fd !EACCES")))
    assert [holds(pid) for pid in (5, 6, 7, 8)] == [True, False, None, False]


def test_where_there_is_no_proc_the_list_is_null_and_not_empty(tmp_path: Path) -> None:
    machine = host(tmp_path, "--- proc !ENOENT\n")
    rows, _ = holders_of(machine, table(machine), NVIDIA)
    assert {getattr(row, "provenance", row) for row in rows.values()} == {
        "null:not-supported no list of open files"
    }


def test_the_document_carries_holders_and_says_when_they_are_not_all(tmp_path: Path) -> None:
    denied = process(6, uid=0).replace("proc/6/fd/ dir", "proc/6/fd !EACCES")
    (tmp_path / "nvml.json").write_text(
        '{"calls": {"nvmlSystemGetDriverVersion": "580.1", "nvmlDeviceGetCount": 1,'
        ' "nvmlDeviceGetHandleByIndex 0": 0}}'
    )
    machine = host(tmp_path, INITIAL + process(5, fds=("/dev/nvidia0",)) + denied)
    document = Collector(machine, CollectOptions(holders=True)).sample()
    (card,) = document["adapters"]
    assert card["holders"] is not None
    assert [(row["pid"], row["via"]) for row in card["holders"]] == [(5, "/dev/nvidia0")]
    assert [note["code"] for note in document["warnings"]] == ["holders-incomplete"]


@pytest.mark.parametrize(("state", "flags"), [("Z", 0x400), ("S", 0x208040)])
def test_a_zombie_and_a_kernel_thread_have_nothing_to_look_into(tmp_path: Path, state: str, flags: int) -> None:
    """Both deny the look to others than root: an idle server would always miss some hundred holders."""
    tree = process(5, uid=0).replace("proc/5/fd/ dir", "proc/5/fd !EACCES")
    stat = f"--- proc/5/stat\n5 (kworker/0:0) {state} 2 0 0 0 -1 {flags} 0 0\n"
    machine = host(tmp_path, INFORMATION + tree + stat)
    assert find_holders(machine, DeviceFiles(machine, NVIDIA).owners) == ([], 0)


def test_holders_behind_hidepid_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "nvml.json").write_text(
        '{"calls": {"nvmlSystemGetDriverVersion": "580.1", "nvmlDeviceGetCount": 1,'
        ' "nvmlDeviceGetHandleByIndex 0": 0}}'
    )
    mounts = "--- proc/self/mounts\nproc /proc proc rw,nosuid,hidepid=invisible 0 0\n"
    machine = host(tmp_path, INITIAL + mounts + process(5, fds=("/dev/nvidia0",)))
    document = Collector(machine, CollectOptions(holders=True)).sample()
    (note,) = document["warnings"]
    assert note["message"] == "hidepid hides the processes of others, so that some holders may be missing"
