"""amdgpu's sysfs files, one by one: pools, sensors, states, error counters, names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.drm.kit import GIB, MIB, adapter, amdgpu, card, host_of, snapshot, source

PATH = "sys/devices/pci0000:00/0000:03:00.0"


def read(tmp_path: Path, more: str = "", **files: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the card's row, the document)."""
    document = snapshot(host_of(tmp_path, card(files=amdgpu(**files)) + more))
    return adapter(document), document


@pytest.mark.parametrize(("used", "total"), [(98 * GIB, GIB), (2**63 - 5, GIB), (488 * MIB, 487 * MIB)])
def test_drm_14_and_15_more_used_than_there_is(tmp_path: Path, used: int, total: int) -> None:
    """radeontop#108 and #114: 98 GB on a card of 1 GB, a kernel counter's bug; radeontop#168: 100.2 %."""
    found, document = read(tmp_path, total=total, used=used)
    assert found["memory"]["used_bytes"] is None
    assert found["memory"]["free_bytes"] is None
    assert found["accounting"]["unattributed_bytes"] is None
    assert source(document, found, "memory.used_bytes") == "null:out-of-range"
    assert any(str(used) in w["message"] for w in document["warnings"] if w["code"] == "out-of-range")


def test_drm_43_a_kernel_without_memory_files(tmp_path: Path) -> None:
    """ROC-smi#90, MangoHud#14: mem_info_* came with Linux 5.1."""
    document = snapshot(host_of(tmp_path, card(files={"gpu_busy_percent": 5})))
    found = adapter(document)
    assert found["memory"]["total_bytes"] is None
    assert source(document, found, "memory.total_bytes") == "null:not-exposed sysfs.mem_info_vram_total"
    assert found["load"]["gpu_percent"] == 5


def test_drm_12_vram_and_gtt_are_never_added(tmp_path: Path) -> None:
    found, _ = read(tmp_path, total=96 * GIB, used=GIB, mem_info_gtt_total=96 * GIB, mem_info_gtt_used=2 * GIB)
    assert (found["memory"]["total_bytes"], found["memory"]["used_bytes"]) == (96 * GIB, GIB)
    assert (found["memory"]["shared_total_bytes"], found["memory"]["shared_used_bytes"]) == (96 * GIB, 2 * GIB)


@pytest.mark.parametrize(
    ("files", "kind", "memory"),
    [
        ({"hwmon/hwmon0/in1_label": "vddnb"}, "integrated", "unified"),
        ({"hwmon/hwmon0/in0_label": "vddgfx"}, "discrete", "dedicated"),
    ],
)
def test_an_apu_is_told_by_its_northbridge_voltage(
    tmp_path: Path, files: dict[str, Any], kind: str, memory: str
) -> None:
    """Sizes fail on carve-outs of 48 and 96 GiB."""
    found, _ = read(tmp_path, total=96 * GIB, used=GIB, **files)
    assert (found["kind"], found["memory"]["kind"]) == (kind, memory)


def test_mi300a_is_an_apu_without_that_voltage(tmp_path: Path) -> None:
    files = {"hwmon/hwmon0/name": "amdgpu", "gpu_busy_percent": 3}
    document = snapshot(host_of(tmp_path, card(device="74a0", files=files)))
    assert adapter(document)["kind"] == "integrated"


@pytest.mark.parametrize(
    ("files", "leaf", "value"),
    [
        ({"hwmon/hwmon0/power1_average": 85182000}, ("power", "draw_watts"), 85.182),
        ({"hwmon/hwmon0/power1_input": 24000000}, ("power", "draw_watts"), 24),
        ({"hwmon/hwmon0/power1_cap": 290000000}, ("power", "limit_watts"), 290),
        ({"hwmon/hwmon0/temp1_input": -5000}, ("temperature", "gpu_celsius"), -5),
        (
            {"hwmon/hwmon0/temp2_label": "junction", "hwmon/hwmon0/temp2_input": 70000},
            ("temperature", "gpu_celsius"),
            70,
        ),
        ({"hwmon/hwmon0/temp1_input": 999000}, ("temperature", "gpu_celsius"), None),
        ({"hwmon/hwmon0/pwm1": 255}, ("temperature", "fan_percent"), 100),
        ({"hwmon/hwmon0/pwm1": 0}, ("temperature", "fan_percent"), 0),
        ({"hwmon/hwmon0/pwm1": 256}, ("temperature", "fan_percent"), 100),
        ({"hwmon/hwmon0/pwm1": 300}, ("temperature", "fan_percent"), None),
        ({"gpu_busy_percent": 0}, ("load", "gpu_percent"), 0),
        ({"gpu_busy_percent": 37100}, ("load", "gpu_percent"), None),
        ({"mem_busy_percent": 100}, ("load", "memory_bandwidth_percent"), 100),
        ({"pp_dpm_sclk": "0: 300Mhz\n1: 944Mhz *\n2: 1050Mhz"}, ("clocks", "graphics_mhz"), 944),
        ({"pp_dpm_sclk": "S: 19Mhz *\n0: 500Mhz\n1: 2600Mhz"}, ("clocks", "graphics_mhz"), 19),
        ({"pp_dpm_sclk": "0: 300Mhz\n1: 944Mhz"}, ("clocks", "graphics_mhz"), None),
        ({"pp_dpm_mclk": "0: 96Mhz *"}, ("clocks", "memory_mhz"), 96),
        ({"current_link_speed": "16.0 GT/s PCIe"}, ("pcie", "generation"), 4),
        ({"current_link_speed": "Unknown"}, ("pcie", "generation"), None),
        ({"max_link_width": 255}, ("pcie", "max_width"), None),
        ({"current_link_width": 0}, ("pcie", "width"), None),
    ],
)
def test_a_file_gives_its_leaf_in_the_documents_unit(
    tmp_path: Path, files: dict[str, Any], leaf: tuple[str, str], value: object
) -> None:
    found, _ = read(tmp_path, **files)
    assert found[leaf[0]][leaf[1]] == value


@pytest.mark.parametrize(
    ("errno", "reason"),
    [
        ("EACCES", "no-permission"),
        ("EPERM", "device-busy"),
        ("EBUSY", "device-busy"),
        ("EOPNOTSUPP", "not-supported"),
        ("EINVAL", "not-supported"),
        ("ENODEV", "device-lost"),
        ("EIO", "failed"),
    ],
)
def test_a_refusal_has_its_reason(tmp_path: Path, errno: str, reason: str) -> None:
    """A card in reset answers EPERM up to Linux 6.12, EBUSY in 7.2."""
    found, document = read(tmp_path, f"--- {PATH}/gpu_busy_percent !{errno}\n")
    assert source(document, found, "load.gpu_percent") == f"null:{reason} sysfs.gpu_busy_percent: {errno}"


@pytest.mark.parametrize("text", ["", "five\n", "5", "5 %\n", "0x5\n", "\x00\n"])
def test_what_is_no_number_is_no_figure(tmp_path: Path, text: str) -> None:
    found, document = read(tmp_path, f"--- {PATH}/gpu_busy_percent\n{text}")
    if text == "5":  # the archive's next line would be its content: written without its end
        host = host_of(tmp_path / "torn", card(files=amdgpu()))
        host.overlay({f"{PATH}/gpu_busy_percent": _file(b"5")})
        document = snapshot(host)
        found = adapter(document)
    assert found["load"]["gpu_percent"] is None
    assert source(document, found, "load.gpu_percent").startswith("null:unknown-format sysfs.gpu_busy_percent")


def _file(content: bytes) -> Any:
    from gpusnap.captured_tree import Entry

    return Entry(data=content)


def test_error_counters_of_all_blocks_are_summed(tmp_path: Path) -> None:
    found, _ = read(
        tmp_path,
        **{
            "ras/umc_err_count": "ue: 1\nce: 20\nde: 3",
            "ras/gfx_err_count": "ue: 0\nce: 5",
            "ras/features": "feature mask: 0x3f",
            "ras/gpu_vram_bad_pages": "0x01 : 0x1000 : R\n0x02 : 0x1000 : R\n0x03 : 0x1000 : P",
        },
    )
    assert found["ecc"]["uncorrected_volatile"] == 1
    assert found["ecc"]["corrected_volatile"] == 25
    assert found["ecc"]["enabled"] is True
    assert found["ecc"]["retired_pages"] == 2
    assert found["ecc"]["corrected_aggregate"] is None
    assert found["health"] == "degraded"


def test_a_block_that_cant_be_read_leaves_no_partial_sum(tmp_path: Path) -> None:
    more = (
        f"--- {PATH}/ras/gfx_err_count\nQuery currently inaccessible\n--- {PATH}/ras/umc_err_count\nue: 7\nce: 7\n"
    )
    found, document = read(tmp_path, more)
    assert found["ecc"]["uncorrected_volatile"] is None
    assert source(document, found, "ecc.uncorrected_volatile") == "null:device-busy Query currently inaccessible"
    assert found["health"] == "ok"


IDS = """\
# List
1.0.0
73BF,\tC0,\tAMD Radeon RX 6900 XT
73BF,\tC1,\tAMD Radeon RX 6800 XT
73BF,\tC3,\tAMD Radeon RX 6800
"""
PCI = """\
1002  AMD/ATI
\t73bf  Navi 21 [Radeon RX 6800/6900 XT]
\t\t1002 0e3a  Radeon RX 6800
8086  Intel
\t73bf  Not this
"""


@pytest.mark.parametrize(
    ("product", "revision", "tables", "name"),
    [
        ("AMD Instinct MI100", "0x01", True, "AMD Instinct MI100"),
        (None, "0xc1", True, "AMD Radeon RX 6800 XT"),
        (None, "0xc3", True, "AMD Radeon RX 6800"),
        (None, "0xff", True, "Navi 21 [Radeon RX 6800/6900 XT]"),
        (None, "0xc1", False, "AMD GPU 1002:73bf"),
    ],
)
def test_a_name_comes_from_the_card_then_from_the_tables(
    tmp_path: Path, product: str | None, revision: str, tables: bool, name: str
) -> None:
    files: dict[str, Any] = {"revision": revision}
    if product is not None:
        files["product_name"] = product
    tree = card(device="73bf", files=amdgpu(**files))
    if tables:
        tree += f"--- root/usr/share/libdrm/amdgpu.ids\n{IDS}--- root/usr/share/misc/pci.ids\n{PCI}"
    assert adapter(snapshot(host_of(tmp_path, tree)))["model"] == name


def test_drm_25_a_card_keeps_its_identity_across_renumbering(tmp_path: Path) -> None:
    """amdgpud#11, amdgpu-clocks#48, gamemode#363: cardN changes at boot."""
    one, other = ("0000:03:00.0", amdgpu(used=GIB)), ("0000:07:00.0", amdgpu(used=2 * GIB))
    before = snapshot(host_of(tmp_path / "a", card(one[0], 0, files=one[1]) + card(other[0], 1, files=other[1])))
    after = snapshot(host_of(tmp_path / "b", card(one[0], 1, files=one[1]) + card(other[0], 0, files=other[1])))
    for document, indexes in ((before, [0, 1]), (after, [1, 0])):
        assert [r["id"] for r in document["adapters"]] == ["pci:0000:03:00.0", "pci:0000:07:00.0"]
        assert [r["memory"]["used_bytes"] for r in document["adapters"]] == [GIB, 2 * GIB]
        assert [r["index"] for r in document["adapters"]] == indexes


def test_a_driver_built_elsewhere_has_its_own_version(tmp_path: Path) -> None:
    document = snapshot(host_of(tmp_path, card(files=amdgpu()) + "--- sys/module/amdgpu/version\n6.10.5\n"))
    assert adapter(document)["driver_version"] == "6.10.5"


def test_pcie_bandwidth_is_never_asked_for(tmp_path: Path) -> None:
    """Reading pcie_bw sleeps for a second inside the kernel."""
    host = host_of(tmp_path, card(files=amdgpu(pcie_bw="1 2 256")))
    snapshot(host)
    assert [path for path in host.opened if path.endswith("pcie_bw")] == []
