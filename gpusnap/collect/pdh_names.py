"""Instance names of Windows' GPU counters, and what the drivers call their engines.

    pid_4242_luid_0x00000000_0x0001D6F4_phys_0_eng_5_engtype_Compute_0      GPU Engine
    pid_4242_luid_0x00000000_0x0001D6F4_phys_0                              GPU Process Memory
    luid_0x00000000_0x0001D6F4_phys_0                                       GPU Adapter Memory

Names are not translated on localised systems. The type is the driver's free text: it may hold blanks and
digits, or be empty.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_INSTANCE = re.compile(
    r"^(?:pid_(?P<pid>\d+)_)?luid_0x(?P<high>[0-9a-f]+)_0x(?P<low>[0-9a-f]+)_phys_(?P<phys>\d+)"
    r"(?:_eng_(?P<engine>\d+)_engtype_(?P<type>.*?))?(?:#(?P<twin>\d+))?$",
    re.IGNORECASE,
)
# How NVIDIA, AMD, Intel and Qualcomm begin the names of their engines' types, in small letters.
_KINDS = (
    ("3d", "graphics"),
    ("high priority 3d", "graphics"),
    ("graphics", "graphics"),
    ("compute", "compute"),
    ("high priority compute", "compute"),
    ("cuda", "compute"),
    ("copy", "copy"),
    ("videodecode", "video_decode"),
    ("video decode", "video_decode"),
    ("videoencode", "video_encode"),
    ("video encode", "video_encode"),
)


class Instance(NamedTuple):
    """`pid` is None in the adapter sets; `engine` is (phys, engine number) in the engine set, else None."""

    pid: int | None
    luid: str
    engine: tuple[int, int] | None
    kind: str
    is_twin: bool


def parse_instance(name: str) -> Instance | None:
    found = _INSTANCE.match(name)
    if found is None:
        return None
    pid, number = found["pid"], found["engine"]
    return Instance(
        pid=None if pid is None else int(pid),
        luid=luid_text(int(found["high"], 16), int(found["low"], 16)),
        engine=None if number is None else (int(found["phys"]), int(number)),
        kind=found["type"] or "",
        is_twin=found["twin"] is not None,
    )


def luid_text(high: int, low: int) -> str:
    """An adapter's number until the next boot or driver update: never an identity (systeminformer#802)."""
    return f"0x{high:08x}_0x{low:08x}"


def engine_of(kind: str) -> str | None:
    """The document's name for an engine type; None: it counts in the busy share of the whole only."""
    small = kind.casefold()
    return next((engine for prefix, engine in _KINDS if small.startswith(prefix)), None)
