"""AMD cards and APUs of the amdgpu driver: memory pools, load, sensors, error counters, compute partitions.

What reads a card (`amdgpu_cards.py` and all below it) is imported where there is one: it costs start-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import Harvest, backend_row

if TYPE_CHECKING:
    from gpusnap.collect.amdgpu_cards import AmdgpuCards
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_DRIVER = "bus/pci/drivers/amdgpu"


class AmdgpuBackend:
    name = "amdgpu"

    def __init__(self, host: Host, options: CollectOptions) -> None:  # noqa: ARG002 - every backend's signature
        self._host = host
        self._cards: AmdgpuCards | None = None

    def prime(self) -> None:
        """Nothing here needs two samples."""

    def read(self) -> Harvest:
        try:
            names = self._host.sys.listdir(_DRIVER)
        except FileNotFoundError:
            return Harvest(backend_row(self.name, "absent", detail="/sys/bus/pci/drivers/amdgpu: not loaded"))
        except OSError as error:
            return Harvest(backend_row(self.name, "denied", detail=f"/sys/{_DRIVER}: {error.strerror}"))
        if self._cards is None:
            from gpusnap.collect.amdgpu_cards import AmdgpuCards

            self._cards = AmdgpuCards(self._host)
        return self._cards.read(sorted(name for name in names if name.count(":") == 2))
