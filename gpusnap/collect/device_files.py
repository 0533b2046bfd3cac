"""Which adapters a device file belongs to: `/dev/nvidia*`, `dri/*`, `kfd`, `accel/*`, `davinci*`.

A node that a container renamed is told by its number. Sources: `/proc/driver/nvidia` (minor numbers, MIG
capabilities), `/sys/class/drm`, `/sys/class/accel`, `/sys/dev/char`; devices.txt of the kernel for the majors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.host import NvmlError, NvmlUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.host import Host

PREFIXES = ("/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/accel/", "/dev/davinci", "/dev/devmm_svm", "/dev/dxg")
# NVIDIA's nodes that are no card's: switches, and the channels between machines.
_NOT_GPUS = ("/dev/nvidia-nvswitch", "/dev/nvidia-nvlink", "/dev/nvidia-caps-imex", "/dev/nvidia-fs")
_NVIDIA_MAJOR = 195
_DRM_MAJOR = 226
_ACCEL_MAJOR = 261
_DELETED = " (deleted)"


def is_gpu_file(target: str) -> bool:
    return target.startswith(PREFIXES) and not target.startswith(_NOT_GPUS)


def name_of_number(host: Host, number: tuple[int, int]) -> str | None:
    """The usual name of a node: (195, 255) -> `/dev/nvidiactl`; None for what is no GPU's."""
    major, minor = number
    if major == _NVIDIA_MAJOR:
        return {255: "/dev/nvidiactl", 254: "/dev/nvidia-modeset"}.get(minor, f"/dev/nvidia{minor}")
    if major in (_DRM_MAJOR, _ACCEL_MAJOR):
        try:
            node = host.sys.readlink(f"dev/char/{major}:{minor}").rpartition("/")[2]
        except OSError:
            return None
        return f"/dev/{'dri' if major == _DRM_MAJOR else 'accel'}/{node}"
    return None


class DeviceFiles:
    """Maps file names to adapters' keys: `own` is one adapter's file, `common` one of a whole driver's."""

    def __init__(self, host: Host, adapters: Sequence[AdapterFacts]) -> None:
        self._host = host
        self._by_address = {str(a.identity.get("pci_address")): a.key for a in adapters if _is_whole(a)}
        self._keys = {a.key for a in adapters}
        self._common = {
            vendor: [a.key for a in adapters if _is_whole(a) and a.identity.get("vendor") == vendor]
            for vendor in ("nvidia", "amd", "huawei")
        }
        self._nvidia: dict[str, str] = {}
        minors = _nvidia_minors(host)
        cards = [a for a in adapters if a.identity.get("vendor") == "nvidia"]
        for card in filter(_is_whole, cards):
            minor = minors.get(str(card.identity.get("pci_address")), _minor_by_nvml(host, card))
            if minor is not None:
                self._nvidia[f"/dev/nvidia{minor}"] = card.key
                self._add_partitions(minor, card, cards)
        self._known: dict[str, tuple[str | None, list[str]]] = {}

    def owners(self, file: str) -> tuple[str | None, list[str]]:
        """(the adapter whose own file this is, adapters that share it)."""
        found = self._known.get(file)
        if found is None:
            found = self._known[file] = self._find(file.removesuffix(_DELETED))
        return found

    def _find(self, file: str) -> tuple[str | None, list[str]]:
        if file.startswith("/dev/nvidia"):
            own = self._nvidia.get(file)
            is_card = file[len("/dev/nvidia") :].isdigit() or file.startswith("/dev/nvidia-caps/")
            return own, [] if own is not None or is_card else self._common["nvidia"]
        if file.startswith(("/dev/dri/", "/dev/accel/")):
            return self._by_sysfs(file), []
        if file == "/dev/kfd":
            return None, self._common["amd"]
        if file.startswith("/dev/davinci") and file[len("/dev/davinci") :].isdigit():
            return self._huawei(int(file[len("/dev/davinci") :])), []
        if file.startswith(("/dev/davinci", "/dev/devmm_svm")):
            return None, self._common["huawei"]
        if file == "/dev/dxg":  # every adapter of a WSL guest stands behind it
            return None, sorted(self._keys)
        return None, []

    def _add_partitions(self, minor: int, card: AdapterFacts, cards: list[AdapterFacts]) -> None:
        """A MIG partition has a capability node of its own beside its card's: `/dev/nvidia-caps/nvidia-capN`."""
        for part in cards:
            if part.identity.get("parent") != card.identity.get("id"):
                continue
            place = part.identity.get("partition")
            if not isinstance(place, dict):
                continue
            folder = f"driver/nvidia/capabilities/gpu{minor}/mig/gi{place.get('gpu_instance')}"
            for access in (f"{folder}/ci{place.get('compute_instance')}/access", f"{folder}/access"):
                number = _capability_minor(self._host, access)
                if number is not None:
                    self._nvidia[f"/dev/nvidia-caps/nvidia-cap{number}"] = part.key
                    break

    def _by_sysfs(self, file: str) -> str | None:
        """`/dev/dri/renderD128` -> the PCI function that its node hangs from, else its card's number."""
        kind, node = ("drm", file[9:]) if file.startswith("/dev/dri/") else ("accel", file[11:])
        partition = f"amdgpu-index:{node.removeprefix('renderD')}"
        if partition in self._keys:
            return partition
        try:
            parts = self._host.sys.readlink(f"class/{kind}/{node}").split("/")
        except OSError:
            return None
        # …/0000:03:00.0/drm/renderD128; a virtio GPU stands below its PCI function.
        for part in reversed(parts[-4:-2]):
            if part in self._by_address:
                return self._by_address[part]
        index = f"{kind}-index:{node.lstrip('abcdefghijklmnopqrstuvwxyzD')}"
        if node.startswith("renderD"):
            index = f"drm-index:{self._card_beside(node)}"
        return index if index in self._keys else None

    def _card_beside(self, node: str) -> str:
        try:
            names = self._host.sys.listdir(f"class/drm/{node}/device/drm")
        except OSError:
            return ""
        return next((name[4:] for name in names if name.startswith("card")), "")

    def _huawei(self, number: int) -> str | None:
        keys = self._common["huawei"]
        return keys[number] if number < len(keys) else None


def _is_whole(facts: AdapterFacts) -> bool:
    """No partition of another adapter."""
    return not isinstance(facts.identity.get("parent"), str)


def _nvidia_minors(host: Host) -> dict[str, int]:
    """PCI address -> N of `/dev/nvidiaN`, which is not NVML's index; `Device Minor: 	 0` of `information`."""
    minors: dict[str, int] = {}
    try:
        addresses = host.proc.listdir("driver/nvidia/gpus")
    except OSError:
        return minors
    for address in addresses:
        try:
            text = host.proc.read(f"driver/nvidia/gpus/{address}/information").decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Device Minor" and value.strip().isdigit():
                minors[address.lower()] = int(value)
    return minors


def _minor_by_nvml(host: Host, card: AdapterFacts) -> int | None:
    """Where the kernel's own folder is not there (a container): NVML's answer, else its index."""
    index = card.identity.get("index")
    if card.identity.get("power_state") == "suspended":  # never woken
        return index if isinstance(index, int) else None
    try:
        minor = host.nvml().call("nvmlDeviceGetMinorNumber", str(index))
    except (NvmlError, NvmlUnavailable):
        minor = index
    return minor if isinstance(minor, int) else None


def _capability_minor(host: Host, path: str) -> int | None:
    """`DeviceFileMinor: 30` of a capability's `access` file."""
    try:
        text = host.proc.read(path).decode("utf-8", "replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "DeviceFileMinor" and value.strip().isdigit():
            return int(value)
    return None
