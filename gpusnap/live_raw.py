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


# source -> the sys.platform that has it (None: any), and who reads it
_SOURCES: dict[str, tuple[str | None, Callable[..., Any]]] = {
    "dcmi": ("linux", _dcmi),
}
