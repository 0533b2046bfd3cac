"""NVIDIA cards, MIG partitions and their processes, by NVML.

Init, handles and versions are fetched once and kept between samples. The runtime status of NVIDIA PCI functions is
read first: a machine whose cards all sleep is not woken (nvtop#267). A call that fails costs its own leaf; a lost
card costs its own row's figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.collect.harvest import Harvest, backend_row
from gpusnap.collect.nvml_ask import Remembering
from gpusnap.collect.nvml_cards import NvmlCards
from gpusnap.collect.nvml_kernel import CardFile, card_files, driver_version
from gpusnap.collect.nvml_processes import listed_pids
from gpusnap.collect.nvml_rows import NvmlRows
from gpusnap.collect.nvml_silent import asleep_card, lost_card
from gpusnap.host import NvmlError, NvmlUnavailable
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host, Nvml
    from gpusnap.model import BackendRow

_NOT_SEEN = -1
_MOST_CARDS = 1024  # garbage beyond it, and counting up to it would take for ever


class NvmlBackend:
    name = "nvml"

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._driver: str | None = None
        self._rows = NvmlRows(host, options)
        self._cards = NvmlCards(host, self._rows, window=options.window)
        self._remembering = Remembering()
        self._module: int | None = _NOT_SEEN

    def prime(self) -> list[int]:
        """The pids that hold memory now; rates count from here on."""
        self._rows.prime()
        if not self._options.processes or self._suspended():
            return []
        try:
            nvml = self._host.nvml()
            cards = range(min(cast("int", nvml.call("nvmlDeviceGetCount")), _MOST_CARDS))
        except (NvmlUnavailable, NvmlError):
            return []
        return [pid for card in cards for pid in listed_pids(nvml, str(card))]

    def read(self) -> Harvest:
        asleep = self._suspended()
        if asleep:
            return self._suspended_harvest(asleep)
        self._notice_new_module()
        try:
            nvml = self._remembering.over(self._host.nvml())
        except NvmlUnavailable as missing:
            return Harvest(self._unavailable(missing))
        try:
            self._driver = self._driver or self._driver_version(nvml)
            count = cast("int", nvml.call("nvmlDeviceGetCount"))
        except NvmlError as error:
            status = "denied" if error.code == 4 else "timeout" if error.code == 10 else "failed"
            row = backend_row(
                self.name, status, version=nvml.version, driver_version=self._driver, detail=error.name
            )
            self._forget()
            return Harvest(row)
        if not 0 <= count <= _MOST_CARDS:
            detail = f"nvmlDeviceGetCount says {count} cards"
            return Harvest(
                backend_row(self.name, "failed", version=nvml.version, driver_version=self._driver, detail=detail)
            )
        return self._read_cards(nvml, count)

    def _driver_version(self, nvml: Nvml) -> str | None:
        try:
            return clean(str(nvml.call("nvmlSystemGetDriverVersion")))
        except UnicodeDecodeError:
            return driver_version(self._host)

    def _notice_new_module(self) -> None:
        """A kernel module that was loaded anew has another folder: what NVML gave before is of the old one."""
        try:
            module = self._host.sys.stat("module/nvidia").inode
        except OSError:
            module = None
        if self._module not in (_NOT_SEEN, module):
            self._forget()
        self._module = module

    def _forget(self) -> None:
        """The next sample opens the driver anew, as `record` needs when it is replaced (shine-cluster#30)."""
        self._host.close_nvml()
        self._driver = None
        self._cards.forget()

    def _unavailable(self, missing: NvmlUnavailable) -> BackendRow:
        """A mismatch names both versions: the kernel module's and the library's (gpustat#147)."""
        module = driver_version(self._host)
        detail = missing.detail
        version = (missing.library or "").rpartition("libnvidia-ml.so.")[2]
        if "." in version:  # the real file's name ends in the driver's version; a bare `.so.1` says nothing
            detail += f"; library {version}"
        if module is not None:
            detail += f"; kernel module {module}"
            if missing.code == 18:
                detail += "; reload the kernel module or reboot"
        return backend_row(self.name, missing.status, driver_version=module, detail=detail)

    # -- cards ---------------------------------------------------------------

    def _read_cards(self, nvml: Nvml, count: int) -> Harvest:
        harvest = Harvest(backend_row(self.name, version=nvml.version, driver_version=self._driver, detail=None))
        self._cards.begin_sample(self._driver)
        files = card_files(self._host)
        lost: list[tuple[int, NvmlError]] = []
        for index in range(count):
            device = str(index)
            try:
                nvml.call("nvmlDeviceGetHandleByIndex", device)
            except NvmlError as error:
                lost.append((index, error))
                continue
            self._cards.read(nvml, device, index, files, harvest)
        seen = {facts.identity["pci_address"] for facts in harvest.adapters}
        missing = [card for card in files if card.pci_address not in seen]
        for index, failure in lost:
            card = missing[0] if len(missing) == len(lost) == 1 else None
            harvest.adapters.append(lost_card(index, failure, card, self._driver))
        harvest.adapters = _in_order(harvest.adapters)
        self._rows.end_sample(len(harvest.processes))
        return harvest

    # -- sleeping cards --------------------------------------------------------

    def _suspended(self) -> list[str]:
        """PCI addresses of NVIDIA's functions when all of them sleep, else nothing."""
        try:
            bound = [n for n in self._host.sys.listdir("bus/pci/drivers/nvidia") if n.count(":") == 2]
            status = [
                self._host.sys.read(f"bus/pci/devices/{name}/power/runtime_status").strip() for name in bound
            ]
        except OSError:
            return []
        asleep = bool(status) and all(word in (b"suspended", b"suspending") for word in status)
        return sorted(bound) if asleep else []

    def _suspended_harvest(self, addresses: list[str]) -> Harvest:
        self._driver = self._driver or driver_version(self._host)
        detail = f"{len(addresses)} suspended, not woken"
        harvest = Harvest(backend_row(self.name, driver_version=self._driver, detail=detail))
        cards = {card.pci_address: card for card in card_files(self._host)}
        for index, address in enumerate(addresses):
            card = cards.get(address, CardFile(address, None, None))
            harvest.adapters.append(asleep_card(index, card, self._driver))
        return harvest


def _in_order(adapters: list[AdapterFacts]) -> list[AdapterFacts]:
    """Cards by NVML's index, each followed by its partitions."""
    cards = [facts for facts in adapters if facts.identity.get("parent") is None]
    cards.sort(key=lambda facts: cast("int", facts.identity["index"]))
    ordered = []
    for card in cards:
        ordered.append(card)
        ordered += [facts for facts in adapters if facts.identity.get("parent") == card.identity["id"]]
    return ordered
