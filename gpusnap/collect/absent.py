"""Whether a backend's devices are certainly not there, without importing the backend.

Most machines have cards of one vendor; the modules of the others are a fifth of what `snap` imports. Each test
says what it looked for, and a backend's own row says the same: None means that the backend has to be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import Harvest, backend_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpusnap.collect.harvest import Backend
    from gpusnap.host import Host


def amdgpu(host: Host) -> str | None:
    return "/sys/bus/pci/drivers/amdgpu: not loaded" if _is_missing(host, "bus/pci/drivers/amdgpu") else None


def intel(host: Host) -> str | None:
    missing = all(_is_missing(host, f"bus/pci/drivers/{driver}") for driver in ("i915", "xe"))
    return "/sys/bus/pci/drivers/i915, /sys/bus/pci/drivers/xe: not loaded, or no card" if missing else None


def ascend(host: Host) -> str | None:
    return None if host.exists("/dev/davinci_manager") else "/dev/davinci_manager: not there"


def tegra(host: Host) -> str | None:
    try:
        compatible = host.proc.read("device-tree/compatible", 4096)
    except OSError:
        compatible = b""
    return None if b"nvidia,tegra" in compatible else "/proc/device-tree/compatible: no nvidia,tegra"


TESTS: dict[str, Callable[[Host], str | None]] = {
    "tegra": tegra,
    "amdgpu": amdgpu,
    "intel": intel,
    "ascend": ascend,
}


def _is_missing(host: Host, folder: str) -> bool:
    """A folder that may not be looked into is there."""
    try:
        host.sys.listdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


class LazyBackend:
    """Stands for a backend until there is a device for it: a recorder meets cards that are plugged in."""

    def __init__(self, name: str, host: Host, build: Callable[[], Backend]) -> None:
        self.name = name
        self._host = host
        self._build = build
        self._backend: Backend | None = None

    def prime(self) -> Iterable[int] | None:
        return None if self._absence() is not None else self._opened().prime()

    def read(self) -> Harvest:
        return self.absent() or self._opened().read()

    def absent(self) -> Harvest | None:
        """The answer while there is no device; it takes no driver call."""
        absence = self._absence()
        return None if absence is None else Harvest(backend_row(self.name, "absent", detail=absence))

    def _absence(self) -> str | None:
        return TESTS[self.name](self._host) if self._backend is None else None

    def _opened(self) -> Backend:
        if self._backend is None:
            self._backend = self._build()
        return self._backend
