"""GPU power of Apple Silicon: two readings of IOReport's `GPU Energy`, timed by the driver's own stamps. Pure.

Only the channel of this very name counts: `GPU0_0` has the same energy again, and summing all that have GPU in
their names counts it twice (all-smi PR#412). Where a counter or its stamp is not what is known, there is none; a
virtual machine has none, which is not 0 W (all-smi PR#337). Raw form: see `live_ioreport.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpusnap.reading import Reading, computed, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = "GPU Energy"
_SOURCE = f"ioreport.{_NAME}"
_JOULES = {"mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "nJ": 1e-9}
_INVALID = -(1 << 63)  # kIOReportInvalidIntValue
# A driver that published nothing for so long is not believed to publish at all, or stamps by another clock: under
# Rosetta `mach_absolute_time()` counts nanoseconds and the driver 24 MHz ticks.
_OLDEST_SECONDS = 10.0
# A batch may have a tail some milliseconds later, whose energy is not of those milliseconds (all-smi PR#412).
_SHORTEST_SECONDS = 0.05
_MOST_WATTS = 1000.0  # several times what any of these chips can draw


class Energy(NamedTuple):
    """A counter's state: joules since some start, published at `seconds` of the machine's clock."""

    joules: float
    seconds: float
    unit: str


def energy_of(raw: Mapping[str, Any]) -> Energy | Reading:
    rows = [row for row in raw.get("channels") or () if row.get("name") == _NAME]
    if not rows:
        return null("not-exposed", f"IOReport has no {_NAME}")
    if len(rows) > 1:
        return null("ambiguous", f"IOReport has {len(rows)} of {_NAME}")
    unit, value = rows[0].get("unit"), rows[0].get("value")
    if unit not in _JOULES:
        return null("unknown-format", clean(f"IOReport {_NAME} in {unit}", 60))
    if not isinstance(value, int) or value == _INVALID:
        return null("failed", f"IOReport {_NAME}: no value")
    stamp, now = _seconds(raw, rows[0].get("stamp")), _seconds(raw, raw.get("now"))
    if stamp is None or now is None or not 0 <= now - stamp <= _OLDEST_SECONDS:
        return null("unknown-format", f"IOReport {_NAME}: not stamped by this machine's clock")
    return Energy(value * _JOULES[unit], stamp, unit)


def power_between(before: Energy | Reading | None, after: Energy | Reading, busy: Reading) -> Reading:
    """`busy` is the adapter's load: a counter that stands still while the GPU works was not brought up to date."""
    if isinstance(after, Reading):
        return after
    if not isinstance(before, Energy) or before.unit != after.unit:
        return null("needs-two-samples")
    joules, seconds = after.joules - before.joules, after.seconds - before.seconds
    if joules < 0 or seconds < _SHORTEST_SECONDS:
        return null("needs-two-samples", f"IOReport published no newer {_NAME}")
    if joules == 0 and busy.value != 0:
        return null("needs-two-samples", f"IOReport {_NAME} stood still, the GPU maybe not")
    watts = round(joules / seconds, 3)
    if watts > _MOST_WATTS:
        return null("out-of-range", f"{_SOURCE} says {watts} W")
    return computed(watts, _SOURCE)


def _seconds(raw: Mapping[str, Any], ticks: object) -> float | None:
    numer, denom = raw.get("numer"), raw.get("denom")
    if not isinstance(ticks, int) or not isinstance(numer, int) or not isinstance(denom, int):
        return None
    if ticks <= 0 or numer <= 0 or denom <= 0:
        return None
    return ticks * numer / denom / 1e9
