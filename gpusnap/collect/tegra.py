"""What the kernel says of a GPU that shares the system's memory: NVIDIA's Jetson boards and GB10.

`/proc/meminfo` has `MemTotal`, and on boards with the nvgpu driver `NvMapMemUsed`, what its allocator took. A 0
there is no measurement: Thor's nvmap reads 0 while CUDA runs (jetson_stats PR#849). `load` is in tenths of a
percent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from gpusnap.host import Host

_PLATFORM = "devices/platform"
_LOAD_FOLDERS = ("devices", _PLATFORM, f"{_PLATFORM}/bus@0")


def board(host: Host) -> str | None:
    """`NVIDIA Jetson AGX Orin Developer Kit`."""
    try:
        return host.proc.read("device-tree/model", 256).rstrip(b"\0").decode("utf-8", "replace") or None
    except OSError:
        return None


def system_share(host: Host) -> dict[str, Reading]:
    """The whole of the system's memory, and how much of it the GPU's allocator took."""
    sizes = _meminfo(host)
    total, used = sizes.get("MemTotal"), sizes.get("NvMapMemUsed")
    return {
        "memory.shared_total_bytes": _size(total, "MemTotal"),
        "memory.shared_used_bytes": null("not-supported", "NvMapMemUsed reads 0")
        if used == 0
        else _size(used, "NvMapMemUsed"),
    }


def _size(value: int | None, key: str) -> Reading:
    return null("not-exposed", f"meminfo {key}") if value is None else measured(value, f"proc.meminfo.{key}")


def _meminfo(host: Host) -> dict[str, int]:
    try:
        lines = host.proc.read("meminfo", 8192).decode("ascii", "replace").splitlines()
    except OSError:
        return {}
    sizes = {}
    for line in lines:
        key, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit() and int(words[0]) >> 43 == 0:
            sizes[key] = int(words[0]) * 1024
    return sizes


def gpu_load(host: Host) -> Reading:
    for folder in _LOAD_FOLDERS:
        try:
            names = sorted(host.sys.listdir(folder))
        except OSError:
            continue
        for name in names:
            if name == "gpu.0" or name.endswith(".gpu"):
                load = _load(host, f"{folder}/{name}/load")
                if load is not None:
                    return load
    return null("not-exposed", "no load of a gpu platform device")


def _load(host: Host, path: str) -> Reading | None:
    try:
        text = host.sys.read(path, 32).strip()
    except FileNotFoundError:
        return None
    except PermissionError:
        return null("no-permission", f"sysfs.{path}")
    except OSError:
        return null("failed", f"sysfs.{path}")
    if not text.isdigit():
        return null("unknown-format", "sysfs.load")
    tenths = int(text)
    if tenths > 1000:
        return null("out-of-range", f"sysfs.load says {tenths}")
    return measured(tenths / 10, "sysfs.load")
