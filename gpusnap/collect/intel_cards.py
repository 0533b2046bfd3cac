"""Every card of the i915 and xe drivers: the part of the Intel backend that has work to do.

The part at 0000:00:02.0 is integrated: it has no memory of its own, whatever regions called `local` it prints.
The query opens the render node of an awake card for an instant; without access the dmem cgroup tells the size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import intel_card, intel_query, pci_device
from gpusnap.collect.drm_devices import DRM_MAJOR, card_index, power_state
from gpusnap.collect.harvest import AdapterFacts, Harvest, backend_row
from gpusnap.collect.intel_pmu import Pmu
from gpusnap.collect.out_of_range import warn_out_of_range
from gpusnap.collect.pci_names import NameTables
from gpusnap.collect.xe_pmu import XePmu
from gpusnap.reading import Reading, computed, inferred, null

if TYPE_CHECKING:
    from gpusnap.host import Host

_INTEGRATED = "0000:00:02.0"
_UNIFIED = null("unified-memory")


class IntelCards:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._names = NameTables(host)
        self._identity: dict[str, dict[str, object]] = {}
        self._energy = intel_card.EnergyRate()
        self._pmus: dict[str, Pmu] = {}
        self._xe_pmus: dict[str, XePmu] = {}

    def read(self, cards: list[tuple[str, str]], *, priming: bool = False) -> Harvest:
        """`cards`: the PCI address and the driver of each. `priming`: this sample begins a window."""
        kernel = self._host.uname().get("kernel")
        harvest = Harvest(backend_row("intel", driver_version=kernel))
        for address, driver in cards:
            facts = self._card(address, driver)
            if driver == "xe":
                awake = facts.identity["power_state"] == "active"
                facts.figures.update(self._xe_load(address, priming=priming, awake=awake))
            facts.identity["driver_version"] = kernel
            warn_out_of_range(facts, harvest, str(facts.identity["id"]))
            harvest.adapters.append(facts)
        return harvest

    def _card(self, address: str, driver: str) -> AdapterFacts:
        tree, path = self._host.sys, f"bus/pci/devices/{address}"
        integrated = address == _INTEGRATED
        facts = AdapterFacts(address)
        if address not in self._identity:
            self._identity[address] = pci_device.identify(tree, self._names, path, address)
        state, blocked = power_state(tree, path)
        index = card_index(tree, path)
        facts.identity = {
            **self._identity[address],
            "vendor": "intel",
            "index": index,
            "kind": "integrated" if integrated else "discrete",
            "driver": driver,
            "power_state": state,
        }
        facts.unified_only = integrated
        facts.figures = self._memory(address, driver, path, blocked, integrated=integrated)
        if blocked is not None:
            facts.figures.update(intel_card.sleeping(blocked))
            facts.figures.update(pci_device.link(tree, path, blocked))
            return facts
        facts.figures.update(intel_card.sensors(tree, path, driver, index))
        facts.figures["power.draw_watts"] = self._energy.watts(
            address, facts.figures["power.energy_joules"], self._host.uptime()
        )
        facts.figures.update(pci_device.link(tree, path, None))
        facts.figures.update(self._load(address, driver, integrated=integrated))
        facts.identity["health"] = intel_card.health(facts.figures)
        return facts

    def _load(self, address: str, driver: str, *, integrated: bool) -> dict[str, Reading]:
        """Only what i915's PMU says; the sum over processes is the `drm` backend's."""
        if driver != "i915":
            return {}
        if address not in self._pmus:
            self._pmus[address] = Pmu(self._host, address, integrated=integrated)
        pmu = self._pmus[address]
        return pmu.load() if pmu.is_open else {}

    def _xe_load(self, address: str, *, priming: bool, awake: bool) -> dict[str, Reading]:
        """Counted between the two samples of a window only: xe's open counters keep the card awake."""
        counted = self._xe_pmus.pop(address, None)
        if priming and awake:
            path = f"bus/pci/devices/{address}"
            self._xe_pmus[address] = XePmu(self._host, address, path, self._node(path))
        if counted is None:
            return {}
        load = counted.load() if counted.is_open and not priming else {}
        counted.close()
        return load

    def _memory(
        self, address: str, driver: str, path: str, blocked: Reading | None, *, integrated: bool
    ) -> dict[str, Reading]:
        pools = blocked if blocked is not None else intel_query.ask(self._host, driver, self._node(path))
        if integrated:
            return _unified(pools)
        total = pools if isinstance(pools, Reading) else pools.total
        used = pools if isinstance(pools, Reading) else pools.used
        if total is None or total.value is None:
            capacity = intel_query.dmem_capacity(self._host, address)
            total = _rather(total, capacity)
        free = _free(total, used)
        if used is None or used.value is None:
            current = intel_query.dmem_current(self._host, address)
            used = _rather(used, current)
        return {
            "memory.total_bytes": total,
            "memory.used_bytes": used,
            "memory.free_bytes": free,
            **_shared(pools),
            "memory.kind": inferred("dedicated", "sysfs.address"),
        }

    def _node(self, path: str) -> str | None:
        """The card's render node, if the name in /dev is really it: containers rename nodes."""
        try:
            names = [n for n in self._host.sys.listdir(f"{path}/drm") if n.startswith("renderD")]
            minor = int(names[0].removeprefix("renderD")) if names else -1
            found = self._host.root.stat(f"dev/dri/{names[0]}").rdev if names else None
        except (OSError, ValueError):
            return None
        return f"/dev/dri/renderD{minor}" if found == (DRM_MAJOR, minor) else None


def _rather(driver: Reading | None, cgroup: Reading) -> Reading:
    """The cgroup's figure where it has one, or had an impossible one; else the driver's reason."""
    tells = cgroup.value is not None or cgroup.provenance.startswith("null:out-of-range")
    return cgroup if tells or driver is None else driver


def _unified(pools: intel_query.Pools | Reading) -> dict[str, Reading]:
    figures = dict.fromkeys([f"memory.{leaf}_bytes" for leaf in ("total", "used", "free")], _UNIFIED)
    return {**figures, **_shared(pools), "memory.kind": inferred("unified", "sysfs.address")}


def _shared(pools: intel_query.Pools | Reading) -> dict[str, Reading]:
    if isinstance(pools, Reading):
        return {"memory.shared_total_bytes": pools, "memory.shared_used_bytes": pools}
    nothing = null("not-exposed", "no system region")
    return {
        "memory.shared_total_bytes": nothing if pools.system_total is None else pools.system_total,
        "memory.shared_used_bytes": nothing if pools.system_used is None else pools.system_used,
    }


def _free(total: Reading, used: Reading | None) -> Reading:
    """From what the driver said: the cgroups' sum is a lower bound and leaves no rest."""
    if not isinstance(total.value, int):
        return total
    if used is None:
        return null("not-exposed", "no local region")
    if not isinstance(used.value, int):
        return used
    return computed(total.value - used.value, f"{used.provenance.partition(':')[2]} total-used")
