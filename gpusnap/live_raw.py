"""What only one platform has a library for, as plain JSON values: `Host.raw`.

One function a source; the module of a source is imported when it is asked. `state` keeps what stays open between
two samples (a PDH query).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gpusnap.host import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    State = dict[str, object]


def ask(state: State, source: str, *args: object) -> Any:
    known = _SOURCES.get(source)
    if known is None:
        raise Unsupported(f"no source {source}")
    platform, answer = known
    if platform is not None and sys.platform != platform:
        raise Unsupported(f"{source}: only on {platform}")
    return answer(state, *args)


def _dcmi(_: State) -> Any:
    from gpusnap.live_dcmi import read_dcmi

    return read_dcmi()


def _process(_: State, pid: object) -> Any:
    from gpusnap.live_psutil import process_facts

    return process_facts(int(str(pid)))


def _pdh(state: State) -> Any:
    from gpusnap.live_pdh import PdhQuery

    query = state.get("pdh")
    if not isinstance(query, PdhQuery):
        query = state["pdh"] = PdhQuery()
    return query.collect()


def _adapters(_: State) -> Any:
    from gpusnap.live_dxgi import graphics_adapters

    return graphics_adapters()


def _boot(_: State) -> Any:
    from gpusnap.live_windows import boot_time

    return boot_time()


def _footprint(_: State, pid: object) -> Any:
    from gpusnap.live_macos import graphics_footprint

    return graphics_footprint(int(str(pid)))


def _energy(state: State) -> Any:
    from gpusnap.live_ioreport import EnergyReader

    reader = state.get("energy")
    if not isinstance(reader, EnergyReader):
        reader = state["energy"] = EnergyReader()
    return reader.read()


# source -> the sys.platform that has it (None: any), and who reads it
_SOURCES: dict[str, tuple[str | None, Callable[..., Any]]] = {
    "dcmi": ("linux", _dcmi),
    "process": (None, _process),
    "pdh": ("win32", _pdh),
    "adapters": ("win32", _adapters),
    "boot": ("win32", _boot),
    "footprint": ("darwin", _footprint),
    "energy": ("darwin", _energy),
}
