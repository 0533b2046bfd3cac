"""The log files of a process: what its own or its parent's stdout and stderr lead to, or `--log-file`.

Only regular files are opened, read-only, at most 2 MiB of the head and 2 MiB of the tail. A pipe, a terminal and
the journal's socket hold nothing that could be read without taking it away or asking another service.
"""

from __future__ import annotations

import stat as stat_mode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.host import Stat, Tree
    from gpusnap.llm.files import ProcessFiles
    from gpusnap.llm.program import Program

PART = 2 << 20


class LogFile:
    """`own`: this process wrote it; else the one that started it did, for all that it started."""

    __slots__ = ("_name", "_tree", "identity", "own", "path", "size")

    def __init__(self, tree: Tree, name: str, path: str, stat: Stat, *, own: bool) -> None:
        self._tree = tree
        self._name = name
        self.path = path
        self.identity = (stat.device, stat.inode)
        self.size = stat.size
        self.own = own

    def read(self) -> bytes:
        """Head and tail, parted by a line end so that no line is put together of both; empty if it went away."""
        try:
            data = self._tree.read_at(self._name, 0, PART)
            if self.size > PART:
                rest = min(PART, self.size - PART)
                data += b"\n" + self._tree.read_at(self._name, self.size - rest, rest)
        except OSError:
            return b""
        return data


def find(files: ProcessFiles, program: Program, flagged: str | None, started: float | None) -> list[LogFile]:
    """The process's logs, its own first; `started` is when the process began: an older file is not of it."""
    places: list[tuple[Tree, str, str, bool]] = []
    if flagged is not None and (path := files.absolute(flagged)) is not None:
        places.append((*files.place(path), path, True))
    chain = [program, *program.ancestors()[:2]]
    for one in chain:
        for number, target in _streams(files, one.pid):
            if target.startswith("/") and not target.startswith(("/dev/", "/proc/")):
                places += [(*place, target, one is program) for place in _ways(files, one.pid, number, target)]
    found: list[LogFile] = []
    for tree, name, path, own in places:
        log = _open(tree, name, path, own, started)
        if log is not None and all(log.identity != known.identity for known in found):
            found.append(log)
    return found


def _streams(files: ProcessFiles, pid: int) -> list[tuple[str, str]]:
    found = []
    for number in ("1", "2"):
        try:
            found.append((number, files.host.proc.readlink(f"{pid}/fd/{number}")))
        except OSError:
            continue
    return found


def _ways(files: ProcessFiles, pid: int, number: str, target: str) -> list[tuple[Tree, str]]:
    """By its path; by the descriptor where it is deleted or in another mount namespace."""
    if files.foreign or target.endswith(" (deleted)"):
        return [(files.host.proc, f"{pid}/fd/{number}")]
    return [(files.host.root, target.lstrip("/"))]


def _open(tree: Tree, name: str, path: str, own: bool, started: float | None) -> LogFile | None:
    try:
        stat = tree.stat(name)
    except OSError:
        return None
    if not stat_mode.S_ISREG(stat.mode) or stat.size == 0:
        return None
    if started is not None and stat.modified < started - 1:
        return None
    return LogFile(tree, name, path, stat, own=own)
