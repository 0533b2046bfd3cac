"""The layouts of amdgpu's `gpu_metrics`, field by field.

Source: drivers/gpu/drm/amd/include/kgd_pp_interface.h, Linux 5.9 to 7.2. A layout is told by its version and its
size: v1.6 had another one while it was made than it was released with. A run of fields that nothing here asks for
stands as one.
"""

from __future__ import annotations

Layout = tuple[tuple[str, int, int], ...]  # name, bytes of one, how many

_TEMPERATURES: Layout = (
    ("temperature_edge", 2, 1),
    ("temperature_hotspot", 2, 1),
    ("temperature_mem", 2, 1),
    ("temperature_vr", 2, 3),
    ("average_gfx_activity", 2, 1),
    ("average_umc_activity", 2, 1),
    ("average_mm_activity", 2, 1),
    ("average_socket_power", 2, 1),
)
_CLOCKS: Layout = (
    ("average_clocks", 2, 7),
    ("current_gfxclk", 2, 1),
    ("current_socclk", 2, 1),
    ("current_uclk", 2, 1),
    ("current_video_clocks", 2, 4),
    ("throttle_status", 4, 1),
    ("current_fan_speed", 2, 1),
)
_V1_0: Layout = (
    ("system_clock_counter", 8, 1),
    *_TEMPERATURES,
    ("energy_accumulator", 4, 1),
    *_CLOCKS,
    ("pcie_link_width", 1, 1),
    ("pcie_link_speed", 1, 1),
)
_V1_1: Layout = (
    *_TEMPERATURES,
    ("energy_accumulator", 8, 1),
    ("system_clock_counter", 8, 1),
    *_CLOCKS,
    ("pcie_link_width", 2, 1),
    ("pcie_link_speed", 2, 1),
    ("padding", 2, 1),
    ("activity_acc", 4, 2),
    ("temperature_hbm", 2, 4),
)
_V1_2: Layout = (*_V1_1, ("firmware_timestamp", 8, 1))
_V1_3: Layout = (*_V1_2, ("voltages", 2, 3), ("padding1", 2, 1), ("indep_throttle_status", 8, 1))

_MI300_HEAD: Layout = (
    ("temperature_hotspot", 2, 1),
    ("temperature_mem", 2, 1),
    ("temperature_vr", 2, 1),
    ("curr_socket_power", 2, 1),
    ("average_gfx_activity", 2, 1),
    ("average_umc_activity", 2, 1),
)
_MI300_CLOCKS: Layout = (
    ("firmware_timestamp", 8, 1),
    ("current_gfxclk", 2, 8),
    ("current_other_clocks", 2, 12),
    ("current_uclk", 2, 1),
)


def _mi300_links(naks: int, after: Layout = ()) -> Layout:
    return (
        ("gfxclk_lock_status", 4, 1),
        ("pcie_link_width", 2, 1),
        ("pcie_link_speed", 2, 1),
        ("xgmi", 2, 2),
        ("activity_acc", 4, 2),
        ("pcie_counters", 8, 5),
        ("pcie_naks", 4, naks),
        ("xgmi_data", 8, 16),
        *after,
        *_MI300_CLOCKS,
    )


def _mi300(jpeg: int, residencies: int, naks: int) -> Layout:
    """v1.4, v1.5 and v1.6 before its release differ by three insertions."""
    return (
        *_MI300_HEAD,
        ("vcn_activity", 2, 4),
        ("jpeg_activity", 2, jpeg),
        ("energy_accumulator", 8, 1),
        ("system_clock_counter", 8, 1),
        ("residencies", 4, residencies),
        ("throttle_status", 4, 1),
        *_mi300_links(naks),
        ("padding", 2, 1),
    )


def _mi300_parts(part_words: int, *, bandwidth: bool) -> Layout:
    """v1.6 to v1.8 end in figures of eight partitions, each of so many u64, its narrower fields counted in."""
    return (
        *_MI300_HEAD,
        ("mem_max_bandwidth", 8, 1 if bandwidth else 0),
        ("energy_accumulator", 8, 1),
        ("system_clock_counter", 8, 1),
        ("residencies", 4, 6),
        *_mi300_links(2, (("xgmi_link_status", 2, 8), ("padding", 2, 1)) if bandwidth else ()),
        ("num_partition", 2, 1),
        ("xcp_stats", 8, 8 * part_words),
        ("pcie_lc_perf_other_end_recovery", 4, 1),
    )


_APU_TEMPERATURES: Layout = (
    ("temperature_gfx", 2, 1),
    ("temperatures", 2, 11),
    ("activities", 2, 2),  # percents of one firmware, hundredths of another
)
_APU_CLOCKS: Layout = (
    ("powers", 2, 12),
    ("average_gfxclk_frequency", 2, 1),
    ("average_socclk_frequency", 2, 1),
    ("average_uclk_frequency", 2, 1),
    ("average_other_clocks", 2, 3),
    ("current_gfxclk", 2, 1),
    ("current_socclk", 2, 1),
    ("current_uclk", 2, 1),
    ("current_other_clocks", 2, 13),
    ("throttle_status", 4, 1),
    ("fan_pwm", 2, 1),
)
_V2_0: Layout = (("system_clock_counter", 8, 1), *_APU_TEMPERATURES, *_APU_CLOCKS, ("padding", 2, 1))
_V2_1: Layout = (*_APU_TEMPERATURES, ("system_clock_counter", 8, 1), *_APU_CLOCKS, ("padding", 2, 3))
_V2_2: Layout = (*_V2_1, ("indep_throttle_status", 8, 1))
_V2_3: Layout = (*_V2_2, ("average_temperatures", 2, 12))
_V2_4: Layout = (*_V2_3, ("voltages_and_currents", 2, 6))
_V3_0: Layout = (
    ("temperature_gfx", 2, 1),
    ("temperatures", 2, 18),
    ("activities", 2, 26),
    ("bandwidths", 2, 4),
    ("system_clock_counter", 8, 1),
    ("average_socket_power", 4, 1),
    ("average_ipu_power", 2, 1),
    ("average_powers", 4, 4),
    ("average_core_power", 2, 16),
    ("average_sys_power", 2, 1),
    ("stapm_power_limits", 2, 2),
    ("average_gfxclk_frequency", 2, 1),
    ("average_other_clocks", 2, 5),
    ("average_uclk_frequency", 2, 1),
    ("average_mpipu_frequency", 2, 1),
    ("current_coreclk", 2, 16),
    ("maxfreqs", 2, 2),
    ("throttle_residencies", 4, 7),
    ("time_filter_alphavalue", 4, 1),
)

# (format, content, structure_size): the size is sizeof, so the end of a layout rounded up to its widest field.
LAYOUTS: dict[tuple[int, int, int], Layout] = {
    (1, 0, 80): _V1_0,
    (1, 1, 96): _V1_1,
    (1, 2, 104): _V1_2,
    (1, 3, 120): _V1_3,
    (1, 4, 288): _mi300(jpeg=0, residencies=0, naks=0),
    (1, 5, 360): _mi300(jpeg=32, residencies=0, naks=2),
    (1, 6, 384): _mi300(jpeg=32, residencies=6, naks=2),
    (1, 6, 1664): _mi300_parts(21, bandwidth=False),
    (1, 7, 2208): _mi300_parts(29, bandwidth=True),
    (1, 8, 3872): _mi300_parts(55, bandwidth=True),
    (2, 0, 120): _V2_0,
    (2, 1, 120): _V2_1,
    (2, 2, 128): _V2_2,
    (2, 3, 152): _V2_3,
    (2, 4, 168): _V2_4,
    (3, 0, 264): _V3_0,
}

# v1.9 names each field itself: AMDGPU_METRICS_ATTR_ID_* of those that are asked for, and their units.
_NO_UNIT, _MHZ, _CELSIUS, _WATTS, _PERCENT = 0, 1, 2, 3, 10
ATTRIBUTES = {
    0: ("temperature_hotspot", _CELSIUS),
    1: ("temperature_mem", _CELSIUS),
    3: ("curr_socket_power", _WATTS),
    4: ("average_gfx_activity", _PERCENT),
    5: ("average_umc_activity", _PERCENT),
    7: ("energy_accumulator", _NO_UNIT),
    16: ("pcie_link_width", _NO_UNIT),
    33: ("current_gfxclk", _MHZ),
    37: ("current_uclk", _MHZ),
}
# AMDGPU_METRICS_TYPE_*: u8, s8, u16, s16 ...
ATTRIBUTE_CODES = "BbHhIiQq"
