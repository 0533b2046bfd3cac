"""From the walk's hits to clients: each hit's fdinfo read, the same client met again counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import drm_memory
from gpusnap.collect.drm_clients import Client
from gpusnap.collect.drm_fdinfo import FdInfo, parse
from gpusnap.collect.sysfs import why
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.drm_targets import Target, Targets
    from gpusnap.collect.drm_walk import Hit
    from gpusnap.host import Host

_LIMIT = 65536


class Clients:
    """All clients of one sample; `taken` says when each one's counters were read."""

    __slots__ = ("by_key", "removed", "taken")

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, str], Client] = {}
        self.taken: dict[tuple[str, str], float] = {}
        # Descriptors of cards that are gone.
        self.removed: list[Hit] = []

    def of(self, key: str) -> list[Client]:
        return [client for client in self.by_key.values() if client.device == key]


def read_clients(host: Host, hits: Iterable[Hit], targets: Targets) -> Clients:
    found = Clients()
    for hit in hits:
        target = targets.of_number(hit.number, hit.target)
        if target is None:
            if hit.target.startswith(("/dev/dri/", "/dev/accel/")) and hit.target.endswith(" (deleted)"):
                found.removed.append(hit)
            continue
        if not target.device.has_fdinfo:
            continue
        info = _info(host, hit, target)
        if info is not None:
            _add(found, hit.pid, target, targets, info, host.uptime())
    return found


def _info(host: Host, hit: Hit, target: Target) -> FdInfo | Reading | None:
    """The client's keys; a null reading where it must or can't be read; None when it is closed meanwhile."""
    if target.blocked is not None:
        return target.blocked
    path = f"{hit.pid}/fdinfo/{hit.fd}"
    try:
        info = parse(host.proc.read(path, _LIMIT))
        if info.driver == "amdgpu" and not info.sizes:
            # The lock that amdgpu up to 6.12 takes was held: the memory keys are missing from this one read.
            info = parse(host.proc.read(path, _LIMIT))
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        return why(error, "fdinfo")
    if info.driver == "amdgpu" and not info.sizes:
        return null("device-busy", "amdgpu left the memory keys out of fdinfo")
    return info


def _add(found: Clients, pid: int, target: Target, targets: Targets, info: FdInfo | Reading, now: float) -> None:
    if isinstance(info, Reading):
        client = Client(target.key, f"pid {pid}", drm_memory.nothing_known(info), None)
    else:
        target = targets.of_address(info.pdev, target)
        memory = drm_memory.of_client(info, integrated=target.device.is_integrated)
        client = Client(target.key, info.client_id or f"pid {pid}", memory, info)
    key = (client.device, client.id)
    known = found.by_key.get(key)
    if known is not None and client.info is not None and client.info.has_keys and client.info.client_id is None:
        # The same client once more, or another one: nobody can tell.
        unknown = null("ambiguous", "several descriptors without a client id")
        client = Client(client.device, client.id, drm_memory.nothing_known(unknown), None)
        found.by_key[key] = known = client
    elif known is None or (known.memory.spill.value is None and client.memory.spill.value is not None):
        # The first reading, or one that says more than another descriptor's did.
        client.holders = known.holders if known is not None else client.holders
        found.by_key[key] = known = client
        found.taken[key] = now
    known.holders.add(pid)
