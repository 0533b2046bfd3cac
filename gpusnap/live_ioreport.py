"""A Mac's GPU energy counter, without root: the private `libIOReport.dylib`, group "Energy Model".

Its functions are known from socpowerbud and macmon. A channel's `RawElements` is `IOReportElement` of XNU's
IOKit/IOReportTypes.h, with the time at which the driver published the value: counters in mJ come in batches of two
seconds, and a window of ours says nothing about them (all-smi PR#412). A virtual machine has no such group.

    {"channels": [{"name": "GPU Energy", "unit": "nJ", "value": ..., "stamp": ticks}], "now": ticks,
     "numer": 125, "denom": 3}

`stamp` and `now` are of `mach_absolute_time()`; ticks * numer / denom are nanoseconds.
"""

from __future__ import annotations

import ctypes
from typing import Any

from gpusnap.host import Unsupported

_GROUP = b"Energy Model"
_CHANNELS, _ELEMENTS = b"IOReportChannels", b"RawElements"
_UTF8 = 0x08000100
_MAX_CHANNELS = 4096
_MAX_NAME = 128
_SIMPLE = 1
_OBJECT, _INDEX = ctypes.c_void_p, ctypes.c_long
# name -> what it returns, what it takes
_CORE = {
    "CFStringCreateWithCString": (_OBJECT, _OBJECT, ctypes.c_char_p, ctypes.c_uint32),
    "CFStringGetCString": (ctypes.c_ubyte, _OBJECT, ctypes.c_char_p, _INDEX, ctypes.c_uint32),
    "CFDictionaryGetValue": (_OBJECT, _OBJECT, _OBJECT),
    "CFDictionaryCreateMutableCopy": (_OBJECT, _OBJECT, _INDEX, _OBJECT),
    "CFArrayGetCount": (_INDEX, _OBJECT),
    "CFArrayGetValueAtIndex": (_OBJECT, _OBJECT, _INDEX),
    "CFDataGetLength": (_INDEX, _OBJECT),
    "CFDataGetBytePtr": (_OBJECT, _OBJECT),
    "CFRelease": (None, _OBJECT),
}
_REPORT = {
    "IOReportCopyChannelsInGroup": (_OBJECT, _OBJECT, _OBJECT, *[ctypes.c_uint64] * 3),
    "IOReportCreateSubscription": (
        _OBJECT,
        _OBJECT,
        _OBJECT,
        ctypes.POINTER(_OBJECT),
        ctypes.c_uint64,
        _OBJECT,
    ),
    "IOReportCreateSamples": (_OBJECT, _OBJECT, _OBJECT, _OBJECT),
    "IOReportChannelGetChannelName": (_OBJECT, _OBJECT),
    "IOReportChannelGetUnitLabel": (_OBJECT, _OBJECT),
    # The second one is 0 with everyone: an index or the place of a status.
    "IOReportSimpleGetIntegerValue": (ctypes.c_int64, _OBJECT, _OBJECT),
}
_SYSTEM = {
    "mach_absolute_time": (ctypes.c_uint64,),
    "mach_timebase_info": (ctypes.c_int, _OBJECT),
}


class _Element(ctypes.LittleEndianStructure):
    """`IOReportElement`: 64 bytes, of a simple channel."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [
        ("provider_id", ctypes.c_uint64),
        ("channel_id", ctypes.c_uint64),
        ("report_format", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8),
        ("categories", ctypes.c_uint16),
        ("nelements", ctypes.c_uint16),
        ("element_idx", ctypes.c_int16),
        ("timestamp", ctypes.c_uint64),
        ("simple_value", ctypes.c_int64),
        ("rest", ctypes.c_uint64 * 3),
    ]


class EnergyReader:
    """One subscription, kept over samples. The arguments are the libraries, or what stands in for them."""

    def __init__(self, report: Any = None, core: Any = None, system: Any = None) -> None:
        self._report = _typed(_load("/usr/lib/libIOReport.dylib") if report is None else report, _REPORT)
        path = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"
        self._core = _typed(_load(path) if core is None else core, _CORE)
        self._system = _typed(_load("/usr/lib/libSystem.B.dylib") if system is None else system, _SYSTEM)
        self._channels = self._open_group()
        self._subscribed = _OBJECT()
        self._subscription = self._report.IOReportCreateSubscription(
            None, self._channels, ctypes.byref(self._subscribed), 0, None
        )
        if not self._subscription or not self._subscribed:
            self._core.CFRelease(self._channels)
            raise Unsupported("IOReport: no subscription")

    def read(self) -> dict[str, Any]:
        sample = self._report.IOReportCreateSamples(self._subscription, self._subscribed, None)
        now = self._system.mach_absolute_time()
        if not sample:
            raise OSError(5, "IOReportCreateSamples")
        try:
            rows = self._rows(sample)
        finally:
            self._core.CFRelease(sample)
        base = (ctypes.c_uint32 * 2)()
        if self._system.mach_timebase_info(base) != 0 or 0 in base:
            raise OSError(5, "mach_timebase_info")
        return {"channels": rows, "now": now, "numer": base[0], "denom": base[1]}

    def _open_group(self) -> Any:
        group = self._string(_GROUP)
        try:
            found = self._report.IOReportCopyChannelsInGroup(group, None, 0, 0, 0)
        finally:
            self._core.CFRelease(group)
        if not found:
            raise Unsupported("IOReport: no group Energy Model")
        channels = self._core.CFDictionaryCreateMutableCopy(None, 0, found)
        self._core.CFRelease(found)
        if not channels:
            raise Unsupported("IOReport: no channels")
        return channels

    def _rows(self, sample: Any) -> list[dict[str, Any]]:
        channels = self._value(sample, _CHANNELS)
        count = self._core.CFArrayGetCount(channels) if channels else 0
        rows = []
        for index in range(min(count, _MAX_CHANNELS)):
            channel = self._core.CFArrayGetValueAtIndex(channels, index)
            name = self._text(self._report.IOReportChannelGetChannelName(channel))
            if name.startswith("GPU"):
                rows.append({"name": name, **self._row(channel)})
        return rows

    def _row(self, channel: Any) -> dict[str, Any]:
        """`stamp` is None where the element is not what its header says: then nothing times the value."""
        value = self._report.IOReportSimpleGetIntegerValue(channel, None)
        element = self._element(channel)
        known = element is not None and element.report_format == _SIMPLE and element.simple_value == value
        return {
            "unit": self._text(self._report.IOReportChannelGetUnitLabel(channel)).strip(),
            "value": value,
            "stamp": element.timestamp if element is not None and known else None,
        }

    def _element(self, channel: Any) -> _Element | None:
        data = self._value(channel, _ELEMENTS)
        size = ctypes.sizeof(_Element)
        if not data or self._core.CFDataGetLength(data) != size:
            return None
        return _Element.from_buffer_copy(ctypes.string_at(self._core.CFDataGetBytePtr(data), size))

    def _value(self, dictionary: Any, name: bytes) -> Any:
        key = self._string(name)
        try:
            return self._core.CFDictionaryGetValue(dictionary, key)
        finally:
            self._core.CFRelease(key)

    def _string(self, text: bytes) -> Any:
        made = self._core.CFStringCreateWithCString(None, text, _UTF8)
        if not made:
            raise OSError(12, "CFStringCreateWithCString")
        return made

    def _text(self, string: Any) -> str:
        buffer = ctypes.create_string_buffer(_MAX_NAME)
        if not string or not self._core.CFStringGetCString(string, buffer, _MAX_NAME, _UTF8):
            return ""
        return buffer.value.decode("utf-8", "replace")


def _typed(library: Any, functions: dict[str, tuple[Any, ...]]) -> Any:
    for name, (returned, *taken) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError as missing:
            raise Unsupported(f"IOReport: {missing}") from missing
        function.restype, function.argtypes = returned, taken
    return library


def _load(path: str) -> Any:
    try:
        return ctypes.CDLL(path)
    except OSError as missing:
        raise Unsupported(f"IOReport: {missing}") from missing
