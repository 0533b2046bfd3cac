"""Windows' GPU performance counters by ctypes: one query with wildcards, kept open between samples.

`PdhAddEnglishCounterW` takes the English names on every localised system; the counters' own names are
translated (`GPU Process Memory` is "GPU 进程内存"). Gauges are good after the first collection, shares of time
after the second.

    {"counters": {PATH: [[instance, CStatus, value or null], ...] | {"error": status}}}
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

from gpusnap.host import Unsupported

BYTES_PATHS = (
    "\\GPU Process Memory(*)\\Local Usage",
    "\\GPU Process Memory(*)\\Non Local Usage",
    "\\GPU Process Memory(*)\\Dedicated Usage",
    "\\GPU Process Memory(*)\\Shared Usage",
    "\\GPU Process Memory(*)\\Total Committed",
    "\\GPU Adapter Memory(*)\\Dedicated Usage",
    "\\GPU Adapter Memory(*)\\Shared Usage",
)
PERCENT_PATH = "\\GPU Engine(*)\\Utilization Percentage"
_LARGE = 0x00000400
_DOUBLE_ABOVE_100 = 0x00000200 | 0x00008000
_MORE_DATA = 0x800007D2
# Instances may come between the call that tells the size and the one that fills it.
_TRIES = 5
_MAX_BYTES = 64 << 20
_GOOD = (0, 1)


class _Value(ctypes.Union):
    _fields_ = [("long", ctypes.c_int32), ("double", ctypes.c_double), ("large", ctypes.c_int64)]


class _CounterValue(ctypes.Structure):
    _fields_ = [("status", ctypes.c_uint32), ("value", _Value)]


class _Item(ctypes.Structure):
    """`PDH_FMT_COUNTERVALUE_ITEM_W`: 24 bytes on 64 bits; the name points into the same buffer."""

    _fields_ = [("name", ctypes.c_wchar_p), ("counter", _CounterValue)]


class PdhQuery:
    """`library` is pdh.dll, or what stands in for it."""

    def __init__(self, library: Any = None) -> None:
        self._pdh = _load() if library is None else library
        for name in (
            "PdhOpenQueryW",
            "PdhAddEnglishCounterW",
            "PdhCollectQueryData",
            "PdhGetFormattedCounterArrayW",
            "PdhCloseQuery",
        ):
            # Else 0x800007D2 comes out negative.
            getattr(self._pdh, name).restype = ctypes.c_uint32
        self._query = ctypes.c_void_p()
        status = self._pdh.PdhOpenQueryW(None, ctypes.c_size_t(0), ctypes.byref(self._query))
        if status != 0:
            raise OSError(5, f"PdhOpenQueryW: 0x{status:08X}")
        self._counters: dict[str, ctypes.c_void_p] = {}
        self._errors: dict[str, int] = {}
        for path in (*BYTES_PATHS, PERCENT_PATH):
            self._add(path)

    def _add(self, path: str) -> None:
        handle = ctypes.c_void_p()
        status = self._pdh.PdhAddEnglishCounterW(
            self._query, ctypes.c_wchar_p(path), ctypes.c_size_t(0), ctypes.byref(handle)
        )
        if status == 0:
            self._counters[path] = handle
        else:
            self._errors[path] = status

    def collect(self) -> dict[str, Any]:
        """One collection, and the figures as they stand after it."""
        counters: dict[str, Any] = {path: {"error": status} for path, status in self._errors.items()}
        status = self._pdh.PdhCollectQueryData(self._query) if self._counters else 0
        for path, handle in self._counters.items():
            counters[path] = {"error": status} if status != 0 else self._array(path, handle)
        return {"counters": counters}

    def _array(self, path: str, handle: ctypes.c_void_p) -> Any:
        is_share = path == PERCENT_PATH
        form = ctypes.c_uint32(_DOUBLE_ABOVE_100 if is_share else _LARGE)
        size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        buffer = None
        status = _MORE_DATA
        for _ in range(_TRIES):
            status = self._pdh.PdhGetFormattedCounterArrayW(
                handle, form, ctypes.byref(size), ctypes.byref(count), buffer
            )
            if status != _MORE_DATA or size.value > _MAX_BYTES:
                break
            buffer = ctypes.create_string_buffer(size.value)
        if status != 0:
            return {"error": status}
        if buffer is None:
            return []
        items = ctypes.cast(buffer, ctypes.POINTER(_Item))
        return [_row(items[number], is_share) for number in range(count.value)]

    def close(self) -> None:
        self._pdh.PdhCloseQuery(self._query)


def _row(item: Any, is_share: bool) -> list[object]:
    """The name is copied here, before the buffer goes."""
    status = int(item.counter.status)
    value: float | None = None
    if status in _GOOD:
        value = item.counter.value.double if is_share else item.counter.value.large
        if isinstance(value, float) and not math.isfinite(value):
            value = None
    return [item.name or "", status, value]


def _load() -> Any:
    try:
        return ctypes.WinDLL("pdh.dll")  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError) as missing:
        raise Unsupported(f"pdh.dll: {missing}") from missing
