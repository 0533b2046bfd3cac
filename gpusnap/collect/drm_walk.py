"""One walk over `/proc/*/fd` for every DRM, accel and KFD node that any process has open.

Source: proc_pid_fd(5). readlink is the filter: it prints a path and never touches the target, where stat may
hang on a dead NFS mount. Only hits are looked at more closely, and names below /dev that a container may have
given to a node (homelab-monitor PR247: `--device renderD128:/dev/gpu0`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.host import Host

_NODES = ("/dev/dri/", "/dev/accel/", "/dev/kfd")
# What processes have open below /dev everywhere; nothing here is a renamed GPU node.
_ORDINARY = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts/",
    "/dev/ptmx",
    "/dev/shm/",  # noqa: S108 - a name to leave alone, not a place to write to
    "/dev/mqueue",
    "/dev/console",
    "/dev/input/",
    "/dev/snd/",
    "/dev/net/",
    "/dev/fuse",
    "/dev/kmsg",
    "/dev/log",
    "/dev/mapper/",
    "/dev/video",
    "/dev/nvidia",
    "/dev/hugepages",
    "/dev/infiniband/",
)
_PF_KTHREAD = 0x00200000


class Hit(NamedTuple):
    """A descriptor of a node; `number` is the node's (major, minor) where it could be had."""

    pid: int
    fd: str
    target: str
    number: tuple[int, int] | None


class Walk:
    """What the walk found. `unreadable` counts processes that could not be looked into."""

    __slots__ = ("hidden", "hits", "looked_into", "unreadable")

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.unreadable = 0
        self.looked_into = 0
        self.hidden = False

    @property
    def is_complete(self) -> bool:
        return self.unreadable == 0 and not self.hidden


def walk(host: Host) -> Walk:
    """Look into every process that /proc shows."""
    proc = host.proc
    found = Walk()
    own = str(host.own_pid())
    names = [name for name in proc.listdir("") if name.isdigit()]
    sized = _kernel_counts_descriptors(host, own)
    stat, links = proc.stat, proc.links
    for name in names:
        folder = name + "/fd"
        try:
            if sized and stat(folder).size == 0:
                continue  # a kernel thread, a zombie, or a process that closed everything
            targets = links(folder)
        except (FileNotFoundError, ProcessLookupError):
            continue  # gone meanwhile
        except OSError:
            if sized or not has_no_descriptors(host, name):
                found.unreadable += 1
            continue
        if name != own:
            found.looked_into += 1
        for fd, target in targets:
            if target[:5] == "/dev/" and not target.startswith(_ORDINARY):
                _take(host, found, name, fd, target)
    found.hidden = hides_processes(host, names)
    return found


def _take(host: Host, found: Walk, name: str, fd: str, target: str) -> None:
    """Ask a hit for its device number: in a container the name may be another card's, or none."""
    try:
        number = host.proc.stat(f"{name}/fd/{fd}").rdev
    except OSError:
        number = None
    if number is None and not target.startswith(_NODES):
        return
    found.hits.append(Hit(int(name), fd, target, number))


def _kernel_counts_descriptors(host: Host, own: str) -> bool:
    """Linux 6.2 and later tell the number of open descriptors as the size of the folder."""
    try:
        return host.proc.stat(own + "/fd").size > 0
    except OSError:
        return False


def has_no_descriptors(host: Host, name: str) -> bool:
    """Kernel threads and zombies deny the look before 6.2 and have nothing to hide."""
    try:
        stat = host.proc.read(name + "/stat", 4096)
    except OSError:
        return False
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 7 or not fields[6].isdigit():
        return False
    return fields[0] in (b"Z", b"X") or bool(int(fields[6]) & _PF_KTHREAD)


def hides_processes(host: Host, names: Sequence[str]) -> bool:
    """hidepid=2 (invisible) or 4 (ptraceable): other users' processes are not even among the `names` of /proc."""
    if "1" in names:
        return False
    try:
        mounts = host.proc.read("self/mounts", 1 << 18)
    except OSError:
        return False
    for line in mounts.splitlines():
        fields = line.split(b" ")
        if len(fields) < 4 or fields[2] != b"proc":
            continue
        for option in fields[3].split(b","):
            if option in (b"hidepid=2", b"hidepid=invisible", b"hidepid=4", b"hidepid=ptraceable"):
                return True
    return False


def parent_of(host: Host, pid: int) -> int | None:
    """The parent's pid, from `/proc/PID/stat`; None where it can't be told."""
    try:
        stat = host.proc.read(f"{pid}/stat", 4096)
    except OSError:
        return None
    fields = stat[stat.rfind(b")") + 2 :].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None
