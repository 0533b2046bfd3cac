"""The DRM and accel devices of a Linux machine as sysfs shows them, without opening one.

Sources: `/sys/class/drm`, `/sys/class/accel` and each device's `driver`, `vendor` and `power/runtime_status`.
None of these wakes a sleeping card; nearly everything else below a card's folder may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.sysfs import link_name, text, unknown_format, why
from gpusnap.reading import null

if TYPE_CHECKING:
    from gpusnap.host import Host, Tree
    from gpusnap.reading import Reading

DRM_MAJOR = 226
ACCEL_MAJOR = 261

# Drivers without `show_fdinfo` up to Linux 7.2: their descriptors say nothing about memory.
WITHOUT_FDINFO = frozenset(
    {
        "nouveau",
        "nova",
        "nova-core",
        "nvidia",
        "radeon",
        "virtio_gpu",
        "vmwgfx",
        "qxl",
        "lima",
        "powervr",
    }
)
# PCI drivers whose fdinfo is answered from memory, as is that of every SoC driver. xe takes a runtime reference
# for it, which wakes the card; a PCI driver that is not known here is treated as if it did.
FDINFO_NEVER_WAKES = frozenset({"amdgpu", "i915", "intel_vpu", "amdxdna"})
# BMCs and virtual screens: they show a picture and hold no one's memory.
DISPLAY_ONLY_VENDORS = frozenset({"1a03", "102b", "1234", "1013", "1b36", "15ad", "1af4"})
VENDORS = {"10de": "nvidia", "1002": "amd", "1022": "amd", "8086": "intel", "19e5": "huawei"}


class DrmDevice:
    """One device with a render or accel node. `path` is its folder in sysfs, `nodes` its device numbers."""

    __slots__ = ("accel", "address", "driver", "index", "nodes", "path", "vendor_id")

    def __init__(self, path: str, *, accel: bool) -> None:
        self.path = path
        self.accel = accel
        self.address = pci_address(path)
        self.driver: str | None = None
        self.vendor_id: str | None = None
        self.index: int | None = None
        self.nodes: set[tuple[int, int]] = set()

    @property
    def key(self) -> str:
        """The PCI address, else the id that the contract gives a device without one."""
        return self.address if self.address is not None else self.id

    @property
    def id(self) -> str:
        if self.address is not None:
            return f"pci:{self.address}"
        return f"{'accel' if self.accel else 'drm'}-index:{self.index}"

    @property
    def is_partition(self) -> bool:
        """A compute partition of an MI300: a platform device without a driver of its own."""
        return self.path.rsplit("/", 1)[-1].startswith("amdgpu_xcp")

    @property
    def has_fdinfo(self) -> bool:
        return self.is_partition or (self.driver is not None and self.driver not in WITHOUT_FDINFO)

    @property
    def is_integrated(self) -> bool:
        """No memory of its own: every SoC part, every NPU, and Intel's first display function."""
        if self.address is None:
            return not self.is_partition
        is_intel = self.vendor_id == "8086" or self.driver in ("i915", "xe")
        return self.accel or (is_intel and self.address == "0000:00:02.0")


def find_devices(host: Host) -> list[DrmDevice]:
    """Every device with a render or accel node, display-only ones left out; by PCI address, then index."""
    devices: dict[str, DrmDevice] = {}
    for folder, prefixes, major in (
        ("class/drm", ("card", "renderD"), DRM_MAJOR),
        ("class/accel", ("accel",), ACCEL_MAJOR),
    ):
        for name, prefix, number in _nodes(host.sys, folder, prefixes):
            path = _device_path(host.sys, f"{folder}/{name}")
            if path is None:
                continue
            device = devices.setdefault(path, DrmDevice(path, accel=major == ACCEL_MAJOR))
            device.nodes.add((major, number))
            if prefix != "renderD":
                device.index = number
    found = []
    for device in devices.values():
        if all(major == DRM_MAJOR and minor < 128 for major, minor in device.nodes):
            continue  # a screen without an engine: vc4, ast, simpledrm
        device.driver = link_name(host.sys, f"{device.path}/driver")
        if device.address is not None:
            device.vendor_id = hex_id(host.sys, f"{device.path}/vendor")
            if device.vendor_id in DISPLAY_ONLY_VENDORS:
                continue
        found.append(device)
    return sorted(found, key=lambda d: (d.address is None, d.address or "", d.index or 0))


def _nodes(tree: Tree, folder: str, prefixes: tuple[str, ...]) -> list[tuple[str, str, int]]:
    """(`renderD128`, `renderD`, 128) for each node of a class; connectors (`card0-DP-1`) are none."""
    try:
        names = tree.listdir(folder)
    except OSError:
        return []
    found = []
    for name in names:
        for prefix in prefixes:
            number = name.removeprefix(prefix)
            if number != name and number.isdigit():
                found.append((name, prefix, int(number)))
    return found


def _device_path(tree: Tree, link: str) -> str | None:
    """`class/drm/card0` -> `devices/pci0000:00/0000:00:01.0/0000:03:00.0`."""
    try:
        target = tree.readlink(link)
    except OSError:
        return None
    path = target[target.find("devices/") :] if "devices/" in target else ""
    return path.rsplit("/", 2)[0] if path.count("/") > 2 else None


def pci_address(path: str) -> str | None:
    """The PCI address that a device folder stands for; the last part, or the one above a virtio device."""
    parts = path.split("/")
    if len(parts) > 1 and parts[-1].startswith("virtio"):
        parts.pop()
    return parts[-1] if is_pci_address(parts[-1]) else None


def is_pci_address(name: str) -> bool:
    """dddd:bb:dd.f, where the domain may be longer (VMD)."""
    domain, colon, rest = name.partition(":")
    if len(domain) < 4 or not colon or len(rest) != 7 or rest[2] != ":" or rest[5] != ".":
        return False
    return all(char in "0123456789abcdef" for char in domain + rest[:2] + rest[3:5] + rest[6])


def hex_id(tree: Tree, path: str) -> str | None:
    """`0x1002` in a file -> `1002`."""
    found = text(tree, path, 64)
    if found is None or not found.startswith("0x") or len(found) > 10:
        return None
    return found[2:].lower()


def power_state(tree: Tree, path: str) -> tuple[str, Reading | None]:
    """(active | suspended | unknown, why what may wake the device must not be read).

    A card that is being suspended counts as suspended, since reading on would wake it again; one without
    runtime power management is always on. Where the status can't be read, the card is left alone.
    """
    source = "sysfs.power/runtime_status"
    try:
        raw = tree.read(f"{path}/power/runtime_status", 64)
    except FileNotFoundError:
        return "active", None
    except OSError as error:
        return "unknown", why(error, source)
    status = raw.strip()
    if status in (b"suspended", b"suspending"):
        return "suspended", null("device-suspended")
    if status in (b"active", b"resuming", b"unsupported"):
        return "active", None
    if status == b"error":  # its power management gave up: nothing will resume it, nothing can wake it
        return "unknown", None
    return "unknown", unknown_format(source, raw)


def card_index(tree: Tree, path: str) -> int | None:
    """N of the `cardN` below a device's folder; decoration, since the kernel renumbers cards at boot."""
    try:
        names = tree.listdir(f"{path}/drm")
    except OSError:
        return None
    for name in names:
        if name.startswith("card") and name[4:].isdigit():
            return int(name[4:])
    return None


def is_apu(tree: Tree, path: str) -> bool | None:
    """Whether an amdgpu device is an APU; None where it has no hwmon folder (MI250's second die, nvtop#300).

    Only APUs have the label of the northbridge voltage, `in1` (amdgpu_pm.c); MI300A is the one without. Sizes
    tell nothing: a carve-out may be 96 GiB. Listing names wakes nothing.
    """
    if hex_id(tree, f"{path}/device") == "74a0":
        return True
    try:
        folders = [name for name in tree.listdir(f"{path}/hwmon") if name.startswith("hwmon")]
        files = [name for folder in folders for name in tree.listdir(f"{path}/hwmon/{folder}")]
    except OSError:
        return None
    return "in1_label" in files if files else None
