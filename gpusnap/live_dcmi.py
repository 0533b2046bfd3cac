"""Processes of Huawei NPUs in bytes by `libdcmi.so` (DCMI API reference; `dcmi_interface_api.h`).

    {"chips": [{"card": 0, "chip": 0, "processes": [[pid, bytes], ...] | {"error": -8255}}, ...]}

The library prints on standard output, where gpusnap's document goes (`DrvMngGetConsoleLogLevel failed`,
vllm-ascend#632), and may hang on a sick chip. So this file runs as a program of its own, imports nothing of
gpusnap, and is ended when it takes too long.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from typing import Any

LIBRARY_PLACES = (
    "libdcmi.so",
    "/usr/local/dcmi/libdcmi.so",
    "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
)
_MARK = "gpusnap-dcmi "
_TIMEOUT = 5.0
_MAX_CARDS = 64
# MAX_PROC_NUM of the header: no chip lists more.
_MAX_PROCESSES = 32
_NPU = 0
_NO_LIBRARY = 3


class _Process(ctypes.Structure):
    """`struct dcmi_proc_mem_info`: unlike the device figures, memory here is in bytes."""

    _fields_ = [("pid", ctypes.c_int), ("memory", ctypes.c_ulong)]


def read_dcmi() -> Any:
    """Unsupported where there is no library; OSError where it failed."""
    from gpusnap.host import Unsupported

    argv = [sys.executable, "-I", __file__]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as late:
        raise TimeoutError(f"libdcmi.so: no answer within {_TIMEOUT:g} s") from late
    if done.returncode == _NO_LIBRARY:
        raise Unsupported("libdcmi.so: not found")
    for line in reversed(done.stdout.decode("utf-8", "replace").splitlines()):
        _, mark, answer = line.partition(_MARK)
        if mark:
            return json.loads(answer)
    raise OSError(5, f"libdcmi.so: no answer, exit {done.returncode}")


def _main() -> int:
    library = _load()
    if library is None:
        return _NO_LIBRARY
    code = library.dcmi_init()
    answer: dict[str, object] = {"error": code} if code != 0 else {"chips": _chips(library)}
    # The library may have left a line without its end.
    sys.stdout.write(f"\n{_MARK}{json.dumps(answer)}\n")
    return 0


def _load() -> Any:
    for place in LIBRARY_PLACES:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


def _chips(library: Any) -> list[dict[str, object]]:
    count = ctypes.c_int()
    cards = (ctypes.c_int * _MAX_CARDS)()
    if library.dcmi_get_card_list(ctypes.byref(count), cards, _MAX_CARDS) != 0:
        return []
    found: list[dict[str, object]] = []
    for card in cards[: max(0, min(count.value, _MAX_CARDS))]:
        chips = ctypes.c_int()
        if library.dcmi_get_device_num_in_card(card, ctypes.byref(chips)) != 0:
            continue
        for chip in range(max(0, min(chips.value, _MAX_CARDS))):
            if _is_npu(library, card, chip):
                found.append({"card": card, "chip": chip, "processes": _processes(library, card, chip)})
    return found


def _is_npu(library: Any, card: int, chip: int) -> bool:
    """A card's controller (MCU) counts as a chip too."""
    kind = ctypes.c_int(-1)
    return library.dcmi_get_device_type(card, chip, ctypes.byref(kind)) == 0 and kind.value == _NPU


def _processes(library: Any, card: int, chip: int) -> list[list[int]] | dict[str, int]:
    rows = (_Process * _MAX_PROCESSES)()
    count = ctypes.c_int(_MAX_PROCESSES)
    code = library.dcmi_get_device_resource_info(card, chip, rows, ctypes.byref(count))
    if code != 0:
        return {"error": int(code)}
    return [[row.pid, row.memory] for row in rows[: max(0, min(count.value, _MAX_PROCESSES))]]


if __name__ == "__main__":
    sys.exit(_main())
