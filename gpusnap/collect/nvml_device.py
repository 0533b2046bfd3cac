"""Figures of one NVIDIA card or MIG partition. Source: nvml.h (R580), as pynvml names it.

Every call that fails costs its own leaf and says why. `throughput` is asked only when rates were asked for: NVML
counts bytes for 20 ms per direction there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.collect.nvml_ask import FUNCTION_NOT_FOUND, NOT_SUPPORTED, ask, in_range, reason, source_of
from gpusnap.collect.sysfs import MAX_INTEGER
from gpusnap.host import NvmlError
from gpusnap.reading import Reading, inferred, measured, null

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Nvml

    Warn = Callable[[str, object], None]
    Figures = dict[str, Reading]

_GRAPHICS, _MEMORY_CLOCK = 0, 2
_MEMORY_TEMP_FIELD = 82  # NVML_FI_DEV_MEMORY_TEMP
_SENTINELS = frozenset({2**64 - 1, 2**63 - 1, 2**32 - 1})

# nvmlClocksEventReasons*; the last three are the hardware's own doing.
THROTTLE_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
HARDWARE_SLOWDOWNS = frozenset({"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})


def memory(nvml: Nvml, device: str, warn: Warn) -> Figures:
    """total/used/free/reserved in bytes.

    The second call counts the driver's reservation apart; drivers before R510 lack it, and the first call's
    `used` includes it (gpustat#141), so `reserved` is unknown there.
    """
    function = "nvmlDeviceGetMemoryInfo_v2"
    try:
        answer = nvml.call(function, device)
    except NvmlError as error:
        if error.code not in (FUNCTION_NOT_FOUND, NOT_SUPPORTED, 25):
            return _no_memory(reason(error))
        function = "nvmlDeviceGetMemoryInfo"
        try:
            answer = nvml.call(function, device)
        except NvmlError as last:
            return _no_memory(reason(last))
    sizes = cast("dict[str, int]", answer)
    source = source_of(function)
    total = sizes["total"]
    figures = {
        f"memory.{name}_bytes": _size(name, sizes.get(name), total, source, warn)
        for name in ("used", "free", "reserved")
    }
    figures["memory.total_bytes"] = _size("total", total, total, source, warn)
    return figures


def _size(name: str, value: int | None, total: int, source: str, warn: Warn) -> Reading:
    if value is None:
        return null("not-exposed", "the driver has no second memory call")
    if value in _SENTINELS or not 0 <= value <= min(total, MAX_INTEGER):
        warn(f"{source} {name}", value)
        return null("out-of-range")
    return measured(value, source)


def _no_memory(why: Reading) -> Figures:
    return {f"memory.{name}_bytes": why for name in ("total", "used", "free", "reserved")}


def load(nvml: Nvml, device: str, warn: Warn) -> Figures:
    """Busy shares of the driver's last sampling period; `memory` is the share of time the memory was read or
    written, not how full it is."""
    rates = ask(nvml, "nvmlDeviceGetUtilizationRates", device)
    return {
        "load.gpu_percent": in_range(_part(rates, "gpu"), 0, 100, warn),
        "load.memory_bandwidth_percent": in_range(_part(rates, "memory"), 0, 100, warn),
        "load.engines_percent.video_encode": in_range(
            ask(nvml, "nvmlDeviceGetEncoderUtilization", device, convert=_first), 0, 100, warn
        ),
        "load.engines_percent.video_decode": in_range(
            ask(nvml, "nvmlDeviceGetDecoderUtilization", device, convert=_first), 0, 100, warn
        ),
    }


def _part(reading: Reading, name: str) -> Reading:
    if reading.value is None:
        return reading
    return Reading(cast("dict[str, object]", reading.value)[name], reading.provenance)


def _first(answer: object) -> object:
    return cast("list[object]", answer)[0]


def sensors(nvml: Nvml, device: str, warn: Warn) -> Figures:
    """Temperatures in °C, fan in percent, power in W, energy since driver load in J, clocks in MHz."""
    memory_temp = in_range(ask(nvml, "nvmlDeviceGetFieldValue", device, _MEMORY_TEMP_FIELD), 0, 200, warn)
    if memory_temp.value == 0:  # cards without the sensor answer 0, not an error
        memory_temp = null("not-supported", "sensor reads 0")
    return {
        "temperature.gpu_celsius": in_range(ask(nvml, "nvmlDeviceGetTemperature", device, 0), -50, 200, warn),
        "temperature.memory_celsius": memory_temp,
        "temperature.fan_percent": in_range(ask(nvml, "nvmlDeviceGetFanSpeed", device), 0, 100, warn),
        "power.draw_watts": in_range(
            ask(nvml, "nvmlDeviceGetPowerUsage", device, convert=_thousandth), 0, 10_000, warn
        ),
        "power.limit_watts": in_range(
            ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", device, convert=_thousandth), 0, 10_000, warn
        ),
        "power.energy_joules": in_range(
            ask(nvml, "nvmlDeviceGetTotalEnergyConsumption", device, convert=_thousandth), 0, 2**50, warn
        ),
        "clocks.graphics_mhz": in_range(ask(nvml, "nvmlDeviceGetClockInfo", device, _GRAPHICS), 0, 20_000, warn),
        "clocks.memory_mhz": in_range(ask(nvml, "nvmlDeviceGetClockInfo", device, _MEMORY_CLOCK), 0, 50_000, warn),
        "clocks.throttle_reasons": _throttle_reasons(nvml, device, warn),
    }


def _thousandth(answer: object) -> object:
    return cast("int", answer) / 1000


def _throttle_reasons(nvml: Nvml, device: str, warn: Warn) -> Reading:
    """R535 renamed the call; older drivers know only the old name."""
    mask = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", device)
    if mask.provenance.startswith("null:not-exposed"):
        mask = ask(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", device)
    mask = _no_sentinel(mask, warn)
    return mask if mask.value is None else Reading(_reason_names(cast("int", mask.value)), mask.provenance)


def _reason_names(mask: int) -> list[str]:
    known = [name for bit, name in THROTTLE_REASONS.items() if mask & bit]
    unknown = mask & ~sum(THROTTLE_REASONS)
    return [*known, f"unknown_{unknown:#x}"] if unknown else known


def pcie(nvml: Nvml, device: str, throughput: bool, warn: Warn) -> Figures:
    names = {
        "pcie.generation": "nvmlDeviceGetCurrPcieLinkGeneration",
        "pcie.max_generation": "nvmlDeviceGetMaxPcieLinkGeneration",
        "pcie.width": "nvmlDeviceGetCurrPcieLinkWidth",
        "pcie.max_width": "nvmlDeviceGetMaxPcieLinkWidth",
    }
    figures = {leaf: in_range(ask(nvml, name, device), 0, 64, warn) for leaf, name in names.items()}
    for leaf, counter in (("pcie.tx_bytes_per_second", 0), ("pcie.rx_bytes_per_second", 1)):
        if not throughput:
            figures[leaf] = null("not-requested", "--window")
            continue
        # "a byte counter over a 20ms interval", in KB/s (nvml.h).
        rate = ask(nvml, "nvmlDeviceGetPcieThroughput", device, counter, convert=_kilobytes)
        figures[leaf] = in_range(rate, 0, 2**40, warn)
    return figures


def _kilobytes(answer: object) -> object:
    return cast("int", answer) * 1000


def ecc(nvml: Nvml, device: str, warn: Warn) -> Figures:
    """Volatile counters restart with the driver; aggregate ones keep repaired errors for the card's life."""
    figures = {"ecc.enabled": ask(nvml, "nvmlDeviceGetEccMode", device, convert=lambda a: bool(_first(a)))}
    for kind, name in ((0, "corrected"), (1, "uncorrected")):
        for counter, span in ((0, "volatile"), (1, "aggregate")):
            count = ask(nvml, "nvmlDeviceGetTotalEccErrors", device, kind, counter)
            figures[f"ecc.{name}_{span}"] = _no_sentinel(count, warn)
    figures["ecc.retired_pages"] = _retired_pages(nvml, device)
    rows = ask(nvml, "nvmlDeviceGetRemappedRows", device)
    if rows.value is None:
        for leaf in ("remapped_rows", "remap_pending", "remap_failed"):
            figures[f"ecc.{leaf}"] = rows
        return figures
    parts = [_no_sentinel(Reading(part, rows.provenance), warn) for part in cast("list[int]", rows.value)]
    corrected, uncorrected, pending, failed = parts
    figures["ecc.remapped_rows"] = _sum(corrected, uncorrected)
    figures["ecc.remap_pending"] = _flag(pending)
    figures["ecc.remap_failed"] = _flag(failed)
    return figures


def _no_sentinel(reading: Reading, warn: Warn) -> Reading:
    value = reading.value
    if value is None or (value not in _SENTINELS and 0 <= cast("int", value) < MAX_INTEGER):
        return reading
    warn(reading.provenance.split(":", 1)[-1], reading.value)
    return null("out-of-range")


def _sum(one: Reading, other: Reading) -> Reading:
    if one.value is None or other.value is None:
        return one if one.value is None else other
    return Reading(cast("int", one.value) + cast("int", other.value), one.provenance)


def _flag(reading: Reading) -> Reading:
    return reading if reading.value is None else Reading(reading.value != 0, reading.provenance)


def _retired_pages(nvml: Nvml, device: str) -> Reading:
    """Pages by cause 0 (several single-bit errors) and 1 (a double-bit error)."""
    single = ask(nvml, "nvmlDeviceGetRetiredPages", device, 0)
    if single.value is None:
        return single
    double = ask(nvml, "nvmlDeviceGetRetiredPages", device, 1)
    if double.value is None:
        return double
    pages = len(cast("list[object]", single.value)) + len(cast("list[object]", double.value))
    return Reading(pages, single.provenance)


def health(figures: Figures) -> str:
    """ok | degraded | lost | unknown, from the card's own figures."""
    if any(reading.provenance.startswith("null:device-lost") for reading in figures.values()):
        return "lost"
    if all(reading.value is None for reading in figures.values()):
        return "unknown"
    if figures["ecc.remap_pending"].value is True or figures["ecc.remap_failed"].value is True:
        return "degraded"
    uncorrected = figures["ecc.uncorrected_volatile"].value
    if isinstance(uncorrected, int) and uncorrected > 0:
        return "degraded"
    slowed = figures["clocks.throttle_reasons"].value
    if isinstance(slowed, list) and not HARDWARE_SLOWDOWNS.isdisjoint(slowed):
        return "degraded"
    return "ok"


def memory_kind(figures: Figures, system_total: int | None) -> Reading:
    """dedicated | unified.

    An SoC's GPU (GB10, Jetson) has no framebuffer: NVML answers "not supported" to both memory calls (nvml.h), or
    names the system's whole memory as the card's (nvitop PR#208). A lost card says nothing of its kind.
    """
    total = figures["memory.total_bytes"]
    if total.provenance.startswith("null:not-supported"):
        return inferred("unified", "nvml.MemoryInfo not supported")
    if total.value is None:
        return Reading(None, total.provenance)
    if system_total is not None and total.value == system_total:
        return inferred("unified", "nvml.MemoryInfo total is MemTotal")
    return measured("dedicated", "nvml.MemoryInfo")
