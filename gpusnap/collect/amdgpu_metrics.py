"""amdgpu's `gpu_metrics`: one binary table in many layouts. Pure.

Source: drivers/gpu/drm/amd/include/kgd_pp_interface.h, Linux 5.9 to 7.2. A header of u16 size, u8 format,
u8 content says which layout follows; C aligns each field to its size. From v1.9 on each field says itself what it
is (smu_cmn.h). What a chip does not fill is all ones (amdgpu_top prints 65535 there).
"""

from __future__ import annotations

import struct

from gpusnap.collect.amdgpu_metrics_layouts import ATTRIBUTE_CODES, ATTRIBUTES, LAYOUTS, Layout
from gpusnap.reading import Reading, measured, null

_HEADER = struct.Struct("<HBB")
_ALL_ONES = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}
_CODES = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_SELF_DESCRIBING = (1, 9)
_MAX_ATTRIBUTES = 1024

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
        if size != len(blob):
            return
        layout = LAYOUTS.get((form, content, size))
        if layout is not None:
            self._fields = _laid_out(blob, layout)
        elif (form, content) == _SELF_DESCRIBING:
            fields = _described(blob)
            if fields is None:
                return
            self._fields = fields
        else:
            return
        self.version = (form, content)

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


def _laid_out(blob: bytes, layout: Layout) -> dict[str, int]:
    fields = {}
    offsets, _ = offsets_of(layout)
    for name, width, _ in layout:
        if name in offsets:
            value = struct.unpack_from(_CODES[width], blob, offsets[name])[0]
            if value != _ALL_ONES[width]:
                fields[name] = value
    return fields


def _described(blob: bytes) -> dict[str, int] | None:
    """v1.9: i32 count, then for each field u64 what it is (unit, type, id, how many) and its values, unpadded."""
    if len(blob) < 8:
        return None
    count = int.from_bytes(blob[4:8], "little", signed=True)
    if not 0 <= count <= _MAX_ATTRIBUTES:
        return None
    fields: dict[str, int] = {}
    at = 8
    for _ in range(count):
        if at + 8 > len(blob):
            return None
        what = int.from_bytes(blob[at : at + 8], "little")
        unit, kind, ident, many = what >> 24, what >> 20 & 0xF, what >> 10 & 0x3FF, what & 0x3FF
        if kind >= len(ATTRIBUTE_CODES):
            return None  # its length is not known, so neither is what follows
        code = struct.Struct("<" + ATTRIBUTE_CODES[kind])
        end = at + 8 + code.size * many
        if end > len(blob):
            return None
        if ident in ATTRIBUTES and many > 0 and ATTRIBUTES[ident][1] == unit:
            value = code.unpack_from(blob, at + 8)[0]
            if value not in (-1, _ALL_ONES[code.size]):
                fields[ATTRIBUTES[ident][0]] = value
        at = end
    return fields


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
