"""Public reports on AMD, Intel and DRM tools, on the kept machines that show their case.

`report_NNN` numbers the reports on tools of all vendors, `drm_NN` those on DRM tools; each docstring names its
public thread. What is not here stands in the test of its part under the same number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.unit.drm.kit import amd_client, amdgpu, card, host_of, process, row, snapshot, source

MACHINES = Path(__file__).parents[2] / "machines"
KIB, MIB = 1024, 1024**2


def machine(name: str, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collect(CapturedHost(MACHINES / name), CollectOptions(**options))))
    return document


def rows_of(document: dict[str, Any], pid: int) -> list[dict[str, Any]]:
    return [row for row in document["processes"] if row["pid"] == pid]


def test_drm_01_a_text_that_changed_again(tmp_path: Path) -> None:
    """nvtop#158: Linux 5.19 changed the text and every column went empty; unknown text is null with a reason."""
    future = "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-resident-vram:\t16 pages\ndrm-resident-gtt:\t0\n"
    tree = card(files=amdgpu()) + process(300, {4: ("/dev/dri/renderD128", future)})
    document = snapshot(host_of(tmp_path, tree))
    assert row(document, 300)["vram_bytes"] is None
    assert source(document, row(document, 300), "vram_bytes") == "null:unknown-format fdinfo.drm-resident-vram"


def test_report_052_linux_5_15(tmp_path: Path) -> None:
    """amdgpu_top#132, drm 2: the format of 5.14 to 5.18, no entries even as root."""
    document = machine("rx580-5.15")
    assert [(r["pid"], r["vram_bytes"]) for r in document["processes"]] == [(3000, 204800 * KIB)]


def test_drm_03_the_sum_of_processes_stays_within_the_card() -> None:
    """amdgpu_top#7: systemd and gnome-shell share a client."""
    document = machine("rx7900-desktop-6.14")
    books = document["adapters"][0]["accounting"]
    assert books["attributed_bytes"] <= document["adapters"][0]["memory"]["used_bytes"]
    assert [rows_of(document, pid)[0]["vram_bytes"] for pid in (1, 1967, 2300)] == [0, 155068 * KIB + 48 * MIB, 0]


def test_drm_04_a_child_has_not_what_it_inherited() -> None:
    """raspberrypi/linux#6784: `sleep 300` shown with the compositor's memory and load."""
    document = machine("rpi5-v3d-6.12", window=0.25)
    (sleep,) = rows_of(document, 2501)
    assert (sleep["spill_bytes"], sleep["gpu_percent"], sleep["shared_with"]) == (0, 0, [2390])
    assert source(document, sleep, "gpu_percent") == "computed:inherited-client"


def test_drm_07_a_model_in_system_memory_is_seen() -> None:
    """nvtop PR492: 24 GB on an APU shown as 5 MiB."""
    (server,) = rows_of(machine("strixhalo-512m-6.18"), 5100)
    assert (server["vram_bytes"], server["spill_bytes"]) == (5348 * KIB, 25258000 * KIB)


@pytest.mark.parametrize("name", ["strixhalo-512m-6.18", "strixhalo-96g-6.18"])
def test_drm_08_to_12_an_apus_pools_stand_apart(name: str) -> None:
    """nvtop PR428, btop PR1740, homelab-monitor PR237, ollama#12062, ROCm#6004: carve-out alone, or both added."""
    memory = machine(name)["adapters"][0]["memory"]
    carve_out, gtt = {
        "strixhalo-512m-6.18": (536870912, 133143986176),
        "strixhalo-96g-6.18": (103079215104, 103079215104),
    }[name]
    assert (memory["kind"], memory["total_bytes"], memory["shared_total_bytes"]) == ("unified", carve_out, gtt)


def test_drm_13_the_total_is_the_physical_size_and_says_its_source() -> None:
    """radeontop#163: 487M instead of 512M, the usable heap."""
    document = machine("strixhalo-512m-6.18")
    assert source(document, document["adapters"][0], "memory.total_bytes") == "measured:sysfs.mem_info_vram_total"


def test_drm_23_every_device_is_there_under_its_own_address() -> None:
    """MangoHud#1879: process memory 0, since the iGPU was looked at."""
    document = machine("hybrid-amd-sleeping-6.8")
    assert {r["pci_address"] for r in document["adapters"]} == {"0000:03:00.0", "0000:08:00.0"}
    assert {r["adapter"] for r in rows_of(document, 1300)} == {"pci:0000:03:00.0", "pci:0000:08:00.0"}


def test_drm_26_a_die_without_sensors() -> None:
    """nvtop#300: abort on MI250's second die."""
    document = machine("rocm-server-6.8")
    second = document["adapters"][1]
    assert second["temperature"]["gpu_celsius"] is None
    assert second["memory"]["used_bytes"] == 25000000
    assert source(document, second, "temperature.gpu_celsius") == "null:not-exposed no hwmon"


def test_drm_27_a_container_sees_its_own_processes() -> None:
    """nvtop#239: in Docker no process information."""
    document = machine("container-renamed-nodes-6.8")
    assert document["host"]["container"] is True
    assert {(r["pid"], r["pid_namespace"]) for r in document["processes"]} == {(7, "container"), (8, "container")}


def test_drm_35_unknown_is_not_zero() -> None:
    """MangoHud#1936, PR1631: an Arc card with 0.0 GiB for ever."""
    document = machine("arc-a770-i915-6.6")
    assert document["adapters"][0]["memory"]["used_bytes"] is None
    assert rows_of(document, 3456)[0]["vram_bytes"] == 5900 * MIB


def test_drm_36_no_denominator_is_invented() -> None:
    """glances#3611: 93 % on a Raspberry Pi."""
    memory = machine("rpi5-v3d-6.12")["adapters"][0]["memory"]
    assert [memory[f"{leaf}_bytes"] for leaf in ("total", "used", "free", "shared_total")] == [None] * 4


def test_drm_40_what_the_kernel_says_is_said() -> None:
    """gpu-utils#118: on Polaris the driver's GTT total equals the card's."""
    document = machine("rx580-5.15")
    memory = document["adapters"][0]["memory"]
    assert memory["shared_total_bytes"] == memory["total_bytes"] == 4294967296
    assert (
        source(document, document["adapters"][0], "memory.shared_total_bytes")
        == "measured:sysfs.mem_info_gtt_total"
    )


@pytest.mark.parametrize("name", sorted(folder.name for folder in MACHINES.iterdir()))
def test_drm_41_every_document_is_strict_json(name: str) -> None:
    """nvtop#438, #432: invalid JSON; N/A taken for a number."""
    raw = dumps(collect(CapturedHost(MACHINES / name), CollectOptions()))

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    json.loads(raw, parse_constant=refuse)


def test_drm_42_shared_buffers_bound_the_rest_from_both_sides(tmp_path: Path) -> None:
    """astra-monitor PR239: two processes count the same exported buffers."""
    shared = amd_client(1, "300 MiB", shared="250 MiB"), amd_client(2, "300 MiB", shared="250 MiB")
    tree = card(files=amdgpu(used=400 * MIB))
    tree += process(300, {4: ("/dev/dri/renderD128", shared[0])})
    tree += process(301, {4: ("/dev/dri/renderD128", shared[1])})
    document = snapshot(host_of(tmp_path, tree))
    books = document["adapters"][0]["accounting"]
    assert books["attributed_bytes"] == 600 * MIB
    assert books["unattributed_bytes"] is None
    assert source(document, document["adapters"][0], "accounting.unattributed_bytes") == "null:over-attributed"
    assert books["attributed_private_bytes"] == 100 * MIB
    assert books["unattributed_max_bytes"] == 300 * MIB


def test_report_070_more_than_the_card_has_is_no_figure(tmp_path: Path) -> None:
    """xpumanager#145; buffers of a peer count on both cards too."""
    tree = card(files=amdgpu(total=4096 * MIB, used=3642 * MIB))
    tree += process(300, {4: ("/dev/dri/renderD128", amd_client(1, "7692 MiB"))})
    document = snapshot(host_of(tmp_path, tree))
    assert row(document, 300)["vram_bytes"] is None
    assert source(document, row(document, 300), "vram_bytes") == "null:out-of-range"
    assert document["adapters"][0]["accounting"]["attributed_bytes"] == 0
    (note,) = [w for w in document["warnings"] if w["pid"] == 300]
    assert f"{7692 * MIB} of {4096 * MIB}" in note["message"]


def test_report_089_a_process_has_a_row_on_each_of_its_cards(tmp_path: Path) -> None:
    """ollama#17251: 12 GB by its own word, about 90 over four cards."""
    tree, fds = "", {}
    for number in range(4):
        address = f"0000:0{number + 3}:00.0"
        tree += card(address, number, files=amdgpu(total=32 << 30, used=24 << 30))
        fds[number + 4] = (f"/dev/dri/renderD{128 + number}", amd_client(number + 1, "23040 MiB", pdev=address))
    document = snapshot(host_of(tmp_path, tree + process(300, fds, name="ollama")))
    assert [r["vram_bytes"] for r in rows_of(document, 300)] == [23040 * MIB] * 4
    assert sum(r["vram_bytes"] for r in rows_of(document, 300)) == 90 << 30


def test_two_vendors_stand_in_one_snapshot() -> None:
    document = machine("apu-beside-nvidia-6.11")
    assert [(r["vendor"], r["processes_listed"]) for r in document["adapters"]] == [
        ("nvidia", "complete"),
        ("amd", "complete"),
    ]


def test_a_card_in_reset_keeps_its_books() -> None:
    document = machine("amdgpu-in-reset-6.12")
    card_row = document["adapters"][0]
    assert card_row["memory"]["used_bytes"] == 3000000000
    assert source(document, card_row, "load.gpu_percent").startswith("null:device-busy")
