"""Who has a GPU's device files open or mapped: what `fuser -v /dev/nvidia*` shows, without it.

Memory that no listed process has is most often held by one that the driver does not list: a worker whose parent
died, another user's leftover (PaddleOCR#2074). Asked for by `--holders`, since it looks into every process.
gpusnap's own pid is left out: it holds the files only in order to ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.device_files import PREFIXES, DeviceFiles, is_gpu_file, name_of_number
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.collect.processes import Table
    from gpusnap.host import Host
    from gpusnap.model import Holder

    Owners = Callable[[str], tuple[str | None, list[str]]]

# Mappings of one process that are looked through.
MAPS_LIMIT = 1 << 24
_MAP_MARKS = tuple(prefix.encode() for prefix in PREFIXES)
# Nodes below /dev that are certainly no GPU's, so that only the rest needs a stat.
_OTHER_NODES = (
    *(
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "tty",
        "pts/",
        "ptmx",
        "shm/",
        "fuse",
        "kmsg",
        "console",
        "log",
    ),
    *("input/", "snd/", "mqueue", "hugepages", "net/", "kvm", "vhost", "rtc", "uinput", "hidraw", "udmabuf"),
    *("disk/", "mapper/", "sd", "nvme", "loop", "video", "media", "bus/", "dma_heap/"),
)


def gpu_file_test(host: Host) -> Callable[[int], bool | None]:
    """Whether a process has a GPU's device file open; None where its descriptors can't be read."""

    def holds(pid: int) -> bool | None:
        try:
            return bool(_open_files(host, pid))
        except (FileNotFoundError, ProcessLookupError):
            return False
        except OSError:
            return None

    return holds


def holders_of(
    host: Host, table: Table, adapters: Sequence[AdapterFacts]
) -> tuple[dict[str, list[Holder] | Reading], int]:
    """(rows by adapter key, how many processes could not be looked into)."""
    no_list = dict.fromkeys([facts.key for facts in adapters], null("not-supported", "no list of open files"))
    if host.platform in ("windows", "macos"):
        return dict(no_list), 0
    try:
        held, unreadable = find_holders(host, DeviceFiles(host, adapters).owners)
    except OSError:  # no /proc here, or none that may be listed
        return dict(no_list), 0
    rows: dict[str, list[Holder]] = {facts.key: [] for facts in adapters}
    for key, pid, via in held:
        rows[key].append(_row(table, pid, via))
    return dict(rows), unreadable


def some_are_hidden(host: Host) -> bool:
    """Whether /proc does not even list other users' processes."""
    from gpusnap.collect.drm_walk import hides_processes

    try:
        return hides_processes(host, host.proc.listdir(""))
    except OSError:
        return False


def find_holders(host: Host, owners: Owners) -> tuple[list[tuple[str, int, str]], int]:
    """((adapter, pid, file) by adapter and pid, processes that could not be looked into); OSError without /proc.

    `owners` maps a file to the adapter whose own it is and to those that share it. A shared file (`nvidiactl`,
    `kfd`) names candidates only: whoever has an own file of one of them holds that one.
    """
    from gpusnap.collect.drm_walk import has_no_descriptors

    found: list[tuple[str, int, str]] = []
    unreadable = 0
    own_pid = host.own_pid()
    for pid in sorted(int(name) for name in host.proc.listdir("") if name.isdigit()):
        if pid == own_pid:
            continue
        try:
            files = _open_files(host, pid) or _mapped_files(host, pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            if not has_no_descriptors(host, str(pid)):
                unreadable += 1
            continue
        found += [(key, pid, via) for key, via in _held(files, owners).items()]
    return sorted(found), unreadable


def _held(files: Iterable[str], owners: Owners) -> dict[str, str]:
    """Adapter -> the file that shows it best."""
    own: dict[str, str] = {}
    shared: dict[str, list[str]] = {}
    for file in sorted(files):
        adapter, candidates = owners(file)
        if adapter is not None:
            own.setdefault(adapter, file)
        elif candidates:
            shared[file] = candidates
    for file, candidates in shared.items():
        if own.keys().isdisjoint(candidates):
            for adapter in candidates:
                own.setdefault(adapter, file)
    return own


def _open_files(host: Host, pid: int) -> set[str]:
    """GPU device files among a process's descriptors, under their usual names; OSError."""
    files: set[str] = set()
    for number, target in host.proc.links(f"{pid}/fd"):
        if not target.startswith("/dev/"):
            continue
        if target.startswith(("/dev/dri/", "/dev/accel/")):
            # A container may give one card's usual name to another: the number tells (homelab-monitor PR247).
            files.add(_renamed(host, f"{pid}/fd/{number}") or target)
        elif is_gpu_file(target):
            files.add(target)
        elif not target.startswith(_OTHER_NODES, 5):
            renamed = _renamed(host, f"{pid}/fd/{number}")
            if renamed is not None:
                files.add(renamed)
    return files


def _renamed(host: Host, path: str) -> str | None:
    """A container may give a node another name; its number stays."""
    try:
        number = host.proc.stat(path).rdev
    except OSError:
        return None
    return None if number is None else name_of_number(host, number)


def _mapped_files(host: Host, pid: int) -> set[str]:
    """Device files that are mapped though no descriptor is left; OSError."""
    raw = host.proc.read(f"{pid}/maps", MAPS_LIMIT)
    if not any(mark in raw for mark in _MAP_MARKS):
        return set()
    # address perms offset dev inode path: the path is what follows five fields and may hold blanks.
    paths = {line.split(None, 5)[5] for line in raw.splitlines() if b" /dev/" in line}
    return {
        path for path in (raw_path.decode("utf-8", "surrogateescape") for raw_path in paths) if is_gpu_file(path)
    }


def _row(table: Table, pid: int, via: str) -> Holder:
    facts = table.facts(pid, "here", lambda _: True)
    return {
        "pid": pid,
        "start_ticks": facts["start_ticks"].value,  # type: ignore[typeddict-item]
        "name": facts["name"].value,  # type: ignore[typeddict-item]
        "user": facts["user"].value,  # type: ignore[typeddict-item]
        "state": facts["state"].value,  # type: ignore[typeddict-item]
        "via": via,
    }
