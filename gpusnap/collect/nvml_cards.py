"""One NVIDIA card with its MIG partitions: identity, figures and process rows, by NVML."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.collect import nvml_device
from gpusnap.collect.harvest import AdapterFacts
from gpusnap.collect.merge import better
from gpusnap.collect.nvml_ask import ask
from gpusnap.collect.nvml_kernel import system_memory
from gpusnap.collect.out_of_range import raw_warning
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.collect.harvest import Harvest
    from gpusnap.collect.nvml_kernel import CardFile
    from gpusnap.collect.nvml_rows import NvmlRows
    from gpusnap.host import Host, Nvml

_NO_INSTANCE = 0xFFFFFFFF
# Garbage beyond it, and counting up to it would take for ever (the most partitions of a card are 7 today).
_MOST_PARTITIONS = 64


class NvmlCards:
    """Keeps each card's identity between samples."""

    def __init__(self, host: Host, rows: NvmlRows, *, window: float) -> None:
        self._host = host
        self._rows = rows
        self._window = window
        self._driver: str | None = None
        self._identity: dict[str, dict[str, object]] = {}
        self._system_memory: int | None = None

    def begin_sample(self, driver: str | None) -> None:
        self._driver = driver
        self._system_memory = system_memory(self._host)

    def forget(self) -> None:
        self._identity.clear()

    def read(self, nvml: Nvml, device: str, index: int, files: list[CardFile], harvest: Harvest) -> None:
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
        self._rows.read(nvml, device, facts, harvest, partitions)

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
            harvest.warnings.append(raw_warning(facts, what, raw))

        figures = facts.figures
        figures.update(nvml_device.memory(nvml, device, warn))
        figures.update(nvml_device.load(nvml, device, warn))
        figures.update(nvml_device.sensors(nvml, device, warn))
        figures.update(nvml_device.pcie(nvml, device, self._window > 0, warn))
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
        self._rows.read(nvml, device, facts, harvest, {})
        return facts


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
