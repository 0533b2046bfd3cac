"""A card's hwmon folder: temperatures, power, energy, fan. Source: Documentation/hwmon/sysfs-interface.

Channels are told by their fixed numbers, not by their labels: a label that can't be read would put one sensor in
another's place. Reading an `*_input` may wake the card, so callers ask the runtime status first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.sysfs import number
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.host import Tree

_MILLI = 0.001
_MICRO = 0.000001


class Hwmon:
    """`files` is None where the device has no hwmon folder at all (MI250's second die, nvtop#300)."""

    def __init__(self, tree: Tree, device: str, special: Mapping[int, str] | None = None) -> None:
        self._tree = tree
        self._special = special
        self.folder, self.files = _find(tree, device)

    def has(self, name: str) -> bool:
        return self.files is not None and name in self.files

    def read(self, name: str, scale: float | None = None) -> Reading:
        if self.files is None:
            return null("not-exposed", "no hwmon")
        return number(self._tree, f"{self.folder}/{name}", f"hwmon.{name}", scale=scale, special=self._special)

    def temperature(self, channel: str) -> Reading:
        return bounded(self.read(f"{channel}_input", _MILLI), -50, 200)

    def power(self, names: tuple[str, ...]) -> Reading:
        """The first of several files that is there, in watts."""
        for name in names:
            if self.has(name):
                return bounded(self.read(name, _MICRO), 0, 10_000)
        return self.read(names[0], _MICRO)

    def energy(self, channel: str) -> Reading:
        """Joules since the driver loaded."""
        return bounded(self.read(f"{channel}_input", _MICRO), 0, 2**50)

    def fan_percent(self) -> Reading:
        """pwm1 counts from 0 to 255; a fan that tells only its speed has no share."""
        pwm = self.read("pwm1")
        if not isinstance(pwm.value, int):
            return pwm
        return bounded(measured(round(pwm.value / 2.55), "hwmon.pwm1"), 0, 100)

    def clock(self, channel: str) -> Reading:
        """Hz in the file, MHz in the document."""
        return bounded(self.read(f"{channel}_input", _MICRO), 0, 50_000)


def _find(tree: Tree, device: str) -> tuple[str, frozenset[str] | None]:
    try:
        names = sorted(name for name in tree.listdir(f"{device}/hwmon") if name.startswith("hwmon"))
        if not names:
            return "", None
        folder = f"{device}/hwmon/{names[0]}"
        return folder, frozenset(tree.listdir(folder))
    except OSError:
        return "", None


def bounded(reading: Reading, low: float, high: float) -> Reading:
    """A figure outside what is physically possible is none; its raw number stays behind the reason."""
    if isinstance(reading.value, int | float) and not low <= reading.value <= high:
        return null("out-of-range", f"{reading.provenance.partition(':')[2]} says {reading.value}")
    return reading
