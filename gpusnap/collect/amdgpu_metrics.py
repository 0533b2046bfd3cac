"""amdgpu's `gpu_metrics`: one binary table in many layouts. Pure.

Source: drivers/gpu/drm/amd/include/kgd_pp_interface.h, Linux 5.7 to 6.14. A header of u16 size, u8 format,
u8 content says which layout follows; C aligns each field to its size. What a chip does not fill is all ones
(amdgpu_top prints 65535 there). Only layouts whose units the header states are read.
"""

from __future__ import annotations

import struct

from gpusnap.reading import Reading, measured, null

_HEADER = struct.Struct("<HBB")
_ALL_ONES = {2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}
_CODES = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}

Layout = tuple[tuple[str, int, int], ...]  # name, bytes of one, how many

_V1_HEAD: Layout = (
    ("temperature_edge", 2, 1),
    ("temperature_hotspot", 2, 1),
    ("temperature_mem", 2, 1),
    ("temperature_vr", 2, 3),
    ("average_gfx_activity", 2, 1),
    ("average_umc_activity", 2, 1),
    ("average_mm_activity", 2, 1),
    ("average_socket_power", 2, 1),
    ("energy_accumulator", 8, 1),
    ("system_clock_counter", 8, 1),
    ("average_clocks", 2, 7),
    ("current_gfxclk", 2, 1),
    ("current_socclk", 2, 1),
    ("current_uclk", 2, 1),
    ("current_video_clocks", 2, 4),
    ("throttle_status", 4, 1),
    ("current_fan_speed", 2, 1),
    ("pcie_link_width", 2, 1),
    ("pcie_link_speed", 2, 1),
    ("padding", 2, 1),
    ("gfx_activity_acc", 4, 1),
    ("mem_activity_acc", 4, 1),
    ("temperature_hbm", 2, 4),
)
_V1_2: Layout = (*_V1_HEAD, ("firmware_timestamp", 8, 1))
_V1_3: Layout = (*_V1_2, ("voltages", 2, 3), ("padding1", 2, 1), ("indep_throttle_status", 8, 1))


def _mi300(jpeg: int, residencies: int, naks: int) -> Layout:
    """v1.4 to v1.6 differ by three insertions."""
    return (
        ("temperature_hotspot", 2, 1),
        ("temperature_mem", 2, 1),
        ("temperature_vr", 2, 1),
        ("average_socket_power", 2, 1),
        ("average_gfx_activity", 2, 1),
        ("average_umc_activity", 2, 1),
        ("vcn_activity", 2, 4),
        ("jpeg_activity", 2, jpeg),
        ("energy_accumulator", 8, 1),
        ("system_clock_counter", 8, 1),
        ("residencies", 4, residencies),
        ("throttle_status", 4, 1),
        ("gfxclk_lock_status", 4, 1),
        ("pcie_link_width", 2, 1),
        ("pcie_link_speed", 2, 1),
        ("xgmi", 2, 2),
        ("activity_acc", 4, 2),
        ("pcie_counters", 8, 5),
        ("pcie_naks", 4, naks),
        ("xgmi_data", 8, 16),
        ("firmware_timestamp", 8, 1),
        ("current_gfxclk", 2, 8),
        ("current_other_clocks", 2, 12),
        ("current_uclk", 2, 1),
        ("padding", 2, 1),
    )


_V2_2: Layout = (
    ("temperatures", 2, 12),
    ("activity", 2, 2),
    ("system_clock_counter", 8, 1),
    ("powers", 2, 12),
    ("average_clocks", 2, 6),
    ("current_gfxclk", 2, 1),
    ("current_socclk", 2, 1),
    ("current_uclk", 2, 1),
    ("current_other_clocks", 2, 13),
    ("throttle_status", 4, 1),
    ("fan_pwm", 2, 1),
    ("padding", 2, 3),
    ("indep_throttle_status", 8, 1),
)

LAYOUTS: dict[tuple[int, int], Layout] = {
    (1, 1): _V1_HEAD,
    (1, 2): _V1_2,
    (1, 3): _V1_3,
    (1, 4): _mi300(jpeg=0, residencies=0, naks=0),
    (1, 5): _mi300(jpeg=32, residencies=0, naks=2),
    (1, 6): _mi300(jpeg=32, residencies=6, naks=2),
    # v2.2 to v2.4 begin alike; what they append is not read.
    (2, 2): _V2_2,
    (2, 3): _V2_2,
    (2, 4): _V2_2,
}

# SMU_THROTTLER_*_BIT (pm/swsmu/inc/amdgpu_smu.h): the same on every chip since Linux 5.14.
THROTTLERS = {
    0: "ppt0",
    1: "ppt1",
    2: "ppt2",
    3: "ppt3",
    4: "spl",
    5: "fppt",
    6: "sppt",
    7: "sppt_apu",
    16: "tdc_gfx",
    17: "tdc_soc",
    18: "tdc_mem",
    19: "tdc_vdd",
    20: "tdc_cvip",
    21: "edc_cpu",
    22: "edc_gfx",
    23: "apcc",
    32: "temp_gpu",
    33: "temp_core",
    34: "temp_mem",
    35: "temp_edge",
    36: "temp_hotspot",
    37: "temp_soc",
    38: "temp_vr_gfx",
    39: "temp_vr_soc",
    40: "temp_vr_mem0",
    41: "temp_vr_mem1",
    42: "temp_liquid0",
    43: "temp_liquid1",
    44: "vrhot0",
    45: "vrhot1",
    46: "prochot_cpu",
    47: "prochot_gfx",
    56: "ppm",
    57: "fit",
}
# The chip protects itself; power and current limits are how a loaded card runs.
HARDWARE_THROTTLERS = frozenset(name for bit, name in THROTTLERS.items() if 32 <= bit < 48)


class GpuMetrics:
    """One table; `get` answers with a reading of one field."""

    def __init__(self, blob: bytes) -> None:
        self.version: tuple[int, int] | None = None
        self._fields: dict[str, int] = {}
        if len(blob) < _HEADER.size:
            return
        size, form, content = _HEADER.unpack_from(blob)
        layout = LAYOUTS.get((form, content))
        if size != len(blob) or layout is None:
            return
        offsets, end = offsets_of(layout)
        if end > size:
            return
        self.version = (form, content)
        for name, width, _ in layout:
            if name in offsets:
                value = struct.unpack_from(_CODES[width], blob, offsets[name])[0]
                if value != _ALL_ONES.get(width):
                    self._fields[name] = value

    def get(self, name: str, scale: float | None = None) -> Reading:
        source = f"gpu_metrics.{name}"
        value = self._fields.get(name)
        if value is None:
            return null("not-exposed", source)
        return measured(value if scale is None else round(value * scale, 3), source)

    def throttle_reasons(self) -> Reading:
        mask = self.get("indep_throttle_status")
        if not isinstance(mask.value, int):
            return mask
        names = [name for bit, name in THROTTLERS.items() if mask.value >> bit & 1]
        unknown = mask.value & ~sum(1 << bit for bit in THROTTLERS)
        return measured(
            [*names, f"unknown_{unknown:#x}"] if unknown else names, "gpu_metrics.indep_throttle_status"
        )


def offsets_of(layout: Layout) -> tuple[dict[str, int], int]:
    """(name -> offset, end) as a C compiler lays the fields out behind the header."""
    offsets: dict[str, int] = {}
    at = _HEADER.size
    for name, width, count in layout:
        if count == 0:
            continue
        at = (at + width - 1) // width * width
        offsets[name] = at
        at += width * count
    return offsets, at
