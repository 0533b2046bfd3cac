"""Functions on the bus that no driver serves are seen; displays without an engine are not taken for cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusnap.collect.drm_devices import is_pci_address, pci_address
from tests.unit.drm.kit import amdgpu, card, host_of, snapshot


def function(address: str, kind: str, vendor: str, device: str = "1234", more: str = "") -> str:
    path = f"devices/pci0000:00/{address}"
    texts = {"class": kind, "vendor": f"0x{vendor}", "device": f"0x{device}"}
    return f"--- sys/bus/pci/devices/{address} -> ../../../{path}\n" + "".join(
        f"--- sys/{path}/{name}\n{text}\n" for name, text in texts.items()
    ) + more  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "vendor", "seen"),
    [
        ("0x030000", "10de", True),  # VGA
        ("0x030200", "10de", True),  # 3D controller: a card without outputs
        ("0x038000", "1002", True),  # other display: the second card of a laptop
        ("0x120000", "19e5", True),  # accelerator: an Ascend NPU
        ("0x030000", "1a03", False),  # ASPEED, a BMC
        ("0x030000", "102b", False),  # Matrox, a BMC
        ("0x030000", "19e5", False),  # Huawei's iBMC
        ("0x030000", "1234", False),  # bochs
        ("0x030000", "1b36", False),  # QXL
        ("0x030000", "15ad", False),  # VMware
        ("0x038000", "1af4", False),  # virtio
        ("0x020000", "8086", False),  # a network card
        ("0x040300", "1002", False),  # a card's sound function
    ],
)
def test_which_functions_are_adapters(tmp_path: Path, kind: str, vendor: str, seen: bool) -> None:
    document = snapshot(host_of(tmp_path, function("0000:05:00.0", kind, vendor)))
    assert [row["id"] for row in document["adapters"]] == (["pci:0000:05:00.0"] if seen else [])


def test_a_card_that_fell_off_its_driver_is_a_row_without_figures(tmp_path: Path) -> None:
    tree = card(files=amdgpu()) + function("0000:05:00.0", "0x030200", "10de", "20b5")
    document = snapshot(host_of(tmp_path, tree))
    assert [row["id"] for row in document["adapters"]] == ["pci:0000:03:00.0", "pci:0000:05:00.0"]
    lost = document["adapters"][1]
    assert (lost["vendor"], lost["model"], lost["driver"]) == ("nvidia", "NVIDIA GPU 10de:20b5", None)
    assert document["provenance"][lost["provenance"]]["driver"] == "null:none no driver is bound"
    assert lost["memory"]["total_bytes"] is None
    assert lost["processes_listed"] == "unavailable"


def test_a_virtual_function_is_its_cards_business(tmp_path: Path) -> None:
    more = "--- sys/devices/pci0000:00/0000:05:00.4/physfn -> ../0000:05:00.0\n"
    document = snapshot(host_of(tmp_path, function("0000:05:00.4", "0x030200", "10de", more=more)))
    assert document["adapters"] == []


def test_a_screen_without_a_render_node_is_no_adapter(tmp_path: Path) -> None:
    """simpledrm and vc4: a primary node, no engine behind it."""
    path = "devices/platform/simple-framebuffer.0"
    tree = (
        f"--- sys/class/drm/card0 -> ../../{path}/drm/card0\n--- sys/{path}/drm/card0/dev\n226:0\n"
        f"--- sys/{path}/driver -> ../../../bus/platform/drivers/simple-framebuffer\n"
    )
    document = snapshot(host_of(tmp_path, tree))
    assert document["adapters"] == []
    assert document["processes"] == []


def test_a_machine_without_any_card_is_a_valid_empty_answer(tmp_path: Path) -> None:
    document = snapshot(host_of(tmp_path, ""))
    assert (document["adapters"], document["processes"]) == ([], [])
    assert {b["status"] for b in document["backends"]} == {"absent"}


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("devices/pci0000:00/0000:00:01.1/0000:03:00.0", "0000:03:00.0"),
        ("devices/pci10000:e0/10000:e0:06.0/10000:e1:00.0", "10000:e1:00.0"),  # behind a VMD controller
        ("devices/pci0000:00/0000:00:04.0/virtio2", "0000:00:04.0"),
        ("devices/platform/axi/1002000000.v3d", None),
        ("devices/platform/amdgpu_xcp_0", None),
    ],
)
def test_a_devices_place_on_the_bus(path: str, address: str | None) -> None:
    assert pci_address(path) == address


@pytest.mark.parametrize(
    "name", ["0000:03:00", "0000:03:00.0x", "module", "0000-03-00.0", "0000:0g:00.0", "bind", ""]
)
def test_what_is_no_pci_address(name: str) -> None:
    assert not is_pci_address(name)
