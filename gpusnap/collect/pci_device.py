"""What sysfs says about one PCI function without touching it: ids, names, link. Sources: drivers/pci/pci-sysfs.c.

`current_link_*`, `config` and lspci read the hardware and wake a card that lost its power; the ids are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.drm_devices import VENDORS, hex_id
from gpusnap.collect.sysfs import integer, unknown_format, why
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from gpusnap.collect.pci_names import NameTables
    from gpusnap.host import Tree

# GT/s of a lane -> generation. The kernel writes "2.5 GT/s PCIe", "Unknown" for a link that is down.
_GENERATIONS = {b"2.5": 1, b"5.0": 2, b"5": 2, b"8.0": 3, b"8": 3, b"16.0": 4, b"32.0": 5, b"64.0": 6}
_LEAVES = ("generation", "max_generation", "width", "max_width")


def identify(tree: Tree, names: NameTables, path: str, address: str, what: str = "GPU") -> dict[str, object]:
    """The identity leaves that the bus alone can tell."""
    vendor, device = hex_id(tree, f"{path}/vendor"), hex_id(tree, f"{path}/device")
    model: object = null("not-exposed", "sysfs.device")
    if vendor is not None and device is not None:
        model = names.name(vendor, device, hex_id(tree, f"{path}/revision"), what)
    return {
        "id": f"pci:{address}",
        "vendor": VENDORS.get(vendor or "", "other"),
        "model": model,
        "pci_address": address,
    }


def link(tree: Tree, path: str, blocked: Reading | None) -> dict[str, Reading]:
    """pcie.generation and pcie.width, now and at most; `blocked` is why they must not be read."""
    if blocked is not None:
        return {f"pcie.{leaf}": blocked for leaf in _LEAVES}
    return {
        "pcie.generation": _generation(tree, path, "current_link_speed"),
        "pcie.max_generation": _generation(tree, path, "max_link_speed"),
        "pcie.width": _width(tree, path, "current_link_width"),
        "pcie.max_width": _width(tree, path, "max_link_width"),
    }


def _generation(tree: Tree, path: str, name: str) -> Reading:
    source = f"sysfs.{name}"
    try:
        raw = tree.read(f"{path}/{name}", 64)
    except OSError as error:
        return why(error, source)
    speed, _, rest = raw.partition(b" ")
    if raw.startswith(b"Unknown"):
        return null("not-supported", f"{source}: Unknown")
    generation = _GENERATIONS.get(speed)
    if generation is None or not rest.startswith(b"GT/s") or not raw.endswith(b"\n"):
        return unknown_format(source, raw)
    return measured(generation, source)


def _width(tree: Tree, path: str, name: str) -> Reading:
    source = f"sysfs.{name}"
    try:
        raw = tree.read(f"{path}/{name}", 64)
    except OSError as error:
        return why(error, source)
    lanes = integer(raw)
    if lanes is None:
        return unknown_format(source, raw)
    if lanes in (0, 255):  # what an integrated part and a link that is down answer
        return null("not-supported", f"{source}: {lanes}")
    return measured(lanes, source) if 0 < lanes <= 32 else null("out-of-range", f"{source}: {lanes}")
