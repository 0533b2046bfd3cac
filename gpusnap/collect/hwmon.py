"""A card's hwmon folder: labelled temperatures, power, energy, fan. Source: Documentation/hwmon/sysfs-interface.

Names and labels are kept strings; reading an `*_input` may wake the card, so callers ask the runtime status first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.sysfs import number, text
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
        self.labels = self._labels()

    def _labels(self) -> dict[str, str]:
        """`temp junction` -> `temp2`: the same label may stand on a temperature and on an energy counter."""
        found: dict[str, str] = {}
        for name in sorted(self.files or ()):
            if name.endswith("_label"):
                label = text(self._tree, f"{self.folder}/{name}", 64)
                channel = name.removesuffix("_label")
                if label is not None:
                    found.setdefault(f"{channel.rstrip('0123456789')} {label}", channel)
        return found

    def has(self, name: str) -> bool:
        return self.files is not None and name in self.files

    def read(self, name: str, scale: float | None = None) -> Reading:
        if self.files is None:
            return null("not-exposed", "no hwmon")
        return number(self._tree, f"{self.folder}/{name}", f"hwmon.{name}", scale=scale, special=self._special)

    def labelled(self, kind: str, labels: tuple[str, ...], fallback: str, scale: float) -> Reading:
        """The input of the first label of this kind that the card has, else the fallback channel's."""
        for label in labels:
            channel = self.labels.get(f"{kind} {label}")
            if channel is not None:
                return self.read(f"{channel}_input", scale)
        if not fallback:
            return null("not-exposed", f"no hwmon label {labels[0]}")
        return self.read(f"{fallback}_input", scale)

    def temperature(self, labels: tuple[str, ...], fallback: str = "") -> Reading:
        reading = self.labelled("temp", labels, fallback, _MILLI)
        return bounded(reading, -50, 200)

    def power(self, names: tuple[str, ...]) -> Reading:
        """The first of several files that is there, in watts."""
        for name in names:
            if self.has(name):
                return bounded(self.read(name, _MICRO), 0, 10_000)
        return self.read(names[0], _MICRO)

    def energy(self, labels: tuple[str, ...]) -> Reading:
        """Joules since the driver loaded."""
        return bounded(self.labelled("energy", labels, "energy1", _MICRO), 0, 2**50)

    def fan_percent(self) -> Reading:
        """pwm1 counts from 0 to 255; a fan that tells only its speed has no share."""
        pwm = self.read("pwm1")
        if not isinstance(pwm.value, int):
            return pwm
        return bounded(measured(round(pwm.value / 2.55), "hwmon.pwm1"), 0, 100)

    def clock(self, label: str, fallback: str) -> Reading:
        """Hz in the file, MHz in the document."""
        return bounded(self.labelled("freq", (label,), fallback, _MICRO), 0, 50_000)


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
