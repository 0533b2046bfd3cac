"""Whose numbers a pid is from, and when a process of this number may lend its name to a driver's pid.

Drivers give the host's pids and know nothing of pid namespaces (nvidia-docker#179, nvidia-docker#1483). In the
initial namespace those are the numbers of `/proc`. Elsewhere a process with the same number is most likely
another one, so it is believed only if it holds a GPU device file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.host import Host

# include/linux/proc_ns.h: PROC_PID_INIT_INO, PROC_CGROUP_INIT_INO, the first user namespace.
_INITIAL_PID = "pid:[4026531836]"
_INITIAL_CGROUP = "cgroup:[4026531835]"
_INITIAL_USER = "user:[4026531837]"
OVERFLOW_UID = 65534


def sees_host_pids(host: Host) -> bool | None:
    """Does `host.proc` show the initial pid namespace? None: nothing here can tell.

    Under `--procfs` the link of pid 1 is asked instead of the reader's own. It takes CAP_SYS_PTRACE to read;
    without it, kthreadd as pid 2 is proof enough: kernel threads stand in the initial namespace only.
    WSL's guest is no host: the driver's numbers are those of Windows or of another guest.
    """
    if host.platform == "wsl":
        return False
    try:
        return host.proc.readlink("1/ns/pid" if host.procfs_is_foreign() else "self/ns/pid") == _INITIAL_PID
    except OSError:
        pass
    try:
        return True if host.proc.read("2/stat").startswith(b"2 (kthreadd) ") else None
    except OSError:
        return None


def in_cgroup_namespace(host: Host) -> bool:
    """True when paths in `cgroup` files are cut to the reader's own group (containers on cgroup version 2)."""
    return _differs(host, "self/ns/cgroup", _INITIAL_CGROUP)


def in_user_namespace(host: Host) -> bool:
    """True when uids are mapped: whoever has no number here is shown as 65534."""
    return _differs(host, "self/ns/user", _INITIAL_USER)


def _differs(host: Host, link: str, initial: str) -> bool:
    try:
        return host.proc.readlink(link) != initial
    except OSError:  # a kernel without the namespace
        return False
