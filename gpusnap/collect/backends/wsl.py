"""A GPU behind `/dev/dxg` that nobody but NVIDIA's library can ask: in WSL2 an AMD or Intel card is there, unread.

Its figures stay null instead of the card being missing. With an NVML that works this backend has nothing to add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import AdapterFacts, Harvest, backend_row
from gpusnap.fields import ADAPTER_FIGURES
from gpusnap.host import NvmlUnavailable
from gpusnap.reading import null

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_DEVICE = "/dev/dxg"
_NOT_TOLD = null("wsl", "the guest can't ask this driver")


class WslBackend:
    name = "wsl"

    def __init__(self, host: Host, options: CollectOptions) -> None:  # noqa: ARG002 - as every backend
        self._host = host

    def prime(self) -> None:
        """Nothing here is a rate."""

    def read(self) -> Harvest:
        try:
            self._host.nvml()
        except NvmlUnavailable:
            harvest = Harvest(backend_row(self.name, detail=f"{_DEVICE}: a graphics driver of the Windows host"))
            harvest.adapters.append(_unread())
            return harvest
        return Harvest(backend_row(self.name, detail=f"{_DEVICE}: NVIDIA's library answers for the host"))


def _unread() -> AdapterFacts:
    facts = AdapterFacts("wsl-index:0")
    facts.identity = {
        "id": "wsl-index:0",
        "index": 0,
        "vendor": "other",
        "model": _NOT_TOLD,
        "kind": _NOT_TOLD,
        "uuid": _NOT_TOLD,
        "pci_address": _NOT_TOLD,
        "driver": "dxgkrnl",
        "driver_version": None,
    }
    facts.figures = dict.fromkeys((*ADAPTER_FIGURES, "memory.kind"), _NOT_TOLD)
    facts.lists_processes = True
    facts.processes_listed = _NOT_TOLD
    facts.unreadable_pids = None
    return facts
