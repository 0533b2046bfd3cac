"""Every display, 3D and accelerator function on the PCI bus: so that a card that fell off its driver is seen.

Identity and driver only, from the bus's own books; a row of this backend stands only where no other has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.drm_devices import (
    DISPLAY_ONLY_VENDORS,
    VENDORS,
    card_index,
    hex_id,
    is_pci_address,
    power_state,
)
from gpusnap.collect.harvest import AdapterFacts, Harvest, backend_row
from gpusnap.collect.nvml_kernel import card_files, driver_version
from gpusnap.collect.sysfs import link_name
from gpusnap.reading import null

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.collect.pci_names import NameTables
    from gpusnap.host import Host

_DEVICES = "bus/pci/devices"
_DISPLAY, _ACCELERATOR = "03", "12"
_VGA_3D_OTHER = ("0300", "0301", "0302", "0380")
# Huawei's display function is its BMC; only its accelerators are NPUs.
_BMC_DISPLAYS = frozenset({"19e5"})
# Their own backends name their cards, sleeping or not; the tables of names are large.
_NAMED_ELSEWHERE = frozenset({"nvidia", "amdgpu", "i915", "xe"})


class PciBackend:
    name = "pci"

    def __init__(self, host: Host, options: CollectOptions) -> None:  # noqa: ARG002 - every backend's signature
        self._host = host
        # What stands at each address: the identity, or None for what is no adapter.
        self._known: dict[str, dict[str, object] | None] = {}
        self._names: NameTables | None = None

    def prime(self) -> None:
        """Nothing here needs two samples."""

    def read(self) -> Harvest:
        try:
            names = self._host.sys.listdir(_DEVICES)
        except FileNotFoundError:
            return Harvest(backend_row(self.name, "absent", detail=f"/sys/{_DEVICES}: no PCI bus"))
        except OSError as error:
            return Harvest(backend_row(self.name, "denied", detail=f"/sys/{_DEVICES}: {error.strerror}"))
        addresses = sorted(name for name in names if is_pci_address(name))
        self._known = {name: known for name, known in self._known.items() if name in addresses}
        harvest = Harvest(backend_row(self.name))
        for address in addresses:
            facts = self._function(address)
            if facts is not None:
                harvest.adapters.append(facts)
        return harvest

    def _function(self, address: str) -> AdapterFacts | None:
        path = f"{_DEVICES}/{address}"
        if address not in self._known:
            self._known[address] = self._identify(address, path)
        identity = self._known[address]
        if identity is None:
            return None
        driver = link_name(self._host.sys, f"{path}/driver")
        facts = AdapterFacts(address)
        facts.identity = {
            **identity,
            "index": card_index(self._host.sys, path),
            "driver": null("none", "no driver is bound") if driver is None else driver,
            "power_state": self._power_state(path),
        }
        return facts

    def _power_state(self, path: str) -> str | None:
        """Only what the bus says: without a word of it a card that does not answer is not called active."""
        try:
            self._host.sys.stat(f"{path}/power/runtime_status")
        except OSError:
            return None
        return power_state(self._host.sys, path)[0]

    def _identify(self, address: str, path: str) -> dict[str, object] | None:
        """None for what is no adapter: another class, a BMC, a virtual screen, a virtual function."""
        tree = self._host.sys
        kind = hex_id(tree, f"{path}/class")
        if kind is None or not (kind[:4] in _VGA_3D_OTHER or kind[:2] == _ACCELERATOR):
            return None
        vendor = hex_id(tree, f"{path}/vendor")
        if kind[:2] == _DISPLAY and vendor in DISPLAY_ONLY_VENDORS | _BMC_DISPLAYS:
            return None
        if link_name(tree, f"{path}/physfn") is not None:
            return None  # its physical function is the card
        what = "NPU" if kind[:2] == _ACCELERATOR else "GPU"
        driver = link_name(tree, f"{path}/driver")
        if driver in _NAMED_ELSEWHERE:
            identity: dict[str, object] = {"id": f"pci:{address}", "vendor": VENDORS.get(vendor or "", "other")}
            if driver == "nvidia":  # its kernel module names cards that NVML can't (gpustat#147)
                identity["model"] = next(
                    (c.model for c in card_files(self._host) if c.pci_address == address), None
                )
                identity["driver_version"] = driver_version(self._host)
            return identity | {"pci_address": address}
        from gpusnap.collect.pci_device import identify
        from gpusnap.collect.pci_names import NameTables

        if self._names is None:
            self._names = NameTables(self._host)
        identity = identify(tree, self._names, path, address, what)
        if what == "NPU":
            identity["kind"] = "npu"
        elif vendor == "8086":
            identity["kind"] = "integrated" if address == "0000:00:02.0" else "discrete"
        return identity
