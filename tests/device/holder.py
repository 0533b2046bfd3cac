"""Holds memory of an NVIDIA card: the driver's own calls by ctypes, no framework. Started by check.py.

    holder.py BYTES [--leader-exits]

Allocates, prints one JSON line, then obeys lines on stdin: `alloc BYTES`, `free` (the last block), `quit`; the end
of stdin is `quit` too. With `--leader-exits` the first thread ends and another obeys: to the kernel the process is
then a zombie that still holds its memory. Exit code 2: no card.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
import threading
import uuid

# exit(2) of the calling thread alone; the C library's exit ends the process.
SYS_EXIT = {"x86_64": 60, "aarch64": 93}


class Cuda:
    """The few calls that are needed; a code other than 0 ends the program."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as absent:
            self.leave(str(absent))
        if (code := self.library.cuInit(0)) != 0:
            self.leave(f"cuInit: {code}")
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            self.leave("cuDeviceGetCount: 0 cards")
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.context = ctypes.c_void_p()
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, self.device)
        self.blocks: list[int] = []

    @staticmethod
    def leave(why: str) -> None:
        print(why, file=sys.stderr)
        sys.exit(2)

    def call(self, function: str, *args: object) -> None:
        if (code := getattr(self.library, function)(*args)) != 0:
            sys.exit(f"{function}: CUDA error {code}")

    def uuid(self) -> str:
        raw = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid_v2", raw, self.device)
        return str(uuid.UUID(bytes=bytes(raw)))

    def in_use(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    def allocate(self, size: int) -> None:
        if size:
            address = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            self.blocks.append(address.value)

    def free(self) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(self.blocks.pop()))


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def obey(cuda: Cuda) -> None:
    # A context belongs to the thread that made it current.
    cuda.library.cuCtxSetCurrent(cuda.context)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "alloc":
            cuda.allocate(int(number))
        elif word == "free":
            cuda.free()
        else:
            break
        say(in_use=cuda.in_use())
    os._exit(0)


def main() -> None:
    cuda = Cuda()
    cuda.allocate(int(sys.argv[1]))
    say(uuid=cuda.uuid(), in_use=cuda.in_use())
    if "--leader-exits" in sys.argv:
        threading.Thread(target=obey, args=(cuda,), daemon=True).start()
        ctypes.CDLL(None).syscall(SYS_EXIT[platform.machine()], 0)
    obey(cuda)


if __name__ == "__main__":
    main()
