"""The backends, in the order in which their figures are believed. One line adds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.collect.harvest import Backend
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

# name of the module in `backends/`, class, platforms on which it can find anything
BACKENDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("nvml", "NvmlBackend", ("linux", "wsl", "windows")),
    ("wsl", "WslBackend", ("wsl",)),
    ("amdgpu", "AmdgpuBackend", ("linux",)),
    ("intel", "IntelBackend", ("linux",)),
    ("drm", "DrmBackend", ("linux",)),
    ("ascend", "AscendBackend", ("linux",)),
    ("pci", "PciBackend", ("linux",)),
)


def backends_for(host: Host, options: CollectOptions) -> list[Backend]:
    """One instance of each backend of this platform; other platforms' modules are not imported."""
    from importlib import import_module

    found: list[Backend] = []
    for module, name, platforms in BACKENDS:
        if host.platform in platforms:
            backend = getattr(import_module(f"gpusnap.collect.backends.{module}"), name)
            found.append(backend(host, options))
    return found
