"""gpu_metrics tables that a C compiler laid out.

Made once from the structs of kgd_pp_interface.h: all bytes 0xff, then the fields below set, written by fwrite.
"""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.collect.amdgpu_metrics import LAYOUTS, GpuMetrics, offsets_of
from gpusnap.reading import measured

BLOBS = {
    "v1_3": (
        "eAABAzQARABIAP///////0kAHAD//3UA////////////////////////////////////////zgT//+EE//////////////////8Q"
        "AKAA/////////////////////////////////////////////wEAAAAAAAAA"
    ),
    "v1_4": (
        "IAEBBD0ANwD//5wBYgAsAP//////////AABAQg8AAAD/////////////////////EABAAf//////////////////////////////"
        "////////////////////////////////////////////////////////////////////////////////////////////////////"
        "////////////////////////////////////////////////////////////////////////////////////////////////////"
        "////////////////////NAj//////////////////////////////////////////////////xQF////////"
    ),
    "v1_5": (
        "aAEBBT4AOAD//50BYQAtAP//////////////////////////////////////////////////////////////////////////////"
        "/////////////////wAAAgAAAAAA/////////////////////wgA////////////////////////////////////////////////"
        "////////////////////////////////////////////////////////////////////////////////////////////////////"
        "////////////////////////////////////////////////////////////////////////////////////////////////////"
        "////////////////NQj//////////////////////////////////////////////////xUF////////"
    ),
    "v1_6": (
        "gAEBBj8AOQD//54BYAAuAP//////////////////////////////////////////////////////////////////////////////"
        "/////////////////wAAAwAAAAAA/////////////////////////////////////////////////////wQA////////////////"
        "////////////////////////////////////////////////////////////////////////////////////////////////////"
        "////////////////////////////////////////////////////////////////////////////////////////////////////"
        "////////////////////////////////////////////////Ngj/////////////////////////////////////////////////"
        "/xYF////////"
    ),
    "v2_2": (
        "gAACAsAS/////////////////////////////xwM////////////////////////////////////////////////////////////"
        "/yAD///QB///////////////////////////////////////////////////QAAAABAAAAA="
    ),
}
# sizeof and a few offsetof of the same compiler.
SIZES = {"v1_3": 120, "v1_4": 288, "v1_5": 360, "v1_6": 384, "v2_2": 128}


def table(name: str) -> GpuMetrics:
    return GpuMetrics(base64.b64decode(BLOBS[name]))


@pytest.mark.parametrize("name", BLOBS)
def test_a_layout_is_as_long_as_the_compilers(name: str) -> None:
    form, content = (int(part) for part in name[1:].split("_"))
    assert len(base64.b64decode(BLOBS[name])) == SIZES[name]
    assert -(-offsets_of(LAYOUTS[form, content])[1] // 8) * 8 == SIZES[name]
    assert table(name).version == (form, content)


def test_offsets_are_the_compilers() -> None:
    offsets, _ = offsets_of(LAYOUTS[1, 3])
    assert offsets["average_gfx_activity"] == 16
    assert offsets["current_uclk"] == 58
    assert offsets["pcie_link_width"] == 74
    assert offsets["indep_throttle_status"] == 112


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("v1_3", "temperature_edge", 52),
        ("v1_3", "temperature_mem", 72),
        ("v1_3", "average_gfx_activity", 73),
        ("v1_3", "average_umc_activity", 28),
        ("v1_3", "average_socket_power", 117),
        ("v1_3", "current_gfxclk", 1230),
        ("v1_3", "current_uclk", 1249),
        ("v1_3", "pcie_link_width", 16),
        ("v1_4", "temperature_hotspot", 61),
        ("v1_4", "average_socket_power", 412),
        ("v1_4", "energy_accumulator", 65536 * 1_000_000),
        ("v1_4", "current_gfxclk", 2100),
        ("v1_4", "current_uclk", 1300),
        ("v1_5", "energy_accumulator", 131072),
        ("v1_5", "pcie_link_width", 8),
        ("v1_5", "current_uclk", 1301),
        ("v1_6", "energy_accumulator", 196608),
        ("v1_6", "pcie_link_width", 4),
        ("v1_6", "current_uclk", 1302),
        ("v2_2", "current_gfxclk", 800),
        ("v2_2", "current_uclk", 2000),
    ],
)
def test_a_field_is_read_where_the_compiler_put_it(name: str, field: str, value: int) -> None:
    assert table(name).get(field) == measured(value, f"gpu_metrics.{field}")


def test_all_ones_is_not_available() -> None:
    """amdgpu_top prints 65535 there."""
    assert table("v1_3").get("energy_accumulator").provenance == "null:not-exposed gpu_metrics.energy_accumulator"
    assert table("v1_4").throttle_reasons().value is None


def test_throttlers_by_name() -> None:
    assert table("v1_3").throttle_reasons().value == ["ppt0"]
    assert table("v2_2").throttle_reasons().value == ["sppt", "temp_hotspot"]


def test_a_throttler_without_a_name_is_still_told() -> None:
    blob = bytearray(base64.b64decode(BLOBS["v1_3"]))
    blob[112:120] = (1 << 60 | 1 << 47).to_bytes(8, "little")
    assert GpuMetrics(bytes(blob)).throttle_reasons().value == ["prochot_gfx", "unknown_0x1000000000000000"]


@pytest.mark.parametrize("cut", [0, 3, 4, 60, 119])
def test_a_torn_table_says_nothing(cut: int) -> None:
    assert GpuMetrics(base64.b64decode(BLOBS["v1_3"])[:cut]).version is None


def test_a_layout_that_is_not_known_says_nothing() -> None:
    blob = bytearray(base64.b64decode(BLOBS["v1_3"]))
    blob[3] = 99
    assert GpuMetrics(bytes(blob)).get("temperature_edge").value is None


@given(st.binary(max_size=400))
def test_no_bytes_break_the_parser(blob: bytes) -> None:
    table = GpuMetrics(blob)
    assert table.version is None or table.version in LAYOUTS
    table.throttle_reasons()
