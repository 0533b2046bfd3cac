"""Adding readings: a sum is as good as its weakest part, and a missing part makes it missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import KINDS, Reading

if TYPE_CHECKING:
    from collections.abc import Sequence


def total(readings: Sequence[Reading]) -> Reading:
    """The sum under the weakest kind, sources joined; the first null where one part is not known."""
    for reading in readings:
        if reading.value is None:
            return reading
    if len(readings) == 1:
        return readings[0]
    kinds = [reading.provenance.partition(":")[0] for reading in readings]
    sources = [reading.provenance.partition(":")[2] for reading in readings]
    weakest = max(kinds, key=KINDS.index)
    value = sum(number(reading) for reading in readings)
    return Reading(value, f"{weakest}:{'+'.join(dict.fromkeys(sources))}")


def number(reading: Reading) -> int:
    """The value of a reading that has one."""
    if not isinstance(reading.value, int):
        raise TypeError(f"not a whole number: {reading!r}")
    return reading.value


def as_kind(reading: Reading, kind: str, more: str = "") -> Reading:
    """The same value under a weaker kind: an exact sum over layers of which nobody said that they are there."""
    if reading.value is None:
        return reading
    known, _, source = reading.provenance.partition(":")
    weakest = max((known, kind), key=KINDS.index)
    return Reading(reading.value, f"{weakest}:{source}{' ' + more if more else ''}")
