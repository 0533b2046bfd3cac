"""What a DRM device says of itself where no backend of its own reads it: identity, hwmon, link.

`amdgpu` and `intel` come first in the registry; here every other driver gets its row (nouveau, radeon, v3d,
panfrost, msm, NPUs ...).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect import pci_device
from gpusnap.collect.harvest import AdapterFacts
from gpusnap.collect.hwmon import Hwmon
from gpusnap.reading import Reading, inferred, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.drm_targets import Target
    from gpusnap.collect.pci_names import NameTables
    from gpusnap.host import Host, Tree

_WITH_OWN_BACKEND = ("amdgpu", "i915", "xe")
_UNIFIED = null("unified-memory")


def identify(tree: Tree, names: NameTables, target: Target, kernel: str | None) -> dict[str, object]:
    device = target.device
    if target.is_part:  # the amdgpu backend describes it
        return {"id": target.key, "vendor": "amd", "driver": "amdgpu", "pci_address": null("partitioned")}
    if device.driver in _WITH_OWN_BACKEND and device.address is not None:  # so does another this one
        vendor = "amd" if device.driver == "amdgpu" else "intel"
        return {"id": target.key, "vendor": vendor, "pci_address": device.address, "driver": device.driver}
    identity: dict[str, object] = {"id": target.key, "vendor": "other"}
    if device.address is not None:
        what = "NPU" if device.accel else "GPU"
        identity.update(pci_device.identify(tree, names, device.path, device.address, what))
    else:
        identity["model"] = _compatible(tree, device.path)
        identity["pci_address"] = null("none", "not on a PCI bus")
    identity.update(driver=device.driver, driver_version=kernel, kind=_kind(target))
    return identity


def _kind(target: Target) -> object:
    """A radeon may be either; amdgpu's backend knows its own."""
    device = target.device
    if device.accel:
        return "npu"
    if device.is_integrated:
        return "integrated"
    return "discrete" if device.vendor_id in ("8086", "10de") else None


def _compatible(tree: Tree, path: str) -> object:
    """The device tree's name of the part, `brcm,2711-v3d`: names end in NUL, the first is the most exact."""
    try:
        raw = tree.read(f"{path}/of_node/compatible", 1024)
    except OSError:
        return null("not-exposed", "sysfs.of_node/compatible")
    name, end, _ = raw.partition(b"\0")
    return clean(name, 128) if end and name else null("unknown-format", "sysfs.of_node/compatible")


def facts_of(host: Host, target: Target, identity: dict[str, object]) -> AdapterFacts:
    device = target.device
    facts = AdapterFacts(target.key)
    facts.identity = {**identity, "index": device.index, "power_state": target.state}
    facts.unified_only = device.is_integrated
    if device.is_integrated:
        leaves = [f"memory.{leaf}_bytes" for leaf in ("total", "used", "free")]
        facts.figures.update(dict.fromkeys(leaves, _UNIFIED))
        facts.figures["memory.kind"] = inferred("unified", "sysfs.device")
    if device.driver not in _WITH_OWN_BACKEND and device.address is not None and not target.is_part:
        facts.figures.update(_sensors(host, target))
    return facts


def _sensors(host: Host, target: Target) -> dict[str, Reading]:
    path = target.device.path
    leaves = pci_device.link(host.sys, path, target.touch)
    if target.touch is not None:
        names = ("temperature.gpu_celsius", "temperature.fan_percent", "power.draw_watts")
        return {**leaves, **dict.fromkeys(names, target.touch)}
    sensors = Hwmon(host.sys, path)
    leaves["temperature.gpu_celsius"] = sensors.temperature("temp1")
    leaves["temperature.fan_percent"] = sensors.fan_percent()
    leaves["power.draw_watts"] = sensors.power(("power1_average", "power1_input"))
    return leaves
