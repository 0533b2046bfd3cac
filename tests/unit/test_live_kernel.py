"""The struct layouts that the kernel sees, against a stand-in kernel written from the uapi headers."""

from __future__ import annotations

import ctypes
import errno
import struct
import time

import pytest

from gpusnap import live_kernel
from gpusnap.host import Unsupported

BLOB = bytes(range(200))


def i915_ioctl(fd: int, request: int, buffer: bytearray, mutate: bool) -> int:
    """DRM_IOCTL_I915_QUERY: 16 bytes, one item of 24 bytes behind a pointer; a length of 0 asks for the size."""
    assert (fd, request, mutate) == (5, 0xC0106479, True)
    assert len(buffer) == 16
    count, flags, items = struct.unpack("=IIQ", buffer)
    assert (count, flags) == (1, 0)
    query, length, item_flags, data = struct.unpack("=QiIQ", ctypes.string_at(items, 24))
    assert item_flags == 0
    if query != 4:
        answer = -errno.EINVAL
    elif length == 0:
        answer = len(BLOB)
    else:
        assert length == len(BLOB)
        ctypes.memmove(data, BLOB, len(BLOB))
        answer = length
    ctypes.memmove(items + 8, struct.pack("=i", answer), 4)
    return 0


def xe_ioctl(fd: int, request: int, buffer: bytearray, mutate: bool) -> int:
    """DRM_IOCTL_XE_DEVICE_QUERY: 40 bytes; a size of 0 asks for the size."""
    assert (fd, request, mutate) == (5, 0xC0286440, True)
    assert len(buffer) == 40
    extensions, query, size, data, *reserved = struct.unpack("=QIIQQQ", buffer)
    assert (extensions, query, reserved) == (0, 1, [0, 0])
    if size:
        assert size == len(BLOB)
        ctypes.memmove(data, BLOB, len(BLOB))
    struct.pack_into("=I", buffer, 12, len(BLOB))
    return 0


@pytest.mark.parametrize(
    ("ask", "ioctl", "query"),
    [(live_kernel._i915_query, i915_ioctl, 4), (live_kernel._xe_query, xe_ioctl, 1)],
)
def test_a_query_asks_for_the_size_then_for_the_blob(ask, ioctl, query) -> None:  # type: ignore[no-untyped-def]
    size = ask(ioctl, 5, query, None)
    assert size == 200
    blob = ctypes.create_string_buffer(size)
    assert ask(ioctl, 5, query, blob) == 200
    assert blob.raw == BLOB


def test_i915_refuses_an_item_with_a_negative_length() -> None:
    with pytest.raises(OSError, match="Invalid argument") as refusal:
        live_kernel._i915_query(i915_ioctl, 5, 77, None)
    assert refusal.value.errno == errno.EINVAL


def test_the_request_numbers_are_those_of_the_ioctl_macros() -> None:
    """_IOWR('d', nr, size) = 3 << 30 | size << 16 | 'd' << 8 | nr; driver commands start at 0x40."""
    i915 = 3 << 30 | 16 << 16 | ord("d") << 8 | 0x40 + 0x39
    xe = 3 << 30 | 40 << 16 | ord("d") << 8 | 0x40
    ours = (live_kernel._DRM_IOCTL_I915_QUERY, live_kernel._DRM_IOCTL_XE_DEVICE_QUERY)
    assert ours == (i915, xe)


def test_a_query_on_what_is_no_drm_node_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError) as refusal:
        live_kernel.drm_query("/dev/null", "i915", 4)
    assert refusal.value.errno == errno.ENOTTY


def test_a_software_counter_of_cpu_0_runs_with_the_clock_or_is_denied() -> None:
    """PERF_COUNT_SW_CPU_CLOCK (type 1, config 0) counts nanoseconds, so it must grow as its enabled time does."""
    refusal: int | None = None
    value, enabled = 0, 0
    try:
        counter = live_kernel.open_perf_counter(1, 0, 0)
        before = counter.read()
        time.sleep(0.05)
        after = counter.read()
        counter.close()
        value, enabled = after[0] - before[0], after[1] - before[1]
    except OSError as denied:
        refusal = denied.errno
    except Unsupported:
        refusal = errno.ENOSYS
    if refusal is not None:
        assert refusal in (errno.EACCES, errno.EPERM, errno.ENOSYS, errno.ENOENT)
    else:
        assert enabled >= 50_000_000
        assert value == pytest.approx(enabled, rel=0.1)


def test_a_pmu_that_is_not_there_is_an_error_of_the_system() -> None:
    with pytest.raises((OSError, Unsupported)):
        live_kernel.open_perf_counter(0x7FFFFFFF, 0, 0)
