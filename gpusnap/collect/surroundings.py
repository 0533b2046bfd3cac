"""Facts about processes that the document has no place for: who their parents are, and whether they listen.

Read only by `explain`, only for processes on a card: /proc/PID/stat (proc_pid_stat(5)), /proc/PID/net/tcp and unix
(proc_pid_net(5)), and the sockets among /proc/PID/fd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.collect.procfs import parse_stat
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.host import Host

_MOST_PIDS = 512
_SOCKETS_LIMIT = 4 << 20
_TCP_LISTEN = b"0A"
_UNIX_ACCEPTS = 0x10000  # __SO_ACCEPTCON


class Kin(NamedTuple):
    """`parents`: pid -> (parent's pid, parent's name). `unseen`: pids whose open sockets can't be read."""

    parents: dict[int, tuple[int, str | None]]
    listening: frozenset[int]
    unseen: frozenset[int]


def kin_of(host: Host, pids: Iterable[int]) -> Kin:
    """A process that is gone meanwhile is left out."""
    wanted = sorted(set(pids))[:_MOST_PIDS]
    parents = {}
    listening, unseen = set(), set()
    for pid in wanted:
        ppid = _parent(host, pid)
        if ppid is None:
            continue
        parents[pid] = (ppid, _name(host, ppid))
        listens = _listens(host, pid)
        if listens is None:
            unseen.add(pid)
        elif listens:
            listening.add(pid)
    return Kin(parents, frozenset(listening), frozenset(unseen))


def _parent(host: Host, pid: int) -> int | None:
    try:
        return parse_stat(host.proc.read(f"{pid}/stat"))[2]
    except (OSError, ValueError, IndexError):
        return None


def _name(host: Host, pid: int) -> str | None:
    try:
        return clean(host.proc.read(f"{pid}/comm").rstrip(b"\n"))
    except OSError:
        return None


def _listens(host: Host, pid: int) -> bool | None:
    try:
        targets = [target for _, target in host.proc.links(f"{pid}/fd")]
    except OSError:
        return None
    sockets = {target[8:-1] for target in targets if target.startswith("socket:[")}
    return bool(sockets) and not sockets.isdisjoint(_listening_inodes(host, pid))


def _listening_inodes(host: Host, pid: int) -> set[str]:
    """Of the process's own network namespace."""
    found = set()
    for name in ("tcp", "tcp6"):
        for fields in _table(host, f"{pid}/net/{name}"):
            if len(fields) > 9 and fields[3] == _TCP_LISTEN:
                found.add(fields[9].decode("ascii", "replace"))
    for fields in _table(host, f"{pid}/net/unix"):
        if len(fields) > 6 and _flags(fields[3]) & _UNIX_ACCEPTS:
            found.add(fields[6].decode("ascii", "replace"))
    return found


def _table(host: Host, path: str) -> list[list[bytes]]:
    try:
        return [line.split() for line in host.proc.read(path, _SOCKETS_LIMIT).splitlines()[1:]]
    except OSError:
        return []


def _flags(field: bytes) -> int:
    try:
        return int(field, 16)
    except ValueError:
        return 0
