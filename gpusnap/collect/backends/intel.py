"""Intel GPUs of the i915 and xe drivers: memory by the drivers' query, sensors, load by the PMU where allowed.

What reads a card (`intel_cards.py` and all below it) is imported where there is one: it costs start-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import Harvest, backend_row

if TYPE_CHECKING:
    from gpusnap.collect.intel_cards import IntelCards
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_DRIVERS = ("i915", "xe")


class IntelBackend:
    name = "intel"

    def __init__(self, host: Host, options: CollectOptions) -> None:  # noqa: ARG002 - every backend's signature
        self._host = host
        self._cards: IntelCards | None = None

    def prime(self) -> None:
        """Energy and the performance counters need two samples."""
        self._read(priming=True)

    def read(self) -> Harvest:
        return self._read(priming=False)

    def _read(self, *, priming: bool) -> Harvest:
        found, denied = self._bound()
        if not found and denied is not None:
            return Harvest(backend_row(self.name, "denied", detail=denied))
        if not found:
            detail = "/sys/bus/pci/drivers/i915, /sys/bus/pci/drivers/xe: not loaded, or no card"
            return Harvest(backend_row(self.name, "absent", detail=detail))
        if self._cards is None:
            from gpusnap.collect.intel_cards import IntelCards

            self._cards = IntelCards(self._host)
        return self._cards.read(found, priming=priming)

    def _bound(self) -> tuple[list[tuple[str, str]], str | None]:
        """((address, driver) of every card, why a driver's folder could not be read)."""
        found, denied = [], None
        for driver in _DRIVERS:
            try:
                names = self._host.sys.listdir(f"bus/pci/drivers/{driver}")
            except FileNotFoundError:
                continue
            except OSError as error:
                denied = f"/sys/bus/pci/drivers/{driver}: {error.strerror}"
                continue
            found += [(name, driver) for name in names if name.count(":") == 2]
        return sorted(found), denied
