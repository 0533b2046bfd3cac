"""Who holds which DRM client, and in whose row its memory counts. Pure.

A client is one open file, named by (device, client id). A descriptor may be dup()ed, inherited or sent over a
socket, so several descriptors and several processes show the same client, each with its whole memory: summing
per descriptor makes Firefox larger than its card (xpumanager#145, compute-runtime#964), taking the first pid
gives a compositor's memory to `sleep 300` (raspberrypi/linux#6784).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import drm_engines, drm_memory
from gpusnap.reading import Reading, computed, measured, null

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpusnap.collect.drm_fdinfo import FdInfo
    from gpusnap.collect.drm_memory import ClientMemory
    from gpusnap.model import SharedClient

    Key = tuple[str, int]

INHERITED = "inherited-client"
_MEMORY = {"vram_bytes": "vram", "spill_bytes": "spill", "vram_shared_bytes": "shared"}


class Client:
    """One client on one device; `id` is the kernel's, or a stand-in of the one process that shows it."""

    __slots__ = ("device", "holders", "id", "info", "memory", "owner", "rates")

    def __init__(self, device: str, client_id: str, memory: ClientMemory, info: FdInfo | None) -> None:
        self.device = device
        self.id = client_id
        self.memory = memory
        self.info = info
        self.holders: set[int] = set()
        self.owner: int | None = None
        # Leaves of engine load, filled in where two samples allow it.
        self.rates: dict[str, Reading] = {}

    @property
    def is_shared(self) -> bool:
        """Memory of several processes with no single owner."""
        return self.owner is None


def settle_owners(clients: Iterable[Client], parent_of: Callable[[int], int | None]) -> None:
    """Give every client its owner: the one holder left after dropping pid 1 and whoever inherited it."""
    for client in clients:
        client.owner = owner_of(client.holders, parent_of)


def owner_of(holders: set[int], parent_of: Callable[[int], int | None]) -> int | None:
    if len(holders) == 1:
        return next(iter(holders))
    left = [pid for pid in holders if pid != 1 and parent_of(pid) not in holders]
    return left[0] if len(left) == 1 else None


def rows(clients: Iterable[Client]) -> dict[Key, dict[str, Reading]]:
    """(device, pid) -> the row's readings: memory, load of the process's own clients, `shared_with`."""
    held: dict[Key, list[Client]] = {}
    for client in clients:
        for pid in client.holders:
            held.setdefault((client.device, pid), []).append(client)
    return {key: _row(key[1], of_pid) for key, of_pid in held.items()}


def _row(pid: int, clients: list[Client]) -> dict[str, Reading]:
    own = [client for client in clients if client.owner == pid]
    row = {leaf: _bytes(clients, own, part) for leaf, part in _MEMORY.items()}
    row["shared_with"] = _shared_with(pid, clients)
    for leaf in drm_engines.LOAD_LEAVES:
        row[leaf] = _load([client.rates[leaf] for client in own], clients)
    return row


def _bytes(clients: list[Client], own: list[Client], part: str) -> Reading:
    readings: list[Reading] = [getattr(client.memory, part) for client in own]
    if not readings:
        return _not_its_own(clients, getattr(clients[0].memory, part))
    total = readings[0]
    for reading in readings[1:]:
        total = drm_memory.add(total, reading)
    return total


def _not_its_own(clients: list[Client], example: Reading) -> Reading:
    """A process that only holds others' clients: nothing where they have an owner, else nobody can say."""
    if example.provenance.startswith("null:unified-memory"):
        return example
    if any(client.is_shared for client in clients):
        return null("shared", "in shared_clients")
    return computed(0, INHERITED)


def _load(readings: list[Reading], clients: list[Client]) -> Reading:
    """The load of the process's own clients together."""
    if readings:
        return drm_engines.together(readings)
    return null("shared") if any(client.is_shared for client in clients) else computed(0, INHERITED)


def _shared_with(pid: int, clients: list[Client]) -> Reading:
    if all(client.info is None or client.info.client_id is None for client in clients):
        unread = [client.memory.spill for client in clients if client.info is None]
        return unread[0] if unread else null("not-exposed", "no client id in fdinfo")
    others = {other for client in clients for other in client.holders if other != pid}
    return measured(sorted(others), "fdinfo.drm-client-id")


def shared_clients(clients: Iterable[Client], device: str) -> list[SharedClient]:
    """Memory that no single process owns, each client once."""
    found: list[SharedClient] = [
        {
            "client": client.id,
            "vram_bytes": _whole(client.memory.vram),
            "spill_bytes": _whole(client.memory.spill),
            "holders": sorted(client.holders),
        }
        for client in clients
        if client.device == device and client.is_shared
    ]
    return sorted(found, key=lambda row: (len(row["client"]), row["client"]))


def _whole(reading: Reading) -> int | None:
    return reading.value if isinstance(reading.value, int) else None


def kind_of_work(clients: Iterable[Client]) -> Reading:
    """compute | graphics | both, from which engines ever ran for the process's own clients."""
    ran = set()
    unread = None
    for client in clients:
        unread = client.memory.spill if client.info is None else unread
        if client.info is not None:
            counters = {**client.info.engines, **client.info.cycles}
            ran |= {drm_engines.ENGINE_LEAVES.get(name) for name, count in counters.items() if count > 0}
    graphics = "graphics" in ran
    compute = "compute" in ran
    if not graphics and not compute:
        return null("not-exposed", "no engine time in fdinfo") if unread is None else unread
    kind = "both" if graphics and compute else "graphics" if graphics else "compute"
    return Reading(kind, "inferred:fdinfo.drm-engine")
