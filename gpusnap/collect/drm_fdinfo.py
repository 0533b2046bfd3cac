"""`/proc/PID/fdinfo/FD` of a DRM or accel descriptor, parsed. Pure.

Source: Documentation/gpu/drm-usage-stats.rst and each driver's show_fdinfo, Linux 5.14 to 7.2. Sizes come in
bytes without a unit, in KiB or in MiB, whichever the value is aligned to, all three in one file (nvtop's xe
reader knows only KiB and loses the round values). A key that is absent is not zero.
"""

from __future__ import annotations

from gpusnap.collect.sysfs import MAX_INTEGER
from gpusnap.text import clean

_UNITS = {"": 1, "B": 1, "KiB": 1024, "kB": 1024, "KB": 1024, "MiB": 1024**2, "GiB": 1024**3}

# Longest first: `drm-total-cycles-` is no memory region, `drm-engine-capacity-` no engine.
_PREFIXES = (
    ("drm-total-cycles-", "total_cycles"),
    ("drm-engine-capacity-", "capacities"),
    ("drm-engine-", "engines"),
    ("drm-cycles-", "cycles"),
    ("drm-total-", "total"),
    ("drm-shared-", "shared"),
    ("drm-resident-", "resident"),
    ("drm-memory-", "memory"),
)
_SIZES = frozenset({"total", "shared", "resident", "memory"})

# amdgpu before 5.19 (nvtop#158, amdgpu_top#132): no `drm-` keys, no client id.
_OLD_AMDGPU = {"vram mem": "vram", "gtt mem": "gtt", "cpu mem": "cpu"}


class FdInfo:
    """One client as one descriptor shows it.

    `sizes` maps (kind, region) to bytes, or to None where the text was no size: kind is resident, memory,
    total or shared. `too_large` has the text of those that are numbers which can't be. `client_id` is None for a
    descriptor without keys (a driver without accounting, or a card that was pulled out).
    """

    __slots__ = (
        "capacities",
        "client_id",
        "cycles",
        "driver",
        "engines",
        "has_keys",
        "old_format",
        "pdev",
        "sizes",
        "too_large",
        "total_cycles",
    )

    def __init__(self) -> None:
        self.driver: str | None = None
        self.pdev: str | None = None
        self.client_id: str | None = None
        self.has_keys = False
        self.old_format = False
        self.sizes: dict[tuple[str, str], int | None] = {}
        self.too_large: dict[tuple[str, str], str] = {}
        self.engines: dict[str, int] = {}
        self.capacities: dict[str, int] = {}
        self.cycles: dict[str, int] = {}
        self.total_cycles: dict[str, int] = {}

    def size(self, kind: str, region: str) -> int | None:
        return self.sizes.get((kind, region))

    def regions(self) -> list[str]:
        """Every region that any key names, in the order of the text."""
        return list(dict.fromkeys(region for _, region in self.sizes))


def parse(raw: bytes) -> FdInfo:
    """Lines `key:<blanks>value [unit]`; unknown keys are ignored, a last line without its end is torn."""
    info = FdInfo()
    text = raw.decode("utf-8", "replace")
    lines = text.split("\n")
    for line in lines[:-1]:
        key, colon, value = line.partition(":")
        if not colon:
            continue
        _take(info, key.strip(), value.strip())
    if info.client_id is None and info.old_format:
        info.client_id = _pasid(lines)
    return info


def _take(info: FdInfo, key: str, value: str) -> None:
    if key in _OLD_AMDGPU:
        info.old_format = info.has_keys = True
        info.driver = "amdgpu"
        _take_size(info, "memory", _OLD_AMDGPU[key], value)
    elif key == "pdev":
        info.pdev = value
    elif not key.startswith("drm-"):
        if key == "panthor-resident-memory":
            # The driver's own buffers for the client: they stand in no drm- key (Documentation/gpu/panthor).
            _take_size(info, "resident", "panthor", value)
    elif key == "drm-driver":
        info.driver, info.has_keys = clean(value, 64), True
    elif key == "drm-pdev":
        info.pdev, info.has_keys = value, True
    elif key == "drm-client-id":
        info.client_id, info.has_keys = (value if value.isdigit() else None), True
    else:
        _take_figure(info, key, value)


def _take_figure(info: FdInfo, key: str, value: str) -> None:
    for prefix, kind in _PREFIXES:
        if not key.startswith(prefix):
            continue
        name = key[len(prefix) :]
        info.has_keys = True
        if kind in _SIZES:
            _take_size(info, kind, name, value)
            return
        number = _whole(value.partition(" ")[0])
        if number is not None:
            getattr(info, kind)[name] = number
        return


def _take_size(info: FdInfo, kind: str, region: str, value: str) -> None:
    count = _bytes(value)
    info.sizes[kind, region] = parse_size(value)
    if count is not None and count >= MAX_INTEGER:  # a counter that went below 0
        info.too_large[kind, region] = value


def parse_size(value: str) -> int | None:
    """`16 MiB` -> 16777216, `0` -> 0; None for what is no size, or none that can be."""
    count = _bytes(value)
    return None if count is None or count >= MAX_INTEGER else count


def _bytes(value: str) -> int | None:
    number, _, unit = value.partition(" ")
    factor = _UNITS.get(unit.strip())
    count = _whole(number)
    return None if factor is None or count is None else count * factor


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() and text.isascii() and len(text) <= 20 else None


def _pasid(lines: list[str]) -> str | None:
    """The old format has no client id; pdev and pasid name a client there."""
    for line in lines[:-1]:
        key, _, value = line.partition(":")
        if key == "pasid" and value.strip().isdigit():
            return "pasid " + value.strip()
    return None
