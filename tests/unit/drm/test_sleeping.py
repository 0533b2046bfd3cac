"""A sleeping card is never woken: the captured machine records every file that was opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.unit.drm.kit import amdgpu, card, client, host_of, process, snapshot, source

MACHINES = Path(__file__).parents[2] / "machines"

# What never touches a card. Everything else below its folder may wake it.
HARMLESS = {"class", "vendor", "device", "revision", "power/runtime_status", "uevent", "boot_vga"}
BOOKS = {f"mem_info_{pool}_{what}" for pool in ("vram", "vis_vram", "gtt") for what in ("total", "used")}
STATIC = {"product_name", "unique_id", "current_compute_partition"}


def opened_below(host: CapturedHost, address: str) -> set[str]:
    return {path.rpartition(address + "/")[2] for path in host.opened if address + "/" in path}


@pytest.mark.parametrize("window", [0.0, 0.25])
@pytest.mark.parametrize(
    ("machine", "address", "allowed"),
    [
        ("hybrid-xe-sleeping-6.14", "0000:03:00.0", HARMLESS),
        ("hybrid-amd-sleeping-6.8", "0000:03:00.0", HARMLESS | BOOKS | STATIC),
        ("meteorlake-i915-6.8", "0000:00:0b.0", HARMLESS),
    ],
)
def test_nothing_is_opened_that_wakes_the_card(
    machine: str, address: str, allowed: set[str], window: float
) -> None:
    """nvtop#267 and #211, amdgpu_top#90, lunnova's spurious resumes."""
    host = CapturedHost(MACHINES / machine)
    document = json.loads(dumps(collect(host, CollectOptions(window=window, holders=True))))
    opened = opened_below(host, address)
    assert "power/runtime_status" in opened
    assert opened <= allowed
    row = next(r for r in document["adapters"] if r["pci_address"] == address)
    assert row["power_state"] == "suspended"


def test_the_sleeping_cards_nodes_and_fdinfo_are_not_opened() -> None:
    """xe's fdinfo takes a runtime reference; any ioctl on its node does."""
    host = CapturedHost(MACHINES / "hybrid-xe-sleeping-6.14")
    collect(host, CollectOptions(window=0.25))
    assert "proc/1400/fdinfo/10" in host.opened  # the integrated part's client
    assert "proc/1400/fdinfo/12" not in host.opened  # the sleeping card's
    assert [path for path in host.opened if "renderD129" in path] == []


def test_the_machines_hold_the_files_that_would_wake_the_cards() -> None:
    """Else the tests above would prove nothing."""
    tree = (MACHINES / "hybrid-amd-sleeping-6.8" / "tree.txt").read_text()
    for name in (
        "gpu_busy_percent",
        "gpu_metrics",
        "hwmon3/temp1_input",
        "current_link_speed",
        "pcie_bw",
        "ras/features",
    ):
        assert f"0000:03:00.0/{name}" in tree or f"0000:03:00.0/hwmon/{name}" in tree
    tree = (MACHINES / "hybrid-xe-sleeping-6.14" / "tree.txt").read_text()
    for name in ("hwmon/hwmon6/energy1_input", "tile0/gt0/freq0/act_freq", "current_link_speed"):
        assert f"0000:03:00.0/{name}" in tree
    assert "proc/1400/fdinfo/12" in tree


@pytest.mark.parametrize("status", ["suspended", "suspending"])
def test_a_card_on_its_way_to_sleep_is_left_alone(tmp_path: Path, status: str) -> None:
    host = host_of(tmp_path, card(status=status, files=amdgpu(gpu_busy_percent=5)))
    document = snapshot(host)
    assert document["adapters"][0]["power_state"] == "suspended"
    assert source(document, document["adapters"][0], "load.gpu_percent") == "null:device-suspended"


@pytest.mark.parametrize("status", ["active", "resuming", "unsupported"])
def test_a_card_that_is_awake_is_read(tmp_path: Path, status: str) -> None:
    document = snapshot(host_of(tmp_path, card(status=status, files=amdgpu(gpu_busy_percent=5))))
    assert document["adapters"][0]["load"]["gpu_percent"] == 5
    assert document["adapters"][0]["power_state"] == "active"


def test_a_card_whose_status_cant_be_read_is_left_alone(tmp_path: Path) -> None:
    host = host_of(tmp_path, card(status="half asleep", files=amdgpu(gpu_busy_percent=5)))
    document = snapshot(host)
    assert document["adapters"][0]["power_state"] == "unknown"
    assert source(document, document["adapters"][0], "load.gpu_percent").startswith("null:unknown-format")
    assert [path for path in host.opened if "gpu_busy_percent" in path] == []


def test_an_unknown_pci_driver_is_taken_for_one_that_wakes(tmp_path: Path) -> None:
    info = client(3, "futura", resident_vram0="1 MiB", shared_vram0="0")
    tree = card(driver="futura", vendor="1ed5", device="0100", status="suspended")
    host = host_of(tmp_path, tree + process(300, {4: ("/dev/dri/renderD128", info)}))
    snapshot(host)
    assert "proc/300/fdinfo/4" not in host.opened
