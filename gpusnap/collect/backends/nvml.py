"""NVIDIA cards, MIG partitions and their processes, by NVML.

Init, handles and versions are fetched once and kept between samples. The runtime status of NVIDIA PCI functions is
read first: a machine whose cards all sleep is not woken (nvtop#267). A call that fails costs its own leaf; a lost
card costs its own row's figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.collect import nvml_device
from gpusnap.collect.harvest import AdapterFacts, Harvest, ProcessFacts, backend_row, warning
from gpusnap.collect.merge import better
from gpusnap.collect.nvml_ask import Remembering, ask
from gpusnap.collect.nvml_kernel import CardFile, card_files, driver_version, system_memory
from gpusnap.collect.nvml_processes import Listed, ProcessList, list_processes, listed_pids, utilisation
from gpusnap.collect.nvml_silent import asleep_card, lost_card
from gpusnap.host import NvmlError, NvmlUnavailable
from gpusnap.reading import Reading, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host, Nvml
    from gpusnap.model import BackendRow, Warning_

_PID_MAX = 4_194_304
_FRESH_US = 1_000_000
_NOT_SEEN = -1
_NO_INSTANCE = 0xFFFFFFFF
_FEW = 256
# Garbage beyond these, and counting up to it would take for ever (the most partitions of a card are 7 today).
_MOST_CARDS, _MOST_PARTITIONS = 1024, 64
# Made once, not for each row of each sample.
_TYPES = {kind: measured(kind, "nvml") for kind in ("compute", "graphics", "both", "mps")}
_UNIFIED = null("unified-memory")
_NO_SPILL = null("not-exposed")
_SHARES = ("gpu_percent", "engines_percent.video_encode", "engines_percent.video_decode")
_NO_SHARES = dict.fromkeys(_SHARES, null("none", "no fresh sample"))


class NvmlBackend:
    name = "nvml"

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._driver: str | None = None
        self._identity: dict[str, dict[str, object]] = {}
        self._system_memory: int | None = None
        self._remembering = Remembering()
        self._listed: dict[tuple[object, ...], Listed] = {}
        self._since_us = 0
        self._module: int | None = _NOT_SEEN

    def prime(self) -> list[int]:
        """NVML keeps its own samples: remember only from when on they count."""
        self._since_us = int(self._host.wall_time() * 1_000_000)
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
        self._identity.clear()

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
        self._system_memory = system_memory(self._host)
        files = card_files(self._host)
        lost: list[tuple[int, NvmlError]] = []
        for index in range(count):
            device = str(index)
            try:
                nvml.call("nvmlDeviceGetHandleByIndex", device)
            except NvmlError as error:
                lost.append((index, error))
                continue
            self._card(nvml, device, index, files, harvest)
        seen = {facts.identity["pci_address"] for facts in harvest.adapters}
        missing = [card for card in files if card.pci_address not in seen]
        for index, failure in lost:
            card = missing[0] if len(missing) == len(lost) == 1 else None
            harvest.adapters.append(lost_card(index, failure, card, self._driver))
        harvest.adapters = _in_order(harvest.adapters)
        self._since_us = int(self._host.wall_time() * 1_000_000)
        if len(self._listed) > 4 * len(harvest.processes) + _FEW:
            self._listed.clear()
        return harvest

    def _card(self, nvml: Nvml, device: str, index: int, files: list[CardFile], harvest: Harvest) -> None:
        identity = self._identify(nvml, device, index, files)
        address = identity["pci_address"]
        facts = AdapterFacts(str(identity["id"] if isinstance(address, Reading) else address))
        facts.identity.update(identity)
        self._figures(nvml, device, facts, harvest)
        harvest.adapters.append(facts)
        if self._host.platform == "wsl":
            from gpusnap.collect.nvml_wsl import note_scope

            note_scope(facts, harvest)
        partitions = self._partitions(nvml, device, facts, harvest)
        self._processes(nvml, device, facts, harvest, partitions)

    def _identify(self, nvml: Nvml, device: str, index: int, files: list[CardFile]) -> dict[str, object]:
        known = self._identity.get(device)
        if known is not None:
            return known
        address = ask(nvml, "nvmlDeviceGetPciInfo_v3", device, convert=_bus_id)
        uuid = ask(nvml, "nvmlDeviceGetUUID", device)
        model = ask(nvml, "nvmlDeviceGetName", device)
        card = next((file for file in files if file.pci_address == address.value), None)
        if card is not None:
            uuid = card.uuid if uuid.value is None and card.uuid is not None else uuid
            model = card.model if model.value is None and card.model is not None else model
        identity: dict[str, object] = {
            "id": uuid.value or (f"pci:{address.value}" if address.value else f"nvml-index:{index}"),
            "index": index,
            "vendor": "nvidia",
            "model": model,
            "kind": "discrete",
            "uuid": uuid,
            "pci_address": address if address.value is None else address.value,
            "driver": "nvidia",
            "driver_version": self._driver,
        }
        if uuid.value is not None and address.value is not None:
            self._identity[device] = identity
        return identity

    def _figures(self, nvml: Nvml, device: str, facts: AdapterFacts, harvest: Harvest) -> None:
        def warn(what: str, raw: object) -> None:
            harvest.warnings.append(_out_of_range(facts, what, raw))

        figures = facts.figures
        figures.update(nvml_device.memory(nvml, device, warn))
        figures.update(nvml_device.load(nvml, device, warn))
        figures.update(nvml_device.sensors(nvml, device, warn))
        figures.update(nvml_device.pcie(nvml, device, self._options.window > 0, warn))
        figures.update(nvml_device.ecc(nvml, device, warn))
        facts.identity = dict(facts.identity)
        facts.identity["health"] = nvml_device.health(figures)
        facts.identity["power_state"] = "active"
        kind = nvml_device.memory_kind(figures, self._system_memory)
        figures["memory.kind"] = kind
        if kind.value == "unified" and facts.identity["kind"] == "discrete":
            facts.identity["kind"] = "integrated"
            if figures["load.memory_bandwidth_percent"].value == 0:
                # GB10 always answers 0 there (llama-swap#782).
                figures["load.memory_bandwidth_percent"] = null("not-supported", "reads 0 on this chip")
            from gpusnap.collect import tegra

            figures.update(tegra.system_share(self._host))
            if figures["load.gpu_percent"].value is None:
                figures["load.gpu_percent"] = better(figures["load.gpu_percent"], tegra.gpu_load(self._host))

    # -- processes -----------------------------------------------------------

    def _processes(
        self,
        nvml: Nvml,
        device: str,
        facts: AdapterFacts,
        harvest: Harvest,
        partitions: dict[tuple[object, object], str],
    ) -> None:
        """Rows of a partitioned card stand on the partition that the driver names for them."""
        facts.lists_processes = True
        facts.shared_clients = null("not-exposed")
        if not self._options.processes:
            facts.processes_listed = null("not-requested", "--no-processes")
            return
        found = self._list(nvml, device, facts, harvest)
        facts.processes_listed = found.listed
        if self._host.platform == "wsl":
            from gpusnap.collect.nvml_wsl import bound_list

            bound_list(facts, bool(found.rows))
        if not isinstance(found.listed, str) and found.listed.provenance.startswith("null:unknown-format"):
            text = f"NVML struct mismatch (driver {self._driver}, binding {nvml.version})"
            facts.processes_listed = null("unknown-format", text)
            harvest.warnings.append(warning("nvml-struct-mismatch", text, str(facts.identity["id"])))
        shares = self._shares(nvml, device, facts, harvest) if found.rows else null("none")
        spill = _UNIFIED if facts.figures["memory.kind"].value == "unified" else _NO_SPILL
        # Only partitions and their parent name a process twice.
        shared_list = partitions or "/" in device
        placed = {(process.adapter_key, process.pid) for process in harvest.processes} if shared_list else ()
        for row in found.rows.values():
            key = partitions.get(row.instance, facts.key) if row.instance is not None else facts.key
            if (key, row.pid) in placed:
                continue
            process = ProcessFacts(key, row.pid, "driver")
            process.figures = {
                "type": _TYPES[row.type],
                "vram_bytes": row.vram,
                "spill_bytes": spill,
                **_shares_of(shares, row.pid),
            }
            harvest.processes.append(process)
        if partitions:
            _believe_rows_of_partitions(harvest)

    def _list(self, nvml: Nvml, device: str, facts: AdapterFacts, harvest: Harvest) -> ProcessList:
        total = facts.figures["memory.total_bytes"].value
        return list_processes(
            nvml,
            device,
            total=total if isinstance(total, int) else None,
            pid_max=_PID_MAX,
            unavailable=self._why_unavailable(device),
            warn=lambda what, raw: harvest.warnings.append(_out_of_range(facts, what, raw)),
            known=self._listed,
        )

    def _why_unavailable(self, device: str) -> str:
        """The reason behind NVML's "not available" for a process's bytes."""
        if self._host.platform == "wsl":
            return "wsl"
        if self._host.platform == "windows":
            return "wddm"
        return "no-permission" if "/" in device else "not-supported"

    def _shares(
        self, nvml: Nvml, device: str, facts: AdapterFacts, harvest: Harvest
    ) -> dict[int, dict[str, Reading]] | Reading:
        now = int(self._host.wall_time() * 1_000_000)
        since = self._since_us if now - self._since_us < 60 * _FRESH_US else 0
        return utilisation(
            nvml,
            device,
            min(since, now - _FRESH_US) if since else now - _FRESH_US,
            lambda what, raw: harvest.warnings.append(_out_of_range(facts, what, raw)),
        )

    # -- MIG -----------------------------------------------------------------

    def _partitions(
        self, nvml: Nvml, device: str, parent: AdapterFacts, harvest: Harvest
    ) -> dict[tuple[object, object], str]:
        """MIG instances as adapters of their own, keyed by instance; NVML's slots may be empty in between."""
        found: dict[tuple[object, object], str] = {}
        mode = ask(nvml, "nvmlDeviceGetMigMode", device)
        if not isinstance(mode.value, list) or mode.value[0] != 1:
            return found
        slots = ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", device)
        for slot in range(min(cast("int", slots.value), _MOST_PARTITIONS) if slots.value is not None else 0):
            partition = f"{device}/{slot}"
            uuid = ask(nvml, "nvmlDeviceGetUUID", partition)
            if uuid.provenance.startswith(("null:not-exposed", "null:failed")):
                continue
            facts = self._partition(nvml, partition, slot, uuid, parent, harvest)
            harvest.adapters.append(facts)
            place = cast("dict[str, object]", facts.identity["partition"])
            found[place["gpu_instance"], place["compute_instance"]] = facts.key
        return found

    def _partition(
        self, nvml: Nvml, device: str, slot: int, uuid: Reading, parent: AdapterFacts, harvest: Harvest
    ) -> AdapterFacts:
        ident = str(uuid.value or f"{parent.identity['id']}/{slot}")
        facts = AdapterFacts(ident)
        name = ask(nvml, "nvmlDeviceGetName", device)
        profile = str(name.value).rpartition(" MIG ")[2] if name.value is not None else None
        facts.identity = {
            "id": ident,
            "index": slot,
            "vendor": "nvidia",
            "model": name,
            "kind": "partition",
            "uuid": uuid,
            # A partition is told by its UUID; the address is its parent's.
            "pci_address": null("partitioned"),
            "driver": "nvidia",
            "driver_version": self._driver,
            "parent": parent.identity["id"],
            "partition": {
                "gpu_instance": _instance(ask(nvml, "nvmlDeviceGetGpuInstanceId", device)),
                "compute_instance": _instance(ask(nvml, "nvmlDeviceGetComputeInstanceId", device)),
                "profile": profile,
            },
        }
        self._figures(nvml, device, facts, harvest)
        facts.figures["memory.kind"] = parent.figures["memory.kind"]
        if facts.figures["memory.total_bytes"].value is not None:
            facts.figures["memory.kind"] = Reading("dedicated", "measured:nvml.MemoryInfo")
        self._processes(nvml, device, facts, harvest, {})
        return facts

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


def _believe_rows_of_partitions(harvest: Harvest) -> None:
    """Where a partition's own list failed, the rows that its card's list has of it are one of two lists."""
    named = {process.adapter_key for process in harvest.processes}
    for facts in harvest.adapters:
        if facts.key in named and not isinstance(facts.processes_listed, str):
            facts.processes_listed = "partial"


def _in_order(adapters: list[AdapterFacts]) -> list[AdapterFacts]:
    """Cards by NVML's index, each followed by its partitions."""
    cards = [facts for facts in adapters if facts.identity.get("parent") is None]
    cards.sort(key=lambda facts: cast("int", facts.identity["index"]))
    ordered = []
    for card in cards:
        ordered.append(card)
        ordered += [facts for facts in adapters if facts.identity.get("parent") == card.identity["id"]]
    return ordered


def _instance(reading: Reading) -> int | None:
    """All ones and other garbage are no number of an instance."""
    value = reading.value
    return value if isinstance(value, int) and 0 <= value < _NO_INSTANCE else None


def _bus_id(answer: object) -> object:
    """`00000000:3B:00.0` -> `0000:3b:00.0`; a domain past 16 bits keeps its digits. ValueError else."""
    text = str(cast("dict[str, object]", answer)["busId"]).lower()
    domain, bus, slot = text.split(":")
    device, function = slot.split(".")
    if any(len(part) != length for part, length in ((bus, 2), (device, 2), (function, 1))):
        raise ValueError(text)
    numbers = [int(part, 16) for part in (domain, bus, device, function)]
    return "{:04x}:{:02x}:{:02x}.{:x}".format(*numbers)


def _out_of_range(facts: AdapterFacts, what: str, raw: object) -> Warning_:
    return warning("out-of-range", f"{what} says {raw}", str(facts.identity["id"]))


def _shares_of(shares: dict[int, dict[str, Reading]] | Reading, pid: int) -> dict[str, Reading]:
    if isinstance(shares, Reading):
        return dict.fromkeys(_SHARES, shares)
    return shares.get(pid, _NO_SHARES)
