"""Every DRM and accel driver's processes, by one walk over `/proc/*/fd` and the fdinfo of what it finds.

Source: drm-usage-stats.rst. A client is counted once, by device and client id; a sleeping card whose fdinfo
would wake it (xe) is left alone; processes that can't be looked into are counted. ROCm's books (KFD) fill in
for them. What does this (`drm_listing.py` and all below it) is imported where there is such a card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.drm_devices import find_devices
from gpusnap.collect.harvest import Harvest, backend_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.drm_devices import DrmDevice
    from gpusnap.collect.drm_listing import DrmListing
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host


class DrmBackend:
    name = "drm"

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._made: DrmListing | None = None

    def prime(self) -> Iterable[int]:
        devices = self._devices()
        return self._listing().prime(devices) if devices else []

    def read(self) -> Harvest:
        devices = self._devices()
        if devices:
            return self._listing().read(devices)
        detail = "/sys/class/drm, /sys/class/accel: no card with a render or accel node"
        return Harvest(backend_row(self.name, "absent", detail=detail))

    def _devices(self) -> list[DrmDevice]:
        """NVIDIA's driver has no fdinfo: its cards are NVML's, or nobody's."""
        return [device for device in find_devices(self._host) if device.driver != "nvidia"]

    def _listing(self) -> DrmListing:
        if self._made is None:
            from gpusnap.collect.drm_listing import DrmListing

            self._made = DrmListing(self._host, self._options)
        return self._made
