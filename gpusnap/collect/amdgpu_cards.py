"""Every card of the amdgpu driver, its compute partitions beside it: the part of the backend that has work to do.

A card is told from an APU without opening it. Processes come from the `drm` backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import amdgpu_card, kfd, pci_device
from gpusnap.collect.amdgpu_partitions import partition_facts, partitions_of
from gpusnap.collect.drm_devices import card_index, is_apu, power_state
from gpusnap.collect.harvest import AdapterFacts, Harvest, backend_row
from gpusnap.collect.out_of_range import warn_out_of_range
from gpusnap.collect.pci_names import NameTables
from gpusnap.collect.sysfs import text
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.host import Host


class AmdgpuCards:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._names = NameTables(host)
        self._identity: dict[str, dict[str, object]] = {}

    def read(self, addresses: list[str]) -> Harvest:
        version = text(self._host.sys, "module/amdgpu/version", 64)
        if version is None:  # the kernel's own
            version = self._host.uname().get("kernel")
        harvest = Harvest(backend_row("amdgpu", driver_version=version))
        for address in addresses:
            harvest.adapters.append(self._card(address, version, harvest))
        self._partition(harvest)
        return harvest

    def _card(self, address: str, version: str | None, harvest: Harvest) -> AdapterFacts:
        tree, path = self._host.sys, f"bus/pci/devices/{address}"
        facts = AdapterFacts(address)
        state, blocked = power_state(tree, path)
        facts.identity = self._identify(address, path)
        facts.identity.update(vendor="amd", driver="amdgpu", driver_version=version, power_state=state)
        facts.identity["index"] = card_index(tree, path)
        kind = facts.identity["kind"]
        unified = amdgpu_card.kind_of_memory(None if isinstance(kind, Reading) else kind)
        facts.figures = amdgpu_card.memory(tree, path, unified=unified)
        facts.beside = amdgpu_card.visible(tree, path)
        if blocked is None:
            facts.figures.update(amdgpu_card.live(tree, path))
            facts.identity["health"] = amdgpu_card.health(facts.figures)
        else:
            facts.figures.update(amdgpu_card.sleeping(blocked))
            facts.figures.update(pci_device.link(tree, path, blocked))
        warn_out_of_range(facts, harvest, str(facts.identity["id"]))
        return facts

    def _identify(self, address: str, path: str) -> dict[str, object]:
        """Ids, name and kind never change; they are read once."""
        known = self._identity.get(address)
        if known is None:
            known = pci_device.identify(self._host.sys, self._names, path, address)
            product = text(self._host.sys, f"{path}/product_name", 256)
            if product is not None:
                known["model"] = product
            known["kind"] = self._kind(path)
            unique = text(self._host.sys, f"{path}/unique_id", 64)
            if unique is not None and len(unique) == 16 and unique.strip("0"):
                known["uuid"] = f"GPU-{unique}"  # as HIP and ROCR_VISIBLE_DEVICES spell it
            self._identity[address] = known
        return dict(known)

    def _kind(self, path: str) -> object:
        apu = is_apu(self._host.sys, path)
        if apu is None:
            return null("not-exposed", "no hwmon")
        return "integrated" if apu else "discrete"

    def _partition(self, harvest: Harvest) -> None:
        """MI300 in CPX or NPS mode: each partition is an adapter beside its card."""
        for parent, nodes in partitions_of(kfd.nodes(self._host), [f.key for f in harvest.adapters]).items():
            card = next(facts for facts in harvest.adapters if facts.key == parent)
            at = harvest.adapters.index(card) + 1
            path = f"bus/pci/devices/{parent}"
            profile = text(self._host.sys, f"{path}/current_compute_partition", 64)
            parts = [partition_facts(card, node, place, profile) for place, node in enumerate(nodes)]
            for part in parts:
                warn_out_of_range(part, harvest, str(part.identity["id"]))
            harvest.adapters[at:at] = parts
