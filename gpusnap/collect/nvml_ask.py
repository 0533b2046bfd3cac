"""The one door to NVML: a call becomes a value or a reason, in the words of the contract."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gpusnap.host import NvmlError
from gpusnap.reading import Reading, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Nvml

NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
FUNCTION_NOT_FOUND = 13
LOST = (15, 16)
REFRESH_SAMPLES = 60
# What a card is, or what only a reset changes.
BUILT_IN = frozenset(
    {"nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetEccMode"}
)

_REASONS = {
    NOT_SUPPORTED: "not-supported",
    NO_PERMISSION: "no-permission",
    NOT_FOUND: "not-exposed",
    10: "timeout",
    FUNCTION_NOT_FOUND: "not-exposed",
    15: "device-lost",
    16: "device-lost",
}


def reason(error: NvmlError) -> Reading:
    """nvmlReturn_t as a null reading, NVML's own name behind the reason."""
    return null(_REASONS.get(error.code, "failed"), error.name)


@cache
def source_of(function: str) -> str:
    """`nvmlDeviceGetMemoryInfo_v2` -> `nvml.MemoryInfo_v2`."""
    return "nvml." + function.removeprefix("nvml").removeprefix("DeviceGet").removeprefix("SystemGet")


def ask(nvml: Nvml, function: str, *args: object, convert: Callable[[object], object] | None = None) -> Reading:
    """One call as a reading; `convert` turns NVML's units into the document's, ValueError where it can't."""
    try:
        answer = nvml.call(function, *args)
    except NvmlError as error:
        return reason(error)
    except UnicodeDecodeError:  # WSL with driver 555: the device name is garbage (nvitop#127)
        return null("unknown-format", "not UTF-8")
    if answer is None:
        return null("not-supported", "NVML_VALUE_NOT_AVAILABLE")
    source = source_of(function)
    try:
        value = answer if convert is None else convert(answer)
    except ValueError:
        return null("unknown-format", source)
    return measured(clean(value) if isinstance(value, str) else value, source)


class Remembering:
    """NVML, and what it says once for a run: what this device does not have, what is built into it.

    "Not supported" stays so until somebody reconfigures the card, and raising it anew for each card and sample
    costs more than the figures. All of it is asked again every 60 samples.
    """

    def __init__(self) -> None:
        self._lacks: dict[tuple[object, ...], NvmlError] = {}
        self._built_in: dict[tuple[object, ...], object] = {}
        self._nvml: Nvml | None = None
        self._age = 0
        self.version: str | None = None

    def over(self, nvml: Nvml) -> Nvml:
        """For one sample."""
        if nvml is not self._nvml or self._age >= REFRESH_SAMPLES:
            self._lacks.clear()
            self._built_in.clear()
            self._age = 0
        self._nvml = nvml
        self.version = nvml.version
        self._age += 1
        return self

    def call(self, function: str, *args: object) -> object:
        key = (function, *args)
        lacking = self._lacks.get(key)
        if lacking is not None:
            raise NvmlError(lacking.code, lacking.name)
        if key in self._built_in:
            return self._built_in[key]
        if self._nvml is None:
            raise AssertionError("called before over()")
        try:
            answer = self._nvml.call(function, *args)
        except NvmlError as error:
            if error.code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                self._lacks[key] = error
            raise
        if function in BUILT_IN:
            self._built_in[key] = answer
        return answer

    def close(self) -> None:
        """Whoever opened it closes it."""


def in_range(reading: Reading, low: float, high: float, warn: Callable[[str, object], None]) -> Reading:
    """A figure outside its possible range is no figure: the raw number goes to a warning."""
    value = reading.value
    if value is None or (isinstance(value, int | float) and low <= value <= high):
        return reading
    warn(reading.provenance.split(":", 1)[-1], value)
    return null("out-of-range")
