"""When Windows started, by ntdll: SYSTEM_TIMEOFDAY_INFORMATION (winternl.h, phnt)."""

from __future__ import annotations

import ctypes
from typing import Any

from gpusnap.host import Unsupported

_TIME_OF_DAY = 3


class _TimeOfDay(ctypes.Structure):
    """In 100 ns since 1601. A change of the clock moves `boot_time` and `boot_time_bias` alike."""

    _fields_ = [
        ("boot_time", ctypes.c_int64),
        ("current_time", ctypes.c_int64),
        ("time_zone_bias", ctypes.c_int64),
        ("time_zone_id", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("boot_time_bias", ctypes.c_uint64),
        ("sleep_time_bias", ctypes.c_uint64),
    ]


def boot_time(library: Any = None) -> dict[str, int]:
    """{"boot_time": ...}: the same number from boot to shutdown."""
    ntdll = _load() if library is None else library
    ntdll.NtQuerySystemInformation.restype = ctypes.c_uint32
    answer = _TimeOfDay()
    status = ntdll.NtQuerySystemInformation(
        _TIME_OF_DAY, ctypes.byref(answer), ctypes.c_uint32(ctypes.sizeof(answer)), None
    )
    if status != 0:
        raise OSError(5, f"NtQuerySystemInformation: 0x{status:08X}")
    return {"boot_time": answer.boot_time - answer.boot_time_bias}


def _load() -> Any:
    try:
        return ctypes.WinDLL("ntdll.dll")  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError) as missing:
        raise Unsupported(f"ntdll.dll: {missing}") from missing
