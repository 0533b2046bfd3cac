"""Sensors of one Intel GPU. Sources: sysfs-driver-intel-i915-hwmon and -xe-hwmon, both drivers' gt folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import hwmon
from gpusnap.collect.sysfs import number
from gpusnap.reading import Reading, computed, measured, null

if TYPE_CHECKING:
    from gpusnap.host import Tree

    Figures = dict[str, Reading]

_SLEEPING = (
    "load.gpu_percent",
    "temperature.gpu_celsius",
    "temperature.memory_celsius",
    "power.draw_watts",
    "power.limit_watts",
    "power.energy_joules",
    "clocks.graphics_mhz",
    "clocks.throttle_reasons",
)
_THROTTLES = ("pl1", "pl2", "pl4", "thermal", "prochot", "ratl", "vr_thermalert", "vr_tdc")
HARDWARE_THROTTLES = frozenset({"thermal", "prochot", "vr_thermalert"})


def sleeping(why_not: Reading) -> Figures:
    return dict.fromkeys(_SLEEPING, why_not)


def sensors(tree: Tree, path: str, driver: str, card: int | None) -> Figures:
    found = hwmon.Hwmon(tree, path)
    # xe: temp2 is the package's, temp3 the memory's; channel 1 of power and energy the card's, 2 the package's.
    package = "temp1" if driver == "i915" else "temp2"
    whole_card = "energy1" if found.has("energy1_input") or not found.has("energy2_input") else "energy2"
    gt = f"{path}/drm/card{card}" if driver == "i915" else f"{path}/tile0/gt0/freq0"
    return {
        "temperature.gpu_celsius": found.temperature(package),
        "temperature.memory_celsius": found.temperature("temp3"),
        "power.limit_watts": found.power(("power1_max", "power2_max")),
        "power.energy_joules": found.energy(whole_card),
        "clocks.graphics_mhz": _clock(tree, gt, driver),
        "clocks.throttle_reasons": _throttles(tree, gt, driver),
    }


def _clock(tree: Tree, gt: str, driver: str) -> Reading:
    """The frequency that the hardware runs at; 0 while it is parked."""
    if driver == "xe":
        return hwmon.bounded(number(tree, f"{gt}/act_freq", "sysfs.freq0/act_freq"), 0, 20_000)
    for name in ("gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz"):
        reading = number(tree, f"{gt}/{name}", f"sysfs.{name}")
        if not reading.provenance.startswith("null:not-exposed"):
            break
    return hwmon.bounded(reading, 0, 20_000)


def _throttles(tree: Tree, gt: str, driver: str) -> Reading:
    """`status` says whether anything throttles; only then are the reasons asked for."""
    prefix = f"{gt}/gt/gt0/throttle_reason_" if driver == "i915" else f"{gt}/throttle/"
    status = number(tree, prefix + "status", "sysfs.throttle_reason_status")
    if status.value is None or status.value == 0:
        return status if status.value is None else measured([], "sysfs.throttle_reason_status")
    name = "" if driver == "i915" else "reason_"
    held = []
    for reason in _THROTTLES:
        reading = number(tree, f"{prefix}{name}{reason}", f"sysfs.throttle_reason_{reason}")
        if reading.value is None and not reading.provenance.startswith("null:not-exposed"):
            return reading  # it may be the one
        if reading.value == 1:
            held.append(reason)
    return measured(held, "sysfs.throttle_reason_status")


class EnergyRate:
    """Watts from the energy counter of two samples."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}

    def watts(self, address: str, energy: Reading, now: float) -> Reading:
        if not isinstance(energy.value, int | float):
            self._last.pop(address, None)
            return energy
        before = self._last.get(address)
        self._last[address] = (energy.value, now)
        if before is None or now <= before[1]:
            return null("needs-two-samples")
        joules, seconds = energy.value - before[0], now - before[1]
        if joules < 0:
            return null("failed", "the energy counter restarted")
        return hwmon.bounded(computed(round(joules / seconds, 1), energy.provenance.partition(":")[2]), 0, 10_000)


def health(figures: Figures) -> str:
    throttled = figures["clocks.throttle_reasons"].value
    if isinstance(throttled, list) and not HARDWARE_THROTTLES.isdisjoint(throttled):
        return "degraded"
    leaves = ("clocks.graphics_mhz", "memory.total_bytes", "memory.shared_total_bytes")
    return "ok" if any(figures[leaf].value is not None for leaf in leaves) else "unknown"
