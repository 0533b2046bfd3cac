"""The hardware slows the card down: heat, the power supply, or its brake line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found

# NVML's clock event reasons; a power cap (`sw_power_cap`) and an idle clock are everyday and no finding.
CAUSES = {
    "hw_thermal_slowdown": "too hot: the hardware lowers its clocks",
    "sw_thermal_slowdown": "too hot: the driver lowers its clocks",
    "hw_power_brake_slowdown": "the power supply pulls the brake",
    "hw_slowdown": "the hardware lowers its clocks (heat or power)",
}


def find(view: CardView) -> Iterator[Found]:
    reasons = view.card["clocks"]["throttle_reasons"]
    causes = [said for name, said in CAUSES.items() if reasons is not None and name in reasons]
    if not causes:
        return
    evidence = [f"{name}: {said}" for name, said in CAUSES.items() if name in (reasons or ())]
    heat, draw = view.card["temperature"]["gpu_celsius"], view.card["power"]["draw_watts"]
    if heat is not None:
        evidence.append(f"{heat:.0f} °C")
    if draw is not None:
        limit = view.card["power"]["limit_watts"]
        evidence.append(f"{draw:.0f} W" + (f" of {limit:.0f} W" if limit is not None else ""))
    yield found(
        "throttled",
        "warning",
        view.subject(),
        causes[0],
        evidence,
        ["Check fans, air flow and dust, then the power cabling; no setting of a program changes this."],
    )
