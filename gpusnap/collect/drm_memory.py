"""What a DRM client's keys mean in bytes: its part of local memory, its part of system memory. Pure.

`vram` is what lies in the card's own memory, `spill` what physically lies in system memory, `shared` the part
of `vram` in buffers that others hold too or may (more than one handle, or ever exported). A buffer that was
evicted is resident in a system region and stands there once: `amd-evicted-vram` is never added to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.reading import Reading, computed, measured, null

if TYPE_CHECKING:
    from gpusnap.collect.drm_fdinfo import FdInfo

# Regions that are no memory to speak of: on-chip stores, doorbells, register windows.
_NO_MEMORY = frozenset({"gds", "gws", "oa", "doorbell", "mmioremap"})


class ClientMemory(NamedTuple):
    vram: Reading
    spill: Reading
    shared: Reading


def of_client(info: FdInfo, *, integrated: bool) -> ClientMemory:
    """A client's memory; `integrated`: the device has no memory of its own (Intel's iGPU, SoCs, NPUs)."""
    if not info.has_keys:
        return nothing_known(null("not-exposed", "no drm keys in fdinfo"))
    local, system = _split(info, integrated=integrated)
    spill = _sum(info, system)
    if integrated:
        unified = null("unified-memory")
        return ClientMemory(unified, spill, unified)
    vram = _sum(info, local)
    return ClientMemory(vram, spill, _shared(info, local, vram))


def nothing_known(why: Reading) -> ClientMemory:
    return ClientMemory(why, why, why)


def _split(info: FdInfo, *, integrated: bool) -> tuple[list[str], list[str]]:
    """(local regions, system regions). Meteor Lake prints `stolen-local0`: only the device tells which it is."""
    local: list[str] = []
    system: list[str] = []
    for region in info.regions():
        if region in _NO_MEMORY:
            continue
        own = region.startswith(("vram", "local", "stolen-local")) or (region == "stolen" and info.driver == "xe")
        (local if own and not integrated else system).append(region)
    if info.driver == "amdgpu" and not info.old_format:
        # amdgpu always knows these; a read in which its lock failed lacks them (fdinfo up to 6.12).
        local = local or ["vram"]
        system = system or ["gtt"]
    return local, system


def _sum(info: FdInfo, regions: list[str]) -> Reading:
    if not regions:
        return null("not-exposed", "no memory keys in fdinfo")
    total = 0
    sources = []
    for region in regions:
        part = _resident(info, region)
        if not isinstance(part.value, int):
            return part
        total += part.value
        sources.append(part.provenance.removeprefix("measured:fdinfo."))
    return measured(total, "fdinfo." + "+".join(sources))


def _resident(info: FdInfo, region: str) -> Reading:
    """Bytes of a region that have backing store there: one key, never the sum of two that alias each other."""
    if region == "panthor":
        return _size(info, "resident", region, "panthor-resident-memory")
    if ("resident", region) in info.sizes:
        return _size(info, "resident", region, f"drm-resident-{region}")
    if ("memory", region) in info.sizes:
        return _size(info, "memory", region, f"{region} mem" if info.old_format else f"drm-memory-{region}")
    if info.size("total", region) == 0:
        # The helper leaves `resident` out while no buffer reports it; without a buffer there is none.
        return measured(0, f"fdinfo.drm-total-{region}")
    return null("not-exposed", f"fdinfo.drm-resident-{region}")


def _size(info: FdInfo, kind: str, region: str, key: str) -> Reading:
    value = info.size(kind, region)
    if value is not None:
        return measured(value, f"fdinfo.{key}")
    raw = info.too_large.get((kind, region))
    if raw is not None:
        return null("out-of-range", f"fdinfo.{key} says {raw}")
    return null("unknown-format", f"fdinfo.{key}")


def _shared(info: FdInfo, local: list[str], vram: Reading) -> Reading:
    """amdgpu since 6.14 files shared buffers under the place they prefer, so the sum may pass what is resident."""
    if not isinstance(vram.value, int):
        return vram
    total = 0
    for region in local:
        if ("shared", region) not in info.sizes:
            if info.size("total", region) == 0:
                continue
            return null("not-exposed", f"fdinfo.drm-shared-{region}")
        part = _size(info, "shared", region, f"drm-shared-{region}")
        if not isinstance(part.value, int):
            return part
        total += part.value
    source = "fdinfo." + "+".join(f"drm-shared-{region}" for region in local)
    if total > vram.value:
        return computed(vram.value, f"{source} limited to resident")
    return measured(total, source)


def add(one: Reading, other: Reading) -> Reading:
    """The sum of two clients' readings; unknown when either is."""
    if not isinstance(one.value, int):
        return one
    if not isinstance(other.value, int):
        return other
    if one.provenance == other.provenance:
        return Reading(one.value + other.value, one.provenance)
    return Reading(one.value + other.value, _joined(one.provenance, other.provenance))


def _joined(one: str, other: str) -> str:
    """`measured:a` and `measured:b` -> `measured:a, b`; anything computed makes the sum computed."""
    kinds = [one.partition(":")[0], other.partition(":")[0]]
    sources: list[str] = []
    for text in (one, other):
        for source in text.partition(":")[2].split(", "):
            if source not in sources:
                sources.append(source)
    kind = "measured" if kinds == ["measured", "measured"] else "computed"
    return f"{kind}:{', '.join(sources)}"
