"""The file trees of a host that is being kept: `--save-raw` writes what this remembers."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from gpusnap.captured_tree import Entry
from gpusnap.host import READ_LIMIT, Stat

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from gpusnap.host import Tree
    from gpusnap.saving import SavingHost

    Answer = TypeVar("Answer")


class SavingTree:
    """Follows links itself, so that each file is kept once, at its real place, with the links that lead there."""

    def __init__(self, host: SavingHost, name: str, inner: Tree) -> None:
        self._host = host
        self._name = name
        self._inner = inner
        self._places: dict[str, str] = {}

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        data = self._asked(path, lambda: self._inner.read(path, limit))
        entry = self._entry(path)
        if entry.data is None or len(entry.data) < len(data):
            entry.data = data
        return data

    def read_record(self, path: str) -> bytes:
        return self.read(path)

    def read_at(self, path: str, offset: int, limit: int) -> bytes:
        data = self._asked(path, lambda: self._inner.read_at(path, offset, limit))
        entry = self._entry(path)
        size = self._inner.stat(path).size
        entry.size = size
        entry.data = b"" if entry.data is None else entry.data
        entry.parts[offset if offset >= 0 else max(0, size + offset)] = data
        return data

    def listdir(self, path: str) -> list[str]:
        names = self._asked(path, lambda: self._inner.listdir(path))
        self._keep_listing(self._place(path), names)
        return names

    def _keep_listing(self, place: str, names: list[str]) -> None:
        """Names that nothing else is known of yet, and which of the last layer's are gone."""
        if not self._host.is_known(place):
            self._host.layer.entries[place] = Entry()
        for name in names:
            if not self._host.is_known(f"{place}/{name}"):
                self._host.layer.entries[f"{place}/{name}"] = Entry()
        for gone in self._host.children(place) - set(names):
            self._host.layer.entries[f"{place}/{gone}"] = None

    def readlink(self, path: str) -> str:
        target = self._asked(path, lambda: self._inner.readlink(path))
        parent, _, leaf = path.rpartition("/")
        self._host.layer.entries[f"{self._place(parent)}/{leaf}"] = Entry(target=target)
        return target

    def stat(self, path: str) -> Stat:
        found = self._asked(path, lambda: self._inner.stat(path))
        entry = self._stat_entry(path)
        entry.size, entry.mode, entry.uid = found.size, found.mode & 0o7777, found.uid
        entry.rdev, entry.inode, entry.modified = found.rdev, (found.device, found.inode), found.modified
        if entry.data is None and found.mode & 0o170000 != 0o040000:
            entry.data = b""
        return found

    def _stat_entry(self, path: str) -> Entry:
        """stat(2) follows links: those of a process's descriptors lead to a node outside `/proc`."""
        if self._name == "proc":
            try:
                target = self.readlink(path)
            except OSError:
                return self._entry(path)
            if target.startswith("/"):
                entry = self._host.layer.entries.get(f"root{target}")
                if entry is None or entry.error:
                    entry = self._host.layer.entries[f"root{target}"] = Entry()
                return entry
        return self._entry(path)

    def links(self, path: str) -> list[tuple[str, str]]:
        found = self._asked(path, lambda: self._inner.links(path))
        place = self._place(path)
        self._keep_listing(place, [name for name, _ in found])
        for name, target in found:
            self._host.layer.entries[f"{place}/{name}"] = Entry(target=target)
        return found

    def real(self, path: str) -> str:
        found = self._asked(path, lambda: self._inner.real(path))
        if not self._host.is_known(self._place(path)):
            self._host.layer.entries[self._place(path)] = Entry()
        return found

    def _entry(self, path: str) -> Entry:
        entries = self._host.layer.entries
        place = self._place(path)
        known = entries.get(place)
        if known is None or known.target is not None or known.error:
            known = entries[place] = Entry()
        return known

    def _asked(self, path: str, ask: Callable[[], Answer]) -> Answer:
        """The answer, or the error, which is kept unless it is "no such file", as what is not kept answers."""
        try:
            return ask()
        except OSError as error:
            number = error.errno if error.errno is not None else errno.EIO
            if number not in (errno.ENOENT, errno.EINVAL, errno.EISDIR, errno.ENOTDIR):
                self._keep_error(self._place(path), number)
            raise

    def _keep_error(self, place: str, number: int) -> None:
        """Unless it was read before: a name of a listing says nothing yet."""
        known = self._host.layer.entries.get(place)
        if known is None or (known.data is None and known.target is None and known.size is None):
            self._host.layer.entries[place] = Entry(error=number)

    def _place(self, path: str) -> str:
        """Where the archive keeps it. `/proc` has no links worth following: those of a process are not its own."""
        path = path.strip("/")
        if self._name == "proc":
            return f"proc/{path}" if path else "proc"
        known = self._places.get(path)
        if known is None:
            known = self._places[path] = self._follow(path)
        return known

    def _follow(self, path: str) -> str:
        done = ""
        todo = path.split("/") if path else []
        for _ in range(200):
            if not todo:
                break
            part = todo.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            here = f"{done}/{part}" if done else part
            try:
                target = self._inner.readlink(here)
            except OSError:
                done = here
                continue
            self._host.layer.entries[f"{self._name}/{here}"] = Entry(target=target)
            prefix = "/" if self._name == "root" else f"/{self._name}/"
            if target.startswith("/"):
                done, target = "", target.removeprefix(prefix)
            todo = target.split("/") + todo
        return f"{self._name}/{done}" if done else self._name
