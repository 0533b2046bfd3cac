"""The backends, in the order in which their figures are believed. One line adds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.absent import TESTS, LazyBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.collect.harvest import Backend
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

# name of the module in `backends/`, which is the backend's, class, platforms on which it can find anything
BACKENDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("wddm", "WddmBackend", ("windows",)),
    ("nvml", "NvmlBackend", ("linux", "wsl", "windows")),
    ("wsl", "WslBackend", ("wsl",)),
    ("apple", "AppleBackend", ("macos",)),
    ("tegra", "TegraBackend", ("linux",)),
    ("amdgpu", "AmdgpuBackend", ("linux",)),
    ("intel", "IntelBackend", ("linux",)),
    ("drm", "DrmBackend", ("linux",)),
    ("ascend", "AscendBackend", ("linux",)),
    ("pci", "PciBackend", ("linux",)),
)


def backends_for(host: Host, options: CollectOptions) -> list[Backend]:
    """One of each backend of this platform; modules of other platforms and of absent devices are not imported."""
    found: list[Backend] = []
    for module, name, platforms in BACKENDS:
        if host.platform in platforms:
            build = _builder(module, name, host, options)
            found.append(LazyBackend(module, host, build) if module in TESTS else build())
    return found


def _builder(module: str, name: str, host: Host, options: CollectOptions) -> Callable[[], Backend]:
    def build() -> Backend:
        from importlib import import_module

        backend: type[Backend] = getattr(import_module(f"gpusnap.collect.backends.{module}"), name)
        return backend(host, options)

    return build
