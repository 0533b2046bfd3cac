"""A Jetson board's GPU where there is no NVML: JetPack 5 and older. Device figures only.

Who holds how much stands in debugfs, for root alone (`nvmap/iovmm/clients`): it is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import tegra
from gpusnap.collect.harvest import AdapterFacts, Harvest, backend_row
from gpusnap.collect.out_of_range import warn_out_of_range
from gpusnap.host import NvmlUnavailable
from gpusnap.reading import Reading, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_UNIFIED = null("unified-memory")


class TegraBackend:
    name = "tegra"

    def __init__(self, host: Host, options: CollectOptions) -> None:  # noqa: ARG002 - as every backend
        self._host = host

    def prime(self) -> None:
        """The kernel averages the load itself."""

    def read(self) -> Harvest:
        if self._nvml_answers():
            return Harvest(backend_row(self.name, detail="NVML answers for this board"))
        harvest = Harvest(backend_row(self.name))
        model = tegra.board(self._host)
        facts = AdapterFacts("tegra-index:0")
        facts.identity = {
            "id": "tegra-index:0",
            "index": 0,
            "vendor": "nvidia",
            "model": None if model is None else clean(model),
            "kind": "integrated",
            "driver": "nvgpu",
            "driver_version": self._host.uname().get("kernel"),
        }
        facts.figures = {
            **{f"memory.{name}_bytes": _UNIFIED for name in ("total", "used", "free", "reserved")},
            "memory.kind": Reading("unified", "inferred:proc.device-tree"),
            **tegra.system_share(self._host),
            "load.gpu_percent": tegra.gpu_load(self._host),
        }
        facts.unified_only = True
        facts.lists_processes = True
        facts.processes_listed = null("not-exposed", "only debugfs tells, to root")
        facts.unreadable_pids = None
        warn_out_of_range(facts, harvest, "tegra-index:0")
        harvest.adapters.append(facts)
        return harvest

    def _nvml_answers(self) -> bool:
        try:
            self._host.nvml()
        except NvmlUnavailable:
            return False
        return True
