"""Windows: every vendor's processes and engines, by the performance counters of its graphics memory manager.

Raw answers come from `host.raw("pdh")` and `host.raw("adapters")`; see `pdh_sample.py` and `wddm_figures.py`. An
adapter is told by its PCI address, never by its LUID, which changes with each boot and driver update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap.collect import wddm_figures
from gpusnap.collect.harvest import AdapterFacts, Harvest, ProcessFacts, backend_row, warning
from gpusnap.collect.out_of_range import warn_out_of_range
from gpusnap.collect.pdh_sample import ABSENT, ACCESS_DENIED, Sample, status_name
from gpusnap.host import Unsupported
from gpusnap.reading import null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host
    from gpusnap.reading import Reading

_VENDORS = {0x10DE: "nvidia", 0x1002: "amd", 0x1022: "amd", 0x8086: "intel"}
# Microsoft's Basic Render Driver and its like.
_SOFTWARE = 0x1414
_LOCAL = "\\GPU Process Memory(*)\\Local Usage"


class WddmBackend:
    name = "wddm"

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._adapters: list[dict[str, Any]] = []
        self._met: set[str] = set()

    def prime(self) -> set[int]:
        """The first of the two collections that a share of time needs."""
        try:
            return Sample(self._host.raw("pdh")).pids()
        except (Unsupported, OSError):
            return set()

    def read(self) -> Harvest:
        try:
            sample = Sample(self._host.raw("pdh"))
        except Unsupported as missing:
            return Harvest(backend_row(self.name, "absent", detail=str(missing)))
        except OSError as error:
            return Harvest(backend_row(self.name, "failed", detail=f"pdh.dll: {error.strerror or error}"))
        self._meet(sample.luids())
        harvest = Harvest(self._row(sample))
        if sample.errors.get(_LOCAL, 0) in ABSENT | {0}:
            self._known(harvest, sample)
            self._strangers(harvest, sample)
        if self._options.processes:
            _note_equal_spill(harvest)
        return harvest

    def _row(self, sample: Sample) -> Any:
        error = sample.errors.get(_LOCAL)
        if error is None:
            return backend_row(self.name)
        status = "absent" if error in ABSENT else "denied" if error == ACCESS_DENIED else "failed"
        return backend_row(self.name, status, detail=f"{_LOCAL}: {status_name(error)}")

    def _meet(self, luids: set[str]) -> None:
        """Adapters are asked for once, and again when a number turns up that nobody knows (systeminformer#802)."""
        if self._adapters and luids <= self._met:
            return
        self._met |= luids
        try:
            self._adapters = list(self._host.raw("adapters"))
        except (Unsupported, OSError):
            self._adapters = []
        self._met |= {str(adapter["luid"]) for adapter in self._adapters}

    def _known(self, harvest: Harvest, sample: Sample) -> None:
        real = [a for a in self._adapters if a.get("vendor_id") != _SOFTWARE and not a.get("software")]
        for index, adapter in enumerate(real):
            facts = _adapter(adapter, index)
            luid = str(adapter["luid"])
            facts.figures = wddm_figures.adapter_memory(adapter, sample.adapters.get(luid, {}))
            facts.figures |= wddm_figures.adapter_load(sample, luid)
            facts.unified_only = wddm_figures.is_integrated(adapter)
            if luid in sample.luids():
                self._processes(harvest, facts, sample, luid, adapter)
            else:
                facts.processes_listed = null("wddm", "no counters: the driver is older than WDDM 2.0")
            warn_out_of_range(facts, harvest, str(facts.identity["id"]))
            harvest.adapters.append(facts)

    def _strangers(self, harvest: Harvest, sample: Sample) -> None:
        """Counters of adapters that no list names; without processes they are virtual displays and no adapters."""
        known = {str(adapter["luid"]) for adapter in self._adapters}
        for luid in sorted(sample.luids() - known):
            if not any(row_luid == luid for row_luid, _ in sample.processes):
                continue
            facts = _stranger(len(harvest.adapters))
            facts.figures = wddm_figures.adapter_load(sample, luid)
            self._processes(harvest, facts, sample, luid, None)
            ident = str(facts.identity["id"])
            warn_out_of_range(facts, harvest, ident)
            harvest.warnings.append(
                warning("unmapped-adapter", f"counters of luid {luid}, which no adapter has", ident)
            )
            harvest.adapters.append(facts)

    def _processes(
        self, harvest: Harvest, facts: AdapterFacts, sample: Sample, luid: str, adapter: dict[str, Any] | None
    ) -> None:
        if not self._options.processes:
            facts.processes_listed = null("not-requested", "--no-processes")
            return
        mine = {pid for row_luid, pid in sample.processes if row_luid == luid}
        mine |= {pid for engine in sample.engines.get(luid, {}).values() for pid in engine}
        for pid in sorted(mine):
            process = ProcessFacts(facts.key, pid, "here")
            usage = sample.processes.get((luid, pid), {})
            process.figures = wddm_figures.process_memory(adapter, usage)
            process.figures |= wddm_figures.process_load(sample, luid, pid)
            process.committed = wddm_figures.process_committed(adapter, usage)
            warn_out_of_range(process, harvest, str(facts.identity["id"]))
            harvest.processes.append(process)


def _adapter(adapter: dict[str, Any], index: int) -> AdapterFacts:
    address = adapter.get("pci")
    vendor = _VENDORS.get(int(adapter.get("vendor_id") or 0), "other")
    ident = f"pci:{address}" if address else f"wddm-index:{index}"
    facts = AdapterFacts(str(address or ident))
    facts.identity = {
        "id": ident,
        "index": index,
        "vendor": vendor,
        "model": clean(str(adapter["description"])) if adapter.get("description") else None,
        "kind": "integrated" if wddm_figures.is_integrated(adapter) else "discrete",
        "pci_address": address,
        "driver": "wddm",
        # NVIDIA's own number is not the one that Windows gives: NVML says it.
        "driver_version": None if vendor == "nvidia" else adapter.get("driver_version"),
    }
    facts.lists_processes = True
    facts.shared_clients = null("not-exposed")
    return facts


def _stranger(index: int) -> AdapterFacts:
    facts = AdapterFacts(f"wddm-index:{index}")
    unknown: Reading = null("not-exposed", "no adapter has this number")
    facts.identity = {
        "id": f"wddm-index:{index}",
        "index": index,
        "vendor": "other",
        "model": unknown,
        "kind": unknown,
        "driver": "wddm",
    }
    facts.lists_processes = True
    facts.shared_clients = null("not-exposed")
    return facts


def _note_equal_spill(harvest: Harvest) -> None:
    """Some systems count a process's system memory on each adapter: 4694 MiB on all three of one machine."""
    seen: dict[int, list[int]] = {}
    for process in harvest.processes:
        spill = process.figures["spill_bytes"].value
        if isinstance(spill, int) and spill > 0:
            seen.setdefault(process.pid, []).append(spill)
    for pid, sizes in seen.items():
        if len(sizes) > len(set(sizes)):
            text = f"Windows says the same spill on several adapters ({max(sizes)}): it may be one and the same"
            harvest.warnings.append(warning("spill-on-several-adapters", text, pid=pid))
