"""Two kernel calls that Python has no name for: DRM query ioctls with pointers inside, and perf_event_open(2)."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from gpusnap.host import Unsupported

_DRM_IOCTL_I915_QUERY = 0xC0106479
_DRM_IOCTL_XE_DEVICE_QUERY = 0xC0286440
_BLOB_LIMIT = 1 << 20
# __NR_perf_event_open by machine.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241, "ppc64le": 319}
_PERF_FORMAT_TOTAL_TIME_ENABLED = 1
_PERF_ATTR_SIZE = 64  # PERF_ATTR_SIZE_VER0
_PERF_FLAG_FD_CLOEXEC = 8


def drm_query(path: str, driver: str, query: int) -> bytes:
    """Ask for the size, then for the blob."""
    try:
        import fcntl
    except ImportError as missing:
        raise Unsupported("no ioctl on this platform") from missing
    fd = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        ask = _i915_query if driver == "i915" else _xe_query
        size = ask(fcntl.ioctl, fd, query, None)
        if not 0 < size <= _BLOB_LIMIT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        blob = ctypes.create_string_buffer(size)
        ask(fcntl.ioctl, fd, query, blob)
        return blob.raw
    finally:
        os.close(fd)


def _i915_query(ioctl: object, fd: int, query: int, blob: ctypes.Array[ctypes.c_char] | None) -> int:
    """drm_i915_query {u32 num_items, flags; u64 items_ptr}, its item {u64 id; s32 length; u32 flags; u64 data}."""
    size = 0 if blob is None else len(blob)
    item = ctypes.create_string_buffer(struct.pack("=QiIQ", query, size, 0, _address(blob)), 24)
    request = bytearray(struct.pack("=IIQ", 1, 0, ctypes.addressof(item)))
    ioctl(fd, _DRM_IOCTL_I915_QUERY, request, True)  # type: ignore[operator]
    length = struct.unpack_from("=i", item.raw, 8)[0]
    if length < 0:
        raise OSError(-length, os.strerror(-length))
    return int(length)


def _xe_query(ioctl: object, fd: int, query: int, blob: ctypes.Array[ctypes.c_char] | None) -> int:
    """drm_xe_device_query {u64 extensions; u32 query, size; u64 data; u64 reserved[2]}."""
    size = 0 if blob is None else len(blob)
    request = bytearray(struct.pack("=QIIQQQ", 0, query, size, _address(blob), 0, 0))
    ioctl(fd, _DRM_IOCTL_XE_DEVICE_QUERY, request, True)  # type: ignore[operator]
    return int(struct.unpack_from("=I", request, 12)[0])


def _address(blob: ctypes.Array[ctypes.c_char] | None) -> int:
    return 0 if blob is None else ctypes.addressof(blob)


class PerfCounter:
    """An open file descriptor of perf_event_open(2)."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self) -> tuple[int, int]:
        raw = os.read(self._fd, 16)
        if len(raw) != 16:  # its device is gone
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        value, enabled = struct.unpack("=QQ", raw)
        return value, enabled

    def close(self) -> None:
        os.close(self._fd)


def open_perf_counter(pmu: int, config: int, cpu: int) -> PerfCounter:
    """Every process, one CPU: how system-wide PMUs are counted."""
    number = _PERF_EVENT_OPEN.get(os.uname().machine) if sys.platform == "linux" else None
    if number is None:
        raise Unsupported("perf_event_open is not known on this machine")
    attributes = bytearray(_PERF_ATTR_SIZE)
    # u32 type, size; u64 config, sample_period, sample_type, read_format; the rest stays 0.
    struct.pack_into("=IIQQQQ", attributes, 0, pmu, _PERF_ATTR_SIZE, config, 0, 0, _PERF_FORMAT_TOTAL_TIME_ENABLED)
    buffer = ctypes.create_string_buffer(bytes(attributes), _PERF_ATTR_SIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.byref(buffer), -1, cpu, -1, _PERF_FLAG_FD_CLOEXEC)
    fd = libc.syscall(ctypes.c_long(number), *arguments)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return PerfCounter(fd)
