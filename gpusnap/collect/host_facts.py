"""The document's `host` row and boot id."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.host import Unsupported
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.host import Host
    from gpusnap.model import HostRow

# The inode of the initial pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
_SYSCTL_TIMEOUT = 5.0
INITIAL_PID_NAMESPACE = "pid:[4026531836]"


def host_row(host: Host) -> HostRow:
    names = host.uname()
    cleaned = {key: clean(value) if value is not None else None for key, value in names.items()}
    return cast(
        "HostRow",
        {
            "hostname": cleaned["hostname"],
            "os": cleaned["os"],
            "kernel": cleaned["kernel"],
            "arch": cleaned["arch"],
            "platform": host.platform,
            "container": in_container(host),
        },
    )


def in_container(host: Host) -> bool | None:
    """Whether gpusnap itself runs in a container; null where nothing tells."""
    if host.platform in ("windows", "macos"):
        return False
    if host.exists("/.dockerenv") or host.exists("/run/.containerenv"):
        return True
    try:
        return host.proc.readlink("self/ns/pid") != INITIAL_PID_NAMESPACE
    except OSError:
        return None


def boot_id(host: Host) -> str | None:
    """`random/boot_id` of the kernel on Linux, a Mac's `kern.bootsessionuuid`, on Windows from when it started."""
    if host.platform == "windows":
        return _boot_of_windows(host)
    if host.platform == "macos":
        return _boot_of_macos(host)
    try:
        return clean(host.proc.read("sys/kernel/random/boot_id", 64).strip()) or None
    except OSError:
        return None


def _boot_of_macos(host: Host) -> str | None:
    try:
        answer = host.run(["sysctl", "-n", "kern.bootsessionuuid"], _SYSCTL_TIMEOUT)
    except (OSError, TimeoutError):
        return None
    return clean(answer.stdout.strip()).lower() or None


def _boot_of_windows(host: Host) -> str | None:
    """A UUID (version 8) made from the boot time that the kernel keeps apart from changes of the clock."""
    try:
        started = int(host.raw("boot")["boot_time"])
    except (Unsupported, OSError):
        return None
    from hashlib import sha256

    digits = sha256(f"gpusnap boot {started}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
