"""What a Mac's kernel charges a process for graphics: `task_info(TASK_VM_INFO)`, revision 3 (mach/task_info.h).

A task's *name* port may read it, which every process of the same user gives without root; of others, only root
(XNU's task_name_for_pid). Resident memory is no stand-in: a Metal process shows 7 MB RSS at 1.3 GB footprint
(claude-code#35804), and the VM tag of IOAccelerator is mimalloc's too (leviath PR#250).

    {"graphics_footprint": bytes, "graphics_footprint_compressed": bytes, "graphics_nofootprint": bytes}
"""

from __future__ import annotations

import ctypes
from typing import Any

from gpusnap.host import Unsupported

_TASK_VM_INFO = 22
_KERN_SUCCESS, _KERN_FAILURE = 0, 5
# `struct task_vm_info` up to revision 3, in 8-byte words; region_count and page_size share the second.
_WORDS_OF_REVISION_3 = 42
_GRAPHICS = {
    "graphics_footprint": 34,
    "graphics_footprint_compressed": 35,
    "graphics_nofootprint": 36,
    "graphics_nofootprint_compressed": 37,
}


def graphics_footprint(pid: int, library: Any = None) -> dict[str, int]:
    """ProcessLookupError or PermissionError where the port can't be had: the kernel does not tell them apart."""
    system = _load() if library is None else library
    own = ctypes.c_uint32.in_dll(system, "mach_task_self_")
    port = ctypes.c_uint32()
    if system.task_name_for_pid(own, ctypes.c_int(pid), ctypes.byref(port)) != _KERN_SUCCESS:
        raise PermissionError(13, f"task_name_for_pid({pid})")
    words = (ctypes.c_int64 * _WORDS_OF_REVISION_3)()
    count = ctypes.c_uint32(_WORDS_OF_REVISION_3 * 2)
    status = system.task_info(port, ctypes.c_uint32(_TASK_VM_INFO), words, ctypes.byref(count))
    system.mach_port_deallocate(own, port)
    if status != _KERN_SUCCESS:
        raise OSError(5, f"task_info({pid}): {status}")
    if count.value < _WORDS_OF_REVISION_3 * 2:
        raise Unsupported("task_info: older than revision 3 of TASK_VM_INFO")
    return {name: words[place] for name, place in _GRAPHICS.items()}


def _load() -> Any:
    try:
        return ctypes.CDLL("/usr/lib/libSystem.B.dylib")
    except OSError as missing:
        raise Unsupported(f"libSystem: {missing}") from missing
