"""The process rows of an NVIDIA card or partition: NVML's lists as facts, each with its share of the load.

What is remembered between samples: rows of processes that stay, and until when the driver's samples were read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import ProcessFacts, warning
from gpusnap.collect.nvml_processes import Listed, ProcessList, list_processes, utilisation
from gpusnap.collect.out_of_range import raw_warning
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.collect.harvest import AdapterFacts, Harvest
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host, Nvml

_PID_MAX = 4_194_304
_FRESH_US = 1_000_000
_FEW = 256
# Made once, not for each row of each sample.
_TYPES = {kind: measured(kind, "nvml") for kind in ("compute", "graphics", "both", "mps")}
_UNIFIED = null("unified-memory")
_NO_SPILL = null("not-exposed")
_SHARES = ("gpu_percent", "engines_percent.video_encode", "engines_percent.video_decode")
_NO_SHARES = dict.fromkeys(_SHARES, null("none", "no fresh sample"))


class NvmlRows:
    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._listed: dict[tuple[object, ...], Listed] = {}
        self._since_us = 0

    def prime(self) -> None:
        """NVML keeps its own samples: remember only from when on they count."""
        self._since_us = int(self._host.wall_time() * 1_000_000)

    def end_sample(self, rows: int) -> None:
        self.prime()
        if len(self._listed) > 4 * rows + _FEW:
            self._listed.clear()

    def read(
        self,
        nvml: Nvml,
        device: str,
        facts: AdapterFacts,
        harvest: Harvest,
        partitions: Mapping[tuple[object, object], str],
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
            text = f"NVML struct mismatch (driver {facts.identity['driver_version']}, binding {nvml.version})"
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
            warn=lambda what, raw: harvest.warnings.append(raw_warning(facts, what, raw)),
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
            lambda what, raw: harvest.warnings.append(raw_warning(facts, what, raw)),
        )


def _believe_rows_of_partitions(harvest: Harvest) -> None:
    """Where a partition's own list failed, the rows that its card's list has of it are one of two lists."""
    named = {process.adapter_key for process in harvest.processes}
    for facts in harvest.adapters:
        if facts.key in named and not isinstance(facts.processes_listed, str):
            facts.processes_listed = "partial"


def _shares_of(shares: dict[int, dict[str, Reading]] | Reading, pid: int) -> dict[str, Reading]:
    if isinstance(shares, Reading):
        return dict.fromkeys(_SHARES, shares)
    return shares.get(pid, _NO_SHARES)
