"""The one door to NVML: a call becomes a value or a reason, in the words of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.host import NvmlError
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Nvml

NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
FUNCTION_NOT_FOUND = 13
LOST = (15, 16)

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


def source_of(function: str) -> str:
    """`nvmlDeviceGetMemoryInfo_v2` -> `nvml.MemoryInfo_v2`."""
    return "nvml." + function.removeprefix("nvml").removeprefix("DeviceGet").removeprefix("SystemGet")


def ask(nvml: Nvml, function: str, *args: object, convert: Callable[[object], object] | None = None) -> Reading:
    """One call as a reading; `convert` turns NVML's units into the document's."""
    try:
        answer = nvml.call(function, *args)
    except NvmlError as error:
        return reason(error)
    except UnicodeDecodeError:  # WSL with driver 555: the device name is garbage (nvitop#127)
        return null("unknown-format", "not UTF-8")
    if answer is None:
        return null("not-supported", "NVML_VALUE_NOT_AVAILABLE")
    return measured(answer if convert is None else convert(answer), source_of(function))


def in_range(reading: Reading, low: float, high: float, warn: Callable[[str, object], None]) -> Reading:
    """A figure outside its possible range is no figure: the raw number goes to a warning."""
    value = reading.value
    if value is None or (isinstance(value, int | float) and low <= value <= high):
        return reading
    warn(reading.provenance.split(":", 1)[-1], value)
    return null("out-of-range")
