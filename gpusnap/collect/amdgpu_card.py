"""One amdgpu card's figures from its sysfs folder. Sources: amdgpu_vram_mgr.c, amdgpu_gtt_mgr.c, amdgpu_pm.c.

`mem_info_*` are the driver's books and never touch the card. Sensors, clocks and `gpu_metrics` do, up to Linux
6.12 even while it sleeps. `pcie_bw` sleeps a second inside the kernel and is never read. hwmon's channels are
fixed: temp1 edge, temp2 junction, temp3 memory, freq1 graphics, freq2 memory.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from gpusnap.collect import hwmon, pci_device
from gpusnap.collect.amdgpu_metrics import HARDWARE_THROTTLERS, GpuMetrics
from gpusnap.collect.amdgpu_ras import ras
from gpusnap.collect.sysfs import number, size, unknown_format, why
from gpusnap.reading import Reading, computed, inferred, measured, null

if TYPE_CHECKING:
    from gpusnap.host import Tree

    Figures = dict[str, Reading]

# A card in reset answers EPERM (up to 6.12) or EBUSY, from sensors that everyone may read.
_IN_RESET = {errno.EPERM: "device-busy"}
_METRICS_LIMIT = 16384
_ENERGY_UNIT = 2**-16  # joules; the header of gpu_metrics v1.4 and later

_SLEEPING = (
    "load.gpu_percent",
    "load.memory_bandwidth_percent",
    "temperature.gpu_celsius",
    "temperature.memory_celsius",
    "temperature.fan_percent",
    "power.draw_watts",
    "power.limit_watts",
    "power.energy_joules",
    "clocks.graphics_mhz",
    "clocks.memory_mhz",
    "clocks.throttle_reasons",
    "ecc.enabled",
    "ecc.corrected_volatile",
    "ecc.uncorrected_volatile",
    "ecc.retired_pages",
)


def memory(tree: Tree, path: str, *, unified: Reading) -> Figures:
    """VRAM (of an APU: its carve-out) in total and used, GTT in shared; the two are never added."""
    total = size(tree, f"{path}/mem_info_vram_total", "sysfs.mem_info_vram_total")
    used = _within(size(tree, f"{path}/mem_info_vram_used", "sysfs.mem_info_vram_used"), total)
    shared_total = size(tree, f"{path}/mem_info_gtt_total", "sysfs.mem_info_gtt_total")
    shared_used = _within(size(tree, f"{path}/mem_info_gtt_used", "sysfs.mem_info_gtt_used"), shared_total)
    return {
        "memory.total_bytes": total,
        "memory.used_bytes": used,
        "memory.free_bytes": _free(total, used),
        "memory.shared_total_bytes": shared_total,
        "memory.shared_used_bytes": shared_used,
        "memory.kind": unified,
    }


def visible(tree: Tree, path: str) -> Figures:
    """The part of VRAM that the processor reaches: all of it with a resizable BAR, 256 MiB without."""
    total = size(tree, f"{path}/mem_info_vis_vram_total", "sysfs.mem_info_vis_vram_total")
    used = size(tree, f"{path}/mem_info_vis_vram_used", "sysfs.mem_info_vis_vram_used")
    return {"visible_total_bytes": total, "visible_used_bytes": _within(used, total)}


def _within(used: Reading, total: Reading) -> Reading:
    """More used than there is: a kernel's lost count (radeontop#108: 98 GB on a card of 1 GB)."""
    if isinstance(used.value, int) and isinstance(total.value, int) and used.value > total.value:
        return null("out-of-range", f"{used.provenance.partition(':')[2]} says {used.value} of {total.value}")
    return used


def _free(total: Reading, used: Reading) -> Reading:
    if not isinstance(total.value, int):
        return total
    if not isinstance(used.value, int):
        return used
    return computed(total.value - used.value, "sysfs.mem_info_vram_total-used")


def kind_of_memory(kind: object) -> Reading:
    if kind == "integrated":
        return inferred("unified", "hwmon.in1_label")
    return null("not-exposed", "no hwmon") if kind is None else inferred("dedicated", "hwmon.in1_label absent")


def sleeping(why_not: Reading) -> Figures:
    """What can't be read without waking the card."""
    return dict.fromkeys(_SLEEPING, why_not)


def live(tree: Tree, path: str) -> Figures:
    """What an awake card's firmware says."""
    metrics = _metrics(tree, path)
    sensors = hwmon.Hwmon(tree, path, _IN_RESET)
    figures = {
        "load.gpu_percent": _either(_percent(tree, path, "gpu_busy_percent"), _share(metrics, "gfx")),
        "load.memory_bandwidth_percent": _either(_percent(tree, path, "mem_busy_percent"), _share(metrics, "umc")),
        "temperature.gpu_celsius": _temperature(sensors, metrics),
        "temperature.memory_celsius": _either(
            sensors.temperature("temp3"), hwmon.bounded(metrics.get("temperature_mem"), -50, 200)
        ),
        "temperature.fan_percent": sensors.fan_percent(),
        "power.draw_watts": _either(sensors.power(("power1_average", "power1_input")), _socket_power(metrics)),
        "power.limit_watts": sensors.power(("power1_cap",)),
        "power.energy_joules": _energy(metrics),
        "clocks.graphics_mhz": _clock(tree, path, sensors.clock("freq1"), metrics, "sclk", "gfxclk"),
        "clocks.memory_mhz": _clock(tree, path, sensors.clock("freq2"), metrics, "mclk", "uclk"),
        "clocks.throttle_reasons": metrics.throttle_reasons(),
    }
    figures.update(ras(tree, path))
    figures.update(_link(tree, path, metrics))
    return figures


def _metrics(tree: Tree, path: str) -> GpuMetrics:
    try:
        return GpuMetrics(tree.read(f"{path}/gpu_metrics", _METRICS_LIMIT))
    except OSError:
        return GpuMetrics(b"")


def _temperature(sensors: hwmon.Hwmon, metrics: GpuMetrics) -> Reading:
    """The edge, temp1; where a chip has none (MI300) the junction, temp2: never one in place of the other."""
    edge = metrics.get("temperature_edge")
    if metrics.version is not None and metrics.version[0] > 1:  # an APU: the same, in hundredths
        edge = metrics.get("temperature_gfx", 0.01)
    has_edge = sensors.has("temp1_input") or sensors.has("temp1_label") or edge.value is not None
    channel, field = ("temp1", edge) if has_edge else ("temp2", metrics.get("temperature_hotspot"))
    return _either(sensors.temperature(channel), hwmon.bounded(field, -50, 200))


def _percent(tree: Tree, path: str, name: str) -> Reading:
    return hwmon.bounded(number(tree, f"{path}/{name}", f"sysfs.{name}", special=_IN_RESET), 0, 100)


def _share(metrics: GpuMetrics, unit: str) -> Reading:
    return hwmon.bounded(metrics.get(f"average_{unit}_activity"), 0, 100)


def _either(first: Reading, second: Reading) -> Reading:
    """The second only where the first has no figure, and only if it has one: the first one's reason counts."""
    return second if first.value is None and second.value is not None else first


def _socket_power(metrics: GpuMetrics) -> Reading:
    """Watts in the first format only; APUs' formats count the whole package, and not all in milliwatts."""
    if metrics.version is None or metrics.version[0] != 1:
        return null("not-exposed", "gpu_metrics.average_socket_power")
    power = _either(metrics.get("average_socket_power"), metrics.get("curr_socket_power"))
    return hwmon.bounded(power, 0, 10_000)


def _energy(metrics: GpuMetrics) -> Reading:
    if metrics.version is None or metrics.version < (1, 4) or metrics.version[0] != 1:
        return null("not-exposed", "gpu_metrics.energy_accumulator")
    return metrics.get("energy_accumulator", _ENERGY_UNIT)


def _clock(tree: Tree, path: str, sensor: Reading, metrics: GpuMetrics, label: str, field: str) -> Reading:
    reading = _either(sensor, _current_state(tree, path, f"pp_dpm_{label}"))
    # Yellow Carp and later APUs fill in only the averages.
    clock = _either(metrics.get(f"current_{field}"), metrics.get(f"average_{field}_frequency"))
    return _either(reading, hwmon.bounded(clock, 0, 50_000))


def _current_state(tree: Tree, path: str, name: str) -> Reading:
    """Lines `1: 512Mhz *`: the star marks the state in force; new chips add `S: 19Mhz *` for deep sleep."""
    source = f"sysfs.{name}"
    try:
        raw = tree.read(f"{path}/{name}", 4096)
    except OSError as error:
        return why(error, source, _IN_RESET)
    for line in raw.split(b"\n")[:-1]:
        _, colon, rest = line.partition(b":")
        mhz = rest.strip().lower().removesuffix(b"*").strip().removesuffix(b"mhz")
        if colon and rest.rstrip().endswith(b"*") and mhz.isdigit():
            return measured(int(mhz), source)
    return unknown_format(source, raw)


def _link(tree: Tree, path: str, metrics: GpuMetrics) -> Figures:
    figures = pci_device.link(tree, path, None)
    width = metrics.get("pcie_link_width")
    figures["pcie.width"] = _either(figures["pcie.width"], hwmon.bounded(width, 1, 32))
    return figures


def health(figures: Figures) -> str:
    """degraded where memory went bad or the chip throttles to protect itself; unknown where nothing answers."""
    uncorrected = figures["ecc.uncorrected_volatile"].value
    throttled = figures["clocks.throttle_reasons"].value
    if isinstance(uncorrected, int) and uncorrected > 0:
        return "degraded"
    if isinstance(throttled, list) and not HARDWARE_THROTTLERS.isdisjoint(throttled):
        return "degraded"
    if all(figures[leaf].value is None for leaf in ("memory.used_bytes", "load.gpu_percent")):
        return "unknown"
    return "ok"
