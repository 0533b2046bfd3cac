"""The cards of every DRM and accel driver and their processes: the part of the `drm` backend that has work to do.

One walk over `/proc/*/fd`, the fdinfo of what it finds, and KFD's books for whom that can't show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import drm_clients, drm_engines, kfd
from gpusnap.collect.drm_adapter import facts_of, identify
from gpusnap.collect.drm_devices import is_apu
from gpusnap.collect.drm_kfd import add_kfd, tell_differences
from gpusnap.collect.drm_read import Clients, read_clients
from gpusnap.collect.drm_targets import Target, Targets
from gpusnap.collect.drm_walk import Walk, parent_of, walk
from gpusnap.collect.harvest import Harvest, ProcessFacts, backend_row, warning
from gpusnap.collect.out_of_range import warn_out_of_range
from gpusnap.collect.pci_names import NameTables
from gpusnap.collect.pid_namespace import sees_host_pids
from gpusnap.collect.sysfs import why
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.drm_devices import DrmDevice
    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_COUNTERS_CAN_BE_OFF = ("panfrost", "panthor")
_NO_CLIENTS = null("not-supported", "its driver has no fdinfo")


class DrmListing:
    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._names = NameTables(host)
        self._engines = drm_engines.EngineRates()
        self._identity: dict[str, dict[str, object]] = {}
        self._host_pids = sees_host_pids(host) is not False

    def prime(self, devices: list[DrmDevice]) -> Iterable[int]:
        """Read every client's engine counters; returns the pids that hold one."""
        targets = self._targets(devices)
        if not self._should_walk(targets):
            return []
        try:
            clients = self._clients(walk(self._host), targets)
        except OSError:  # no /proc that may be listed: read() says so
            return []
        return {pid for client in clients.by_key.values() for pid in client.holders}

    def read(self, devices: list[DrmDevice]) -> Harvest:
        targets = self._targets(devices)
        harvest = Harvest(backend_row("drm", driver_version=self._kernel()))
        for target in targets.all:
            harvest.adapters.append(self._adapter(target))
        if self._should_walk(targets):
            try:
                self._list_processes(walk(self._host), targets, harvest)
            except OSError as error:
                _no_list(targets, harvest, why(error, "proc"))
        for facts in harvest.adapters:
            warn_out_of_range(facts, harvest, str(facts.identity["id"]))
        return harvest

    def _targets(self, devices: list[DrmDevice]) -> Targets:
        rocm = any(device.driver == "amdgpu" for device in devices)
        return Targets(self._host, devices, kfd.nodes(self._host) if rocm else [])

    def _kernel(self) -> str | None:
        return self._host.uname().get("kernel")

    def _should_walk(self, targets: Targets) -> bool:
        """No driver with fdinfo: nothing to be found (btop PR1552)."""
        return self._options.processes and any(target.device.has_fdinfo for target in targets.all)

    def _adapter(self, target: Target) -> AdapterFacts:
        if target.key not in self._identity:
            self._identity[target.key] = identify(self._host.sys, self._names, target, self._kernel())
        facts = facts_of(self._host, target, self._identity[target.key])
        facts.lists_processes = True
        facts.processes_listed = null("partitioned") if target.is_parent else _NO_CLIENTS
        facts.shared_clients = facts.processes_listed
        return facts

    # -- processes -----------------------------------------------------------

    def _list_processes(self, found: Walk, targets: Targets, harvest: Harvest) -> None:
        clients = self._clients(found, targets)
        rows = self._rows(clients)
        listed = _verdict(found)
        charged = kfd.charged(self._host) if targets.by_gpu_id else {}
        tell_differences(rows, charged if self._host_pids else {}, targets, harvest)
        apus = {t.key for t in targets.all if t.gpu_id is not None and is_apu(self._host.sys, t.device.path)}
        only_kfd = add_kfd(rows, charged, targets, apus, host_pids=self._knows_host_pids(found))
        for target, facts in zip(targets.all, harvest.adapters, strict=True):
            if target.device.has_fdinfo and not target.is_parent:
                self._settle(facts, clients, found, listed, in_kfd=target.gpu_id in _busy_gpus(charged))
        for row in [*rows.values(), *only_kfd]:
            facts = next(f for f in harvest.adapters if f.key == row.adapter_key)
            warn_out_of_range(row, harvest, str(facts.identity["id"]))
            harvest.processes.append(row)
        _warn(harvest, found, clients)

    def _knows_host_pids(self, found: Walk) -> bool:
        """Elsewhere KFD's pids match no one here; they are told apart only where nobody here uses ROCm."""
        return self._host_pids or not any(hit.target.startswith("/dev/kfd") for hit in found.hits)

    def _clients(self, found: Walk, targets: Targets) -> Clients:
        clients = read_clients(self._host, found.hits, targets)
        everyone = list(clients.by_key.values())
        self._engines.update(everyone, clients.taken, self._switched_off(targets))
        drm_clients.settle_owners(everyone, lambda pid: parent_of(self._host, pid))
        return clients

    def _switched_off(self, targets: Targets) -> set[str]:
        """panfrost and panthor count engine time only after `echo 1 > profiling`."""
        off = set()
        for target in targets.all:
            if target.device.driver in _COUNTERS_CAN_BE_OFF:
                try:
                    if self._host.sys.read(f"{target.device.path}/profiling", 64).strip() == b"0":
                        off.add(target.key)
                except OSError:  # a kernel that always counts
                    continue
        return off

    def _rows(self, clients: Clients) -> dict[tuple[str, int], ProcessFacts]:
        everyone = list(clients.by_key.values())
        rows = {}
        for (key, pid), figures in drm_clients.rows(everyone).items():
            row = ProcessFacts(key, pid, "here")
            row.figures = figures
            own = [client for client in clients.of(key) if client.owner == pid]
            figures["type"] = drm_clients.kind_of_work(own)
            rows[key, pid] = row
        return rows

    def _settle(
        self, facts: AdapterFacts, clients: Clients, found: Walk, listed: str | Reading, *, in_kfd: bool
    ) -> None:
        """What the walk says of one adapter: how complete its list is, what nobody owns, its load."""
        mine = clients.of(facts.key)
        facts.processes_listed = listed
        facts.unreadable_pids = None if found.hidden else found.unreadable
        if isinstance(listed, str):
            facts.shared_clients = drm_clients.shared_clients(mine, facts.key)
        else:
            facts.shared_clients = listed
        if not mine:
            return
        load = drm_engines.of_device(mine)
        if not found.is_complete:
            unread = null("no-permission", "some processes could not be read")
            load = {leaf: unread if reading.value is not None else reading for leaf, reading in load.items()}
        if in_kfd:
            why_not = null("not-exposed", "ROCm's user queues are not in fdinfo")
            load |= {"load.engines_percent.compute": why_not, "load.gpu_percent": why_not}
        facts.figures.update(load)


def _no_list(targets: Targets, harvest: Harvest, reason: Reading) -> None:
    for target, facts in zip(targets.all, harvest.adapters, strict=True):
        if target.device.has_fdinfo and not target.is_parent:
            facts.processes_listed = facts.shared_clients = reason


def _verdict(found: Walk) -> str | Reading:
    """A sandbox in which nobody else can be looked into lists nothing (nvtop#287, flatpak#3922)."""
    if found.is_complete:
        return "complete"
    if found.looked_into == 0:
        words = "hidepid" if found.hidden else f"{found.unreadable} processes could not be read"
        return null("no-permission", words)
    return "partial"


def _busy_gpus(charged: dict[int, dict[str, Reading]]) -> set[str | None]:
    return {gpu for by_gpu in charged.values() for gpu, reading in by_gpu.items() if reading.value != 0}


def _warn(harvest: Harvest, found: Walk, clients: Clients) -> None:
    if found.hidden:
        text = "/proc is mounted with hidepid: other users' processes are not shown"
        harvest.warnings.append(warning("hidepid", text))
    for hit in clients.removed:
        text = f"holds {hit.target}: its card is gone from the bus"
        harvest.warnings.append(warning("device-removed", text, None, hit.pid))
