"""Files as one process sees them: its own root, its own folder, and one identity however a path is spelled."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.host import Host, Stat, Tree


class ProcessFiles:
    """Paths of a process in another mount namespace (a container) are read below `/proc/PID/root`."""

    __slots__ = ("_prefix", "_tree", "cwd", "foreign", "host", "pid")

    def __init__(self, host: Host, pid: int, cwd: str) -> None:
        self.host = host
        self.pid = pid
        self.cwd = cwd.replace("\\", "/") if host.platform == "windows" else cwd
        self.foreign = _in_another_root(host, pid)
        self._tree: Tree = host.proc if self.foreign else host.root
        self._prefix = f"{pid}/root/" if self.foreign else ""

    def absolute(self, path: str) -> str | None:
        """A path of the command line, against the process's folder; None where that is not known."""
        if path.startswith("~"):
            return None
        if self.host.platform == "windows":
            path = path.replace("\\", "/")
        if _is_absolute(path):
            return posixpath.normpath(path)
        return posixpath.normpath(posixpath.join(self.cwd, path)) if _is_absolute(self.cwd) else None

    def place(self, path: str) -> tuple[Tree, str]:
        """(tree, path in it) of an absolute path."""
        return self._tree, self._prefix + path.lstrip("/")

    def stat(self, path: str) -> Stat:
        tree, name = self.place(path)
        return tree.stat(name)

    def read(self, path: str, limit: int) -> bytes:
        tree, name = self.place(path)
        return tree.read(name, limit)

    def listdir(self, path: str) -> list[str]:
        tree, name = self.place(path)
        return tree.listdir(name)

    def descriptors(self) -> list[tuple[str, str]]:
        """(descriptor, target); none where this user may not look."""
        try:
            return self.host.proc.links(f"{self.pid}/fd")
        except OSError:
            return []


def _is_absolute(path: str) -> bool:
    """`/models`, on Windows `C:/models`."""
    return path.startswith("/") or (path[1:3] == ":/" and path[0].isalpha())


def _in_another_root(host: Host, pid: int) -> bool:
    try:
        return host.proc.readlink(f"{pid}/ns/mnt") != host.proc.readlink(f"{host.own_pid()}/ns/mnt")
    except OSError:
        return host.procfs_is_foreign()
