"""What i915 and xe answer to their memory query, parsed; and the dmem cgroup's figures.

Sources: include/uapi/drm/{i915_drm,xe_drm}.h. Without CAP_PERFMON i915 answers unallocated = probed and early xe
used = 0; both drivers always keep some memory of a card for themselves, so "nothing used" means "not told"
(nvtop#347), whatever capabilities a user namespace pretends.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.collect.sysfs import MAX_INTEGER, unknown_format, why
from gpusnap.host import Unsupported
from gpusnap.reading import Reading, estimated, measured, null

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Host

# query id of the memory regions: DRM_I915_QUERY_MEMORY_REGIONS, DRM_XE_DEVICE_QUERY_MEM_REGIONS
MEMORY_REGIONS = {"i915": 4, "xe": 1}
_HEADER_BYTES = {"i915": 16, "xe": 8}
_I915_REGION = struct.Struct("<HHIQQ64x")  # class, instance, -, probed, unallocated
_XE_REGION = struct.Struct("<HHIQQ64x")  # class, instance, page size, total, used
_LOCAL = 1
_DMEM = "fs/cgroup"
_NOT_TOLD = null("no-permission", "CAP_PERFMON")


class Pools(NamedTuple):
    """The card's own memory and the system's, each total and used; a pool that is not there is None."""

    total: Reading | None
    used: Reading | None
    system_total: Reading | None
    system_used: Reading | None


def ask(host: Host, driver: str, node: str | None) -> Pools | Reading:
    """Ask the driver through its render node; a null reading says why that failed."""
    source = f"{driver}.query"
    if node is None:
        return null("not-exposed", f"{source}: no render node")
    try:
        blob = host.drm_query(node, driver, MEMORY_REGIONS[driver])
    except Unsupported:
        return null("not-exposed", source)
    except OSError as error:
        return why(error, source)
    pools = parse(driver, blob)
    return unknown_format(source, b"") if pools is None else pools


def parse(driver: str, blob: bytes) -> Pools | None:
    """u32 count, padding, then regions of 88 bytes in both drivers; None for what is no such answer."""
    start, region = _HEADER_BYTES[driver], _I915_REGION if driver == "i915" else _XE_REGION
    if len(blob) < start:
        return None
    count = int.from_bytes(blob[:4], "little")
    if not 0 < count <= 64 or len(blob) < start + count * region.size:
        return None
    sums: dict[bool, list[int]] = {}
    for number in range(count):
        kind, _, _, total, second = region.unpack_from(blob, start + number * region.size)
        used = total - second if driver == "i915" else second
        pool = sums.setdefault(kind == _LOCAL, [0, 0])
        pool[0] += total
        pool[1] += used
    local, system = sums.get(True), sums.get(False)
    source = f"{driver}.query"
    return Pools(
        _size(local[0], source, measured) if local else None,
        _used(local[1], local[0], source) if local else None,
        _size(system[0], source, measured) if system else None,
        _system_used(driver, system[1], system[0], source) if system else None,
    )


def _size(size: int, source: str, kind: Callable[[int, str], Reading]) -> Reading:
    """Both headers keep -1, all ones, for a size that is not known."""
    return kind(size, source) if size < MAX_INTEGER else null("out-of-range", f"{source} says {size}")


def _used(used: int, total: int, source: str) -> Reading:
    if total >= MAX_INTEGER:
        return _size(total, source, measured)
    if used == 0:
        return _NOT_TOLD
    return (
        measured(used, source) if 0 < used <= total else null("out-of-range", f"{source} says {used} of {total}")
    )


def _system_used(driver: str, used: int, total: int, source: str) -> Reading:
    """i915 tracks only local memory: of the system's it always answers unallocated = probed (i915_drm.h)."""
    if driver == "i915":
        return null("not-exposed", "i915 counts no system memory")
    return _used(used, total, source)


def dmem_capacity(host: Host, address: str) -> Reading:
    """The card's memory as the dmem cgroup controller knows it (Linux 6.14): readable by all, wakes nothing."""
    source = "cgroup.dmem.capacity"
    try:
        raw = host.sys.read(f"{_DMEM}/dmem.capacity", 65536)
    except OSError as error:
        return why(error, source)
    size = _regions(raw, address)
    return null("not-exposed", source) if size is None else _size(size, source, measured)


def dmem_current(host: Host, address: str) -> Reading:
    """What all cgroups below the root are charged: all but what the kernel keeps for itself, so a lower bound."""
    source = "cgroup.dmem.current"
    total = None
    try:
        names = host.sys.listdir(_DMEM)
    except OSError as error:
        return why(error, source)
    if "dmem.current" in names:  # every group has it but the root: what is seen here is a container's
        return null("not-exposed", f"{source}: only this container's groups are seen")
    for name in names:
        if name.startswith(("dmem.", "cgroup.")):
            continue
        try:
            raw = host.sys.read(f"{_DMEM}/{name}/dmem.current", 65536)
        except (FileNotFoundError, NotADirectoryError):  # a file, or a group without the controller
            continue
        except OSError as error:
            return why(error, source)
        size = _regions(raw, address)
        if size is None:  # every group names every region
            return unknown_format(source, raw)
        total = size if total is None else total + size
    return null("not-exposed", source) if total is None else _size(total, source, estimated)


def _regions(raw: bytes, address: str) -> int | None:
    """Lines `drm/0000:03:00.0/vram0 8514437120`: the sum of one card's regions."""
    prefix = f"drm/{address}/".encode()
    sizes = []
    for line in raw.split(b"\n")[:-1]:
        name, _, value = line.partition(b" ")
        if name.startswith(prefix + b"vram") and value.isdigit():
            sizes.append(int(value))
    return sum(sizes) if sizes else None
