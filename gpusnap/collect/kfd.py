"""ROCm's own books: `/sys/class/kfd/kfd`, its topology and what it charges to each process.

Source: drivers/gpu/drm/amd/amdkfd/{kfd_topology,kfd_process}.c. `proc/PID/vram_GPUID` is readable by everyone
and its pids are those of the initial namespace. It counts what ROCr asked for as VRAM plus migrated managed
memory, fdinfo counts every buffer mapped by the process: the two overlap almost fully and are never added.
`sdma_*` files are left alone, since reading one makes a kernel worker touch the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.collect.sysfs import MAX_INTEGER, integer, size
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from gpusnap.host import Host

TOPOLOGY = "class/kfd/kfd/topology/nodes"
PROCESSES = "class/kfd/kfd/proc"


class KfdNode(NamedTuple):
    """One GPU, or one compute partition of it. `function_bits` are those that name a partition."""

    gpu_id: str
    address: str
    render_minor: int
    memory: Reading


def nodes(host: Host) -> list[KfdNode]:
    """Every GPU node in the topology; CPU nodes have no gpu_id."""
    try:
        names = sorted((name for name in host.sys.listdir(TOPOLOGY) if name.isdigit()), key=int)
    except OSError:
        return []
    found = []
    for name in names:
        node = _node(host, f"{TOPOLOGY}/{name}")
        if node is not None:
            found.append(node)
    return found


def _node(host: Host, folder: str) -> KfdNode | None:
    try:
        gpu_id = integer(host.sys.read(f"{folder}/gpu_id", 64))
        properties = _properties(host.sys.read(f"{folder}/properties", 16384))
    except OSError:  # another user's container hides nodes (EPERM)
        return None
    location, render = properties.get("location_id"), properties.get("drm_render_minor")
    if gpu_id is None or gpu_id == 0 or location is None or render is None:
        return None
    bus, device = (location >> 8) & 0xFF, (location >> 3) & 0x1F
    address = f"{properties.get('domain', 0):04x}:{bus:02x}:{device:02x}.{location & 7:x}"
    return KfdNode(str(gpu_id), address, render, _memory(host, folder))


def _properties(raw: bytes) -> dict[str, int]:
    """Lines `name value`; a last line without its end is torn."""
    found = {}
    for line in raw.decode("ascii", "replace").split("\n")[:-1]:
        key, _, value = line.partition(" ")
        if value.isdigit() and len(value) <= 20:
            found[key] = int(value)
    return found


def _memory(host: Host, folder: str) -> Reading:
    """The node's own memory: of a partition, its share."""
    source = "kfd.mem_banks.size_in_bytes"
    try:
        properties = _properties(host.sys.read(f"{folder}/mem_banks/0/properties", 4096))
    except OSError:
        return null("not-exposed", source)
    total = properties.get("size_in_bytes")
    if total is None:
        return null("not-exposed", source)
    return measured(total, source) if total < MAX_INTEGER else null("out-of-range", f"{source} says {total}")


def charged(host: Host) -> dict[int, dict[str, Reading]]:
    """pid -> gpu_id -> bytes. A process that sees only some GPUs has no file for the others."""
    found: dict[int, dict[str, Reading]] = {}
    try:
        pids = [name for name in host.sys.listdir(PROCESSES) if name.isdigit()]
    except OSError:
        return found
    for pid in pids:
        try:
            names = host.sys.listdir(f"{PROCESSES}/{pid}")
        except OSError:  # exited meanwhile
            continue
        found[int(pid)] = {
            name[5:]: size(host.sys, f"{PROCESSES}/{pid}/{name}", "kfd.vram")
            for name in names
            if name.startswith("vram_") and name[5:].isdigit()
        }
    return found
