"""Which adapter a device number stands for: one target for each card, or for each compute partition of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.amdgpu_partitions import partition_id, partitions_of
from gpusnap.collect.drm_devices import ACCEL_MAJOR, DRM_MAJOR, FDINFO_NEVER_WAKES, power_state

if TYPE_CHECKING:
    from gpusnap.collect.drm_devices import DrmDevice
    from gpusnap.collect.kfd import KfdNode
    from gpusnap.host import Host
    from gpusnap.reading import Reading

_FOLDERS = (("/dev/dri/card", DRM_MAJOR), ("/dev/dri/renderD", DRM_MAJOR), ("/dev/accel/accel", ACCEL_MAJOR))
REMOVED = " (deleted)"


class Target:
    """An adapter whose processes the walk finds. `blocked` is why its fdinfo must not be opened."""

    __slots__ = ("blocked", "device", "gpu_id", "is_parent", "is_part", "key", "state", "touch")

    def __init__(self, device: DrmDevice, key: str, host: Host) -> None:
        self.device = device
        self.key = key
        self.gpu_id: str | None = None
        # A card that is split: its rows stand on its partitions.
        self.is_parent = False
        self.is_part = False
        self.state, self.touch = power_state(host.sys, device.path)
        safe = device.address is None or device.driver in FDINFO_NEVER_WAKES
        self.blocked: Reading | None = None if safe else self.touch


class Targets:
    """Every target by device number, by PCI address and by KFD's gpu_id."""

    def __init__(self, host: Host, devices: list[DrmDevice], nodes: list[KfdNode]) -> None:
        self.all: list[Target] = []
        self._by_number: dict[tuple[int, int], Target] = {}
        self._by_address: dict[str, Target] = {}
        self.by_gpu_id: dict[str, Target] = {}
        for device in devices:
            self._add(Target(device, device.key, host))
        self._split(host, devices, nodes)
        for node in nodes:
            target = self._by_number.get((DRM_MAJOR, node.render_minor))
            if target is not None:
                target.gpu_id = node.gpu_id
                self.by_gpu_id[node.gpu_id] = target

    def _add(self, target: Target) -> None:
        self.all.append(target)
        for number in target.device.nodes:
            self._by_number[number] = target
        if target.device.address is not None:
            self._by_address[target.device.address] = target

    def _split(self, host: Host, devices: list[DrmDevice], nodes: list[KfdNode]) -> None:
        """Partitions replace the platform devices that stand for them; each keeps its render node."""
        by_minor = {minor: device for device in devices for major, minor in device.nodes if major == DRM_MAJOR}
        for address, parts in partitions_of(nodes, self._by_address).items():
            self._by_address[address].is_parent = True
            for node in parts:
                device = by_minor.get(node.render_minor)
                if device is None:
                    continue
                known = self._by_number[DRM_MAJOR, node.render_minor]
                target = Target(device, partition_id(node), host)
                target.is_part = True
                if device.is_partition:
                    self.all.remove(known)
                    for number in device.nodes:
                        self._by_number[number] = target
                else:
                    self._by_number[DRM_MAJOR, node.render_minor] = target
                self.all.append(target)

    def of_number(self, number: tuple[int, int] | None, target: str) -> Target | None:
        """By the node's number, else by its usual name; None for what is no node of a known card."""
        if target.endswith(REMOVED):
            return None
        return self._by_number.get(number if number is not None else number_of(target) or (0, 0))

    def of_address(self, pdev: str | None, fallback: Target) -> Target:
        """fdinfo names the card itself (nvtop#209); a partition has no address of its own."""
        named = self._by_address.get(pdev or "")
        return fallback if named is None or named.is_parent or fallback.device.is_partition else named


def number_of(name: str) -> tuple[int, int] | None:
    """`/dev/dri/renderD128` -> (226, 128): the kernel numbers nodes as it names them."""
    for prefix, major in _FOLDERS:
        minor = name.removeprefix(prefix)
        if minor != name and minor.isdigit():
            return major, int(minor)
    return None
