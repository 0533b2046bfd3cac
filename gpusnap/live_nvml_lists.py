"""NVML's process lists read straight from the buffer that the driver fills.

The binding asks twice (for the size, then for the rows) and makes an object of each row: 60 µs for 25 processes on
each of 8 cards, more than all other calls of a sample together. Here the buffer of the last sample is offered
first, and its rows are unpacked at once. Layout: nvmlProcessInfo_t of nvml.h, the same in `_v2` and `_v3`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusnap.live_nvml import LiveNvml

# unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId
_ROW = struct.Struct("@I4xQII")
_NOT_AVAILABLE = 2**64 - 1
_INSUFFICIENT_SIZE = 7
_FIRST_ROOM = 32

PROCESS_LISTS = tuple(
    f"nvmlDeviceGet{kind}RunningProcesses{version}"
    for kind in ("Compute", "Graphics", "MPSCompute")
    for version in ("_v3", "_v2")
)


class ListReader:
    """Keeps the room that each list took last time, with half of it to spare."""

    def __init__(self) -> None:
        self._room: dict[tuple[str, str], int] = {}

    def read(self, nvml: LiveNvml, pynvml: Any, function: str, device: str) -> list[dict[str, object]]:
        """The rows under NVML's field names; memory that the driver does not tell is None, as in the binding."""
        import ctypes

        ask = pynvml._nvmlGetFunctionPointer(function)
        handle = nvml.handle(device)
        room = self._room.get((function, device), _FIRST_ROOM)
        while True:
            buffer = ctypes.create_string_buffer(room * _ROW.size)
            count = ctypes.c_uint(room)
            code = ask(handle, ctypes.byref(count), buffer)
            if code == 0:
                break
            if code != _INSUFFICIENT_SIZE or count.value <= room:
                raise nvml.error(code)
            room = count.value * 3 // 2 + 5  # more may start meanwhile
        self._room[function, device] = room
        rows = memoryview(buffer)[: min(count.value, room) * _ROW.size]
        return [
            {
                "pid": pid,
                "usedGpuMemory": None if used == _NOT_AVAILABLE else used,
                "gpuInstanceId": gpu,
                "computeInstanceId": compute,
            }
            for pid, used, gpu, compute in _ROW.iter_unpack(rows)
        ]
