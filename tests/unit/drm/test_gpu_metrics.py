"""gpu_metrics tables that a C compiler laid out.

Made once from the structs of kgd_pp_interface.h: all bytes 0xff, then the fields below set, written by fwrite; the
later ones packed here, at offsets that gcc's offsetof gave for Linux 7.2.
"""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.collect.amdgpu_metrics import GpuMetrics, offsets_of
from gpusnap.collect.amdgpu_metrics_layouts import LAYOUTS
from gpusnap.reading import measured
from tests.unit.drm.kit import adapter, amdgpu, card, host_of, snapshot, source

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
    assert -(-offsets_of(LAYOUTS[form, content, SIZES[name]])[1] // 8) * 8 == SIZES[name]
    assert table(name).version == (form, content)


def test_offsets_are_the_compilers() -> None:
    offsets, _ = offsets_of(LAYOUTS[1, 3, 120])
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
        ("v1_4", "curr_socket_power", 412),
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
    assert table.version is None or (*table.version, len(blob)) in LAYOUTS or table.version == (1, 9)
    table.throttle_reasons()


# Version, sizeof, and of each field its offsetof, its code and a value.
PACKED: dict[str, tuple[tuple[int, int], int, dict[str, tuple[int, str, int]]]] = {
    "v1.0 of Vega 20, Linux 5.10": (
        (1, 0),
        80,
        {
            "temperature_edge": (16, "H", 41),
            "temperature_hotspot": (18, "H", 43),
            "temperature_mem": (20, "H", 39),
            "average_gfx_activity": (28, "H", 12),
            "average_umc_activity": (30, "H", 7),
            "average_socket_power": (34, "H", 25),
            "current_gfxclk": (54, "H", 808),
            "current_uclk": (58, "H", 350),
            "pcie_link_width": (74, "B", 16),
        },
    ),
    "v1.6 as released in Linux 6.14": (
        (1, 6),
        1664,
        {
            "temperature_hotspot": (4, "H", 62),
            "temperature_mem": (6, "H", 58),
            "curr_socket_power": (10, "H", 414),
            "average_gfx_activity": (12, "H", 97),
            "average_umc_activity": (14, "H", 31),
            "energy_accumulator": (16, "Q", 65536 * 1234),
            "pcie_link_width": (60, "H", 16),
            "current_gfxclk": (264, "H", 2105),
            "current_uclk": (304, "H", 1303),
        },
    ),
    "v1.7": (
        (1, 7),
        2208,
        {
            "average_umc_activity": (14, "H", 32),
            "energy_accumulator": (24, "Q", 65536 * 55),
            "pcie_link_width": (68, "H", 8),
            "current_gfxclk": (296, "H", 2106),
            "current_uclk": (336, "H", 1304),
        },
    ),
    "v1.8": (
        (1, 8),
        3872,
        {
            "curr_socket_power": (10, "H", 415),
            "energy_accumulator": (24, "Q", 65536 * 56),
            "pcie_link_width": (68, "H", 4),
            "current_gfxclk": (296, "H", 2107),
            "current_uclk": (336, "H", 1305),
        },
    ),
    "v2.0 of Renoir, Linux 5.11": (
        (2, 0),
        120,
        {
            "temperature_gfx": (16, "H", 4513),
            "average_gfxclk_frequency": (68, "H", 401),
            "average_uclk_frequency": (72, "H", 1201),
            "current_gfxclk": (80, "H", 400),
            "current_uclk": (84, "H", 1200),
        },
    ),
    "v2.1 of Yellow Carp": (
        (2, 1),
        120,
        {
            "temperature_gfx": (4, "H", 4713),
            "average_gfxclk_frequency": (64, "H", 403),
            "average_uclk_frequency": (68, "H", 1203),
            "throttle_status": (108, "I", 0),
        },
    ),
    "v2.3 of Van Gogh": (
        (2, 3),
        152,
        {
            "temperature_gfx": (4, "H", 4813),
            "current_gfxclk": (76, "H", 1600),
            "indep_throttle_status": (120, "Q", 1 << 36),
        },
    ),
    "v2.4 of Van Gogh": (
        (2, 4),
        168,
        {"current_uclk": (80, "H", 800), "indep_throttle_status": (120, "Q", 1 << 6)},
    ),
    "v3.0 of Strix": (
        (3, 0),
        264,
        {
            "temperature_gfx": (4, "H", 5025),
            "average_gfxclk_frequency": (174, "H", 2900),
            "average_uclk_frequency": (186, "H", 1000),
        },
    ),
}


def packed(name: str) -> bytes:
    version, size, fields = PACKED[name]
    blob = bytearray(b"\xff" * size)
    struct.pack_into("<HBB", blob, 0, size, *version)
    for offset, code, value in fields.values():
        struct.pack_into("<" + code, blob, offset, value)
    return bytes(blob)


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_table_is_read_field_by_field(name: str) -> None:
    version, _, fields = PACKED[name]
    metrics = GpuMetrics(packed(name))
    assert metrics.version == version
    for field, (_, _, value) in fields.items():
        assert metrics.get(field) == measured(value, f"gpu_metrics.{field}"), field


@pytest.mark.parametrize("name", PACKED)
def test_what_is_all_ones_in_a_packed_table_is_no_figure(name: str) -> None:
    """65535 degrees, and the 255 lanes of v1.0."""
    version, size, fields = PACKED[name]
    empty = GpuMetrics(struct.pack("<HBB", size, *version) + b"\xff" * (size - 4))
    assert empty.version == version
    assert [field for field in fields if empty.get(field).value is not None] == []


@pytest.mark.parametrize("name", PACKED)
def test_a_version_of_another_size_is_not_guessed_at(name: str) -> None:
    """v1.6 had two layouts: read by the wrong one, its energy was a bandwidth and its clock a time stamp."""
    version, size, _ = PACKED[name]
    longer = struct.pack("<HBB", size + 8, *version) + b"\x01" * (size + 4)
    assert GpuMetrics(longer).version is None


CELSIUS, WATTS, MHZ, PERCENT, NONE = 2, 3, 1, 10, 0
U16, U32, U64 = 2, 4, 6


def attribute(unit: int, kind: int, ident: int, values: list[int]) -> bytes:
    """AMDGPU_METRICS_ENC_ATTR of kgd_pp_interface.h: unit << 24 | type << 20 | id << 10 | how many."""
    code = {U16: "H", U32: "I", U64: "Q"}[kind]
    what = unit << 24 | kind << 20 | ident << 10 | len(values)
    return struct.pack(f"<Q{len(values)}{code}", what, *values)


def described(*attributes: bytes, count: int | None = None) -> bytes:
    body = struct.pack("<i", len(attributes) if count is None else count) + b"".join(attributes)
    return struct.pack("<HBB", 4 + len(body), 1, 9) + body


def test_a_table_that_describes_itself_is_read_by_what_it_says() -> None:
    """v1.9, MI300 in Linux 7.2: fields in any order, unpadded, with ones that nobody knows yet between."""
    metrics = GpuMetrics(
        described(
            attribute(CELSIUS, U16, 0, [61]),
            attribute(NONE, U32, 900, [7, 8, 9]),
            attribute(WATTS, U16, 3, [413]),
            attribute(PERCENT, U16, 4, [98]),
            attribute(NONE, U64, 7, [65536 * 1000]),
            attribute(NONE, U16, 16, [16]),
            attribute(MHZ, U16, 33, [2100, 2000, 1900, 1800, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF]),
            attribute(MHZ, U16, 37, [0xFFFF]),
        )
    )
    assert metrics.version == (1, 9)
    assert metrics.get("temperature_hotspot").value == 61
    assert metrics.get("curr_socket_power").value == 413
    assert metrics.get("average_gfx_activity").value == 98
    assert metrics.get("energy_accumulator", 2**-16).value == 1000
    assert metrics.get("pcie_link_width").value == 16
    assert metrics.get("current_gfxclk").value == 2100
    assert metrics.get("current_uclk").value is None
    assert metrics.get("temperature_mem").value is None


def test_a_described_field_in_another_unit_is_left() -> None:
    assert GpuMetrics(described(attribute(NONE, U16, 0, [6100]))).get("temperature_hotspot").value is None


@pytest.mark.parametrize(
    "blob",
    [
        described(),  # no attribute
        described(attribute(CELSIUS, U16, 0, [61]), count=2),
        described(attribute(CELSIUS, U16, 0, [61]), count=-1),
        described(attribute(CELSIUS, U16, 0, [61]), count=2**31 - 1),
        described(struct.pack("<QH", CELSIUS << 24 | 9 << 20 | 1, 61)),  # a type of unknown length
        described(struct.pack("<QH", CELSIUS << 24 | U16 << 20 | 1023, 61)),  # more values than there are bytes
        struct.pack("<HBB", 4, 1, 9),
    ],
)
def test_a_described_table_that_is_torn_says_nothing(blob: bytes) -> None:
    assert GpuMetrics(blob).get("temperature_hotspot").value is None


@given(st.binary(max_size=200))
def test_no_described_bytes_break_the_parser(body: bytes) -> None:
    GpuMetrics(struct.pack("<HBB", 4 + len(body), 1, 9) + body).throttle_reasons()


def shown(tmp_path: Path, blob: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the card's row, the document) where nothing but gpu_metrics tells of the chip."""
    files = {name: value for name, value in amdgpu().items() if not name.startswith("hwmon")}
    table = f"--- sys/devices/pci0000:00/0000:03:00.0/gpu_metrics base64\n{base64.b64encode(blob).decode()}\n"
    document = snapshot(host_of(tmp_path, card(files=files) + table))
    return adapter(document), document


def test_an_accelerators_table_stands_in_the_document(tmp_path: Path) -> None:
    found, document = shown(tmp_path, packed("v1.6 as released in Linux 6.14"))
    assert found["load"]["gpu_percent"] == 97
    assert found["load"]["memory_bandwidth_percent"] == 31
    assert (found["temperature"]["gpu_celsius"], found["temperature"]["memory_celsius"]) == (62, 58)
    assert (found["power"]["draw_watts"], found["power"]["energy_joules"]) == (414, 1234)
    assert (found["clocks"]["graphics_mhz"], found["clocks"]["memory_mhz"]) == (2105, 1303)
    assert found["pcie"]["width"] == 16
    assert source(document, found, "power.draw_watts") == "measured:gpu_metrics.curr_socket_power"


@pytest.mark.parametrize(
    ("name", "celsius", "mhz", "field"),
    [
        ("v2.0 of Renoir, Linux 5.11", 45.13, 400, "current_gfxclk"),
        ("v2.1 of Yellow Carp", 47.13, 403, "average_gfxclk_frequency"),
        ("v3.0 of Strix", 50.25, 2900, "average_gfxclk_frequency"),
    ],
)
def test_an_apus_table_counts_hundredths_of_a_degree(
    tmp_path: Path, name: str, celsius: float, mhz: int, field: str
) -> None:
    """Its activity comes in percent of one firmware and in hundredths of another, its power in three units."""
    version, _, _ = PACKED[name]
    blob = bytearray(packed(name))
    activity, power = {(2, 0): (40, 44), (2, 1): (28, 40), (3, 0): (42, 112)}[version]
    struct.pack_into("<H", blob, activity, 55)
    struct.pack_into("<I", blob, power, 15_000)
    found, document = shown(tmp_path, bytes(blob))
    assert found["temperature"]["gpu_celsius"] == celsius
    assert found["clocks"]["graphics_mhz"] == mhz
    assert source(document, found, "clocks.graphics_mhz") == f"measured:gpu_metrics.{field}"
    assert (found["load"]["gpu_percent"], found["power"]["draw_watts"]) == (None, None)
