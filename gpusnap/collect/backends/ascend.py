"""Huawei Ascend NPUs by `npu-smi info`: one call a sample, and one more only for a chip whose table is full.

Where `libdcmi.so` is there, it lists the processes instead: in bytes, and up to 32 a chip.

An idle chip shows about 3 GB in use with no process: the firmware's own, which stays unattributed
(vllm-ascend#1903). Two chips of an Atlas 300I Duo share one Bus-Id, so a chip is told by (card, chip)
(nvtop#421). What npu-smi prints instead of a table is an error, not an empty machine (vllm-ascend#632).
"""

from __future__ import annotations

from errno import EFBIG
from typing import TYPE_CHECKING

from gpusnap.collect.harvest import AdapterFacts, Harvest, ProcessFacts, backend_row, warning
from gpusnap.collect.npu_smi import (
    MAX_TABLE_ROWS,
    Chip,
    NpuProcess,
    Report,
    UnknownLayout,
    parse_info,
    parse_proc_mem,
)
from gpusnap.host import Unsupported
from gpusnap.reading import Reading, computed, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host
    from gpusnap.model import BackendRow

_TOOL = "npu-smi"
_DEVICE = "/dev/davinci_manager"
# npu-smi's return codes that somebody with more rights could mend.
_DENIED = ("-8002", "-8013")
_HEALTH = {"OK": "ok", "Warning": "degraded", "Alarm": "degraded", "Critical": "error"}


class AscendBackend:
    name = "ascend"

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._by_dcmi: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def prime(self) -> None:
        """Nothing here is a rate."""

    def read(self) -> Harvest:
        if not self._host.exists(_DEVICE):
            return Harvest(backend_row(self.name, "absent", detail=f"{_DEVICE}: not there"))
        try:
            answer = self._host.run([_TOOL, "info"], self._options.timeout)
        except TimeoutError as late:
            return Harvest(backend_row(self.name, "timeout", detail=str(late)))
        except OSError as missing:
            status = "failed" if missing.errno == EFBIG else "absent"
            return Harvest(backend_row(self.name, status, detail=f"{_TOOL}: {missing.strerror or missing}"))
        text = answer.stdout.decode("utf-8", "replace")
        try:
            report = parse_info(text)
        except UnknownLayout:
            said = (text + answer.stderr.decode("utf-8", "replace")).strip().splitlines()
            return Harvest(self._failed(clean(said[-1], 200) if said else "no output"))
        harvest = Harvest(backend_row(self.name, version=report.version, driver_version=report.version))
        self._by_dcmi = self._ask_dcmi()
        self._chips(harvest, report)
        return harvest

    def _ask_dcmi(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """(card, chip) -> [(pid, bytes)] where the library is there and answers for the chip."""
        if not self._options.processes:
            return {}
        try:
            answer = self._host.raw("dcmi")
        except (Unsupported, OSError):
            return {}
        chips = {(chip["card"], chip["chip"]): chip["processes"] for chip in answer.get("chips", ())}
        return {
            key: [(int(pid), int(size)) for pid, size in rows]
            for key, rows in chips.items()
            if isinstance(rows, list)
        }

    def _failed(self, said: str) -> BackendRow:
        status = "denied" if any(code in said for code in _DENIED) else "failed"
        return backend_row(self.name, status, detail=f"{_TOOL}: {said}")

    def _chips(self, harvest: Harvest, report: Report) -> None:
        addresses = [chip.bus_id for chip in report.chips]
        for index, chip in enumerate(report.chips):
            facts = AdapterFacts(self._key(chip, addresses, index))
            alone = addresses.count(chip.bus_id) == 1
            facts.identity = {
                "id": f"pci:{chip.bus_id}" if alone else f"ascend-index:{index}",
                "index": index,
                "vendor": "huawei",
                "model": chip.name if chip.name.startswith("Ascend") else f"Ascend {chip.name}",
                "kind": "npu",
                "pci_address": chip.bus_id if alone else null("shared", "two chips, one Bus-Id"),
                "driver": "davinci",
                "driver_version": report.version,
                "health": _HEALTH.get(chip.health, "unknown"),
                "power_state": "active",
            }
            facts.figures = _figures(chip)
            facts.shared_clients = null("not-exposed")
            facts.lists_processes = True
            self._processes(harvest, facts, chip, report)
            harvest.adapters.append(facts)

    def _key(self, chip: Chip, addresses: list[str], index: int) -> str:
        """The first chip at an address joins what other backends say of that address."""
        first = addresses.index(chip.bus_id) == index
        return chip.bus_id if first else f"ascend:{chip.card}.{chip.chip}"

    def _processes(self, harvest: Harvest, facts: AdapterFacts, chip: Chip, report: Report) -> None:
        if not self._options.processes:
            facts.processes_listed = null("not-requested", "--no-processes")
            return
        exact = self._by_dcmi.get((chip.card, chip.chip))
        if exact is not None:
            source = "dcmi.device_resource_info"
        elif chip.card not in report.listed:
            facts.processes_listed = null("not-exposed", "npu-smi printed no process table")
            return
        else:
            source = "npu-smi.Process memory"
            exact = [(row.pid, row.memory_bytes) for row in self._printed(harvest, facts, chip, report)]
        for pid, size in exact:
            process = ProcessFacts(facts.key, pid, "driver")
            process.figures = {
                "type": Reading("compute", f"measured:{source}"),
                "vram_bytes": measured(size, source),
                "spill_bytes": null("not-exposed"),
            }
            harvest.processes.append(process)

    def _printed(self, harvest: Harvest, facts: AdapterFacts, chip: Chip, report: Report) -> list[NpuProcess]:
        """The chip's rows of the table, or the longer list where the table is full."""
        rows = [row for row in report.processes if (row.card, row.chip) == (chip.card, chip.chip)]
        if len(rows) < MAX_TABLE_ROWS:
            return rows
        longer = self._longer(chip)
        if longer is not None and len(longer) >= len(rows):
            return longer
        facts.processes_listed = "partial"
        text = f"npu-smi prints {MAX_TABLE_ROWS} processes a chip at most: there may be more"
        harvest.warnings.append(warning("list-truncated", text, str(facts.identity["id"])))
        return rows

    def _longer(self, chip: Chip) -> list[NpuProcess] | None:
        """The list of up to 32 processes, where the tool gives it."""
        argv = [_TOOL, "info", "-t", "proc-mem", "-i", str(chip.card), "-c", str(chip.chip)]
        try:
            answer = self._host.run(argv, self._options.timeout)
        except (TimeoutError, OSError):
            return None
        return parse_proc_mem(answer.stdout.decode("utf-8", "replace"), chip.card, chip.chip)


def _figures(chip: Chip) -> dict[str, Reading]:
    unknown = null("not-exposed", f"npu-smi {chip.memory_name}")
    memory = chip.memory
    source = f"npu-smi.{chip.memory_name}"
    sane = memory is not None and memory.used <= memory.total
    figures = {
        "memory.total_bytes": measured(memory.total, source) if memory is not None else unknown,
        "memory.used_bytes": unknown,
        "memory.free_bytes": unknown,
        "memory.kind": Reading("dedicated", f"measured:{source}") if memory is not None else unknown,
        "load.gpu_percent": _or_null(chip.aicore_percent, "AICore"),
        "temperature.gpu_celsius": _or_null(chip.celsius, "Temp"),
        "power.draw_watts": _or_null(chip.watts, "Power"),
    }
    if memory is not None:
        figures["memory.used_bytes"] = measured(memory.used, source) if sane else null("out-of-range")
        figures["memory.free_bytes"] = (
            computed(memory.total - memory.used, source) if sane else null("out-of-range")
        )
    return figures


def _or_null(value: float | None, name: str) -> Reading:
    return null("not-supported", f"npu-smi {name} NA") if value is None else measured(value, f"npu-smi.{name}")
