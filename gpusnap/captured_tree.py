"""The trees of a captured machine: the text archive, and reading from it as from a file system.

`tree.txt` holds the trees `proc`, `sys` and `root` as one text archive, because git on Windows can't hold
`0000:03:00.0`, because permissions can't be kept in files that root reads, and because a diff of it reads well:

    --- proc/4711/stat                        content follows, to the letter, until the next line `--- `
    --- proc/4711/cmdline escaped             one line with backslash escapes
    --- sys/x/gpu_metrics base64              binary
    --- proc/4711/fd/5 -> /dev/dri/renderD128 a link
    --- proc/99/fd !EACCES                    any access fails so
    --- proc/77/fd/ dir size=3                a folder; also rdev=226:128 mode=0640 uid=1000
    --- sys/y gone                            in `tree.2.txt`, which is laid over at the first sleep: removed
    --- root/models/x.gguf at=4096 base64     a part of a large file, from that offset; `size=` is the whole

Blanks and control characters in names are written `\\x20`.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from gpusnap.host import READ_LIMIT, Stat

if TYPE_CHECKING:
    from gpusnap.captured import CapturedHost

_MARK = b"--- "
_MAX_LINKS = 40


class Entry:
    """One file, folder or link of the archive; `data` for files, `target` for links, `error` an errno."""

    __slots__ = ("data", "error", "inode", "mode", "modified", "parts", "rdev", "size", "target", "uid")

    def __init__(self, data: bytes | None = None, target: str | None = None, error: int = 0) -> None:
        self.data = data
        self.target = target
        self.error = error
        self.rdev: tuple[int, int] | None = None
        self.size: int | None = None
        self.mode: int | None = None
        self.uid = 0
        # (device, inode) and time of last change, where a capture kept them.
        self.inode: tuple[int, int] | None = None
        self.modified: float | None = None
        # Offset -> bytes, of a file that was read in parts.
        self.parts: dict[int, bytes] = {}

    def bytes_at(self, offset: int, limit: int) -> bytes:
        """What reading there gives; what was not kept between two parts is zeros."""
        if not self.parts:
            data = self.data if self.data is not None else b""
            start = offset if offset >= 0 else max(0, len(data) + offset)
            return data[start : start + limit]
        size = self.size if self.size is not None else max(at + len(part) for at, part in self.parts.items())
        start = offset if offset >= 0 else max(0, size + offset)
        found = bytearray(max(0, min(limit, size - start)))
        for at, part in self.parts.items():
            first, last = max(at, start), min(at + len(part), start + len(found))
            if first < last:
                found[first - start : last - start] = part[first - at : last - at]
        return bytes(found)


def parse_archive(archive: bytes) -> dict[str, Entry | None]:
    """`tree.txt` -> path -> entry; None marks a path that is gone (in an overlay)."""
    entries: dict[str, Entry | None] = {}
    header: bytes | None = None
    content: list[bytes] = []
    for line in [*archive.splitlines(keepends=True), None]:
        if line is None or line.startswith(_MARK):
            if header is not None:
                path, entry = _parse_entry(header.decode(), b"".join(content))
                before = entries.get(path)
                if entry is not None and entry.parts and before is not None:
                    before.parts |= entry.parts
                else:
                    entries[path] = entry
            header, content = (line or b"")[len(_MARK) :].strip(), []
        else:
            content.append(line)
    return entries


def _parse_entry(header: str, content: bytes) -> tuple[str, Entry | None]:
    if " -> " in header:
        path, target = header.split(" -> ", 1)
        return _name(path), Entry(target=_name(target))
    path, *options = header.split(" ")
    path = _name(path)
    entry = Entry(data=content)
    for option in options:
        if option == "gone":
            return path, None
        if option.startswith("!"):
            entry = Entry(error=_error_number(option[1:], path))
        elif option == "dir":
            entry.data = None
        elif option == "escaped":
            text = content[:-1] if content.endswith(b"\n") else content
            entry.data = _unescaped(text)
        elif option == "base64":
            import base64

            entry.data = base64.b64decode(content)
        else:
            key, equals, value = option.partition("=")
            if not equals:
                raise ValueError(f"{path}: {option!r} is no option of an entry")
            _set_option(entry, key, value)
    if entry.parts:
        entry.parts = dict.fromkeys(entry.parts, entry.data if entry.data is not None else b"")
        entry.data = b""
    return path.rstrip("/"), entry


def _error_number(name: str, path: str) -> int:
    number: int | None = getattr(errno, name, None)
    if number is None:
        raise ValueError(f"{path}: no error is called {name!r}")
    return number


def _name(text: str) -> str:
    """A path of the archive with its escapes undone."""
    return text if "\\" not in text else os.fsdecode(_unescaped(os.fsencode(text)))


_ESCAPES = {b"0": b"\0", b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\"}


def _unescaped(text: bytes) -> bytes:
    """`\\0` `\\n` `\\t` `\\r` `\\\\` and `\\xff`; `\\032` is a NUL before 32, not an octal number."""
    first, *rest = text.replace(b"\\\\", b"\\x5c").split(b"\\")
    parts = [first]
    for part in rest:
        if part[:1] == b"x":
            parts.append(bytes([int(part[1:3], 16)]) + part[3:])
        else:
            parts.append(_ESCAPES[part[:1]] + part[1:])
    return b"".join(parts)


def _set_option(entry: Entry, key: str, value: str) -> None:
    if key == "rdev":
        major, minor = value.split(":")
        entry.rdev = (int(major), int(minor))
    elif key == "size":
        entry.size = int(value)
    elif key == "mode":
        entry.mode = int(value, 8)
    elif key == "uid":
        entry.uid = int(value)
    elif key == "inode":
        device, inode = value.split(":")
        entry.inode = (int(device), int(inode))
    elif key == "mtime":
        entry.modified = float(value)
    elif key == "at":
        entry.parts[int(value)] = b""
    else:
        raise ValueError(f"unknown option in a captured tree: {key}={value}")


class CapturedTree:
    """One of the three trees; `name` is its prefix in the archive."""

    def __init__(self, host: CapturedHost, name: str) -> None:
        self._host = host
        self._name = name

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        return self.read_at(path, 0, limit)

    def read_record(self, path: str) -> bytes:
        return self.read_at(path, 0, READ_LIMIT)

    def read_at(self, path: str, offset: int, limit: int) -> bytes:
        full, entry = self._find(path)
        if entry is None or entry.data is None:
            raise os_error(errno.EISDIR, full)
        self._host.opened.append(full)
        return entry.bytes_at(offset, limit)

    def listdir(self, path: str) -> list[str]:
        full, entry = self._find(path)
        if entry is not None and entry.data is not None:
            raise os_error(errno.ENOTDIR, full)
        return sorted(self._host.children.get(full, ()))

    def readlink(self, path: str) -> str:
        parent, _, leaf = path.rstrip("/").rpartition("/")
        full = f"{self._resolve(parent)}/{leaf}"
        entry = self._host.entries.get(full)
        if entry is None and full not in self._host.children:
            raise os_error(errno.ENOENT, full)
        if entry is not None and entry.error:
            raise os_error(entry.error, full)
        if entry is None or entry.target is None:
            raise os_error(errno.EINVAL, full)
        return entry.target

    def stat(self, path: str) -> Stat:
        full, entry = self._find(path)
        folder = entry is None or entry.data is None
        kind = stat.S_IFDIR if folder else stat.S_IFCHR if entry is not None and entry.rdev else stat.S_IFREG
        mode = entry.mode if entry is not None and entry.mode is not None else (0o555 if folder else 0o444)
        size = _size_of(entry, len(self._host.children.get(full, ())))
        if entry is None:
            return Stat(kind | mode, size, 0, 1, self._host.inode(full), None, self._host.wall_time())
        device, inode = entry.inode if entry.inode is not None else (1, self._host.inode(full))
        modified = entry.modified if entry.modified is not None else self._host.wall_time()
        return Stat(kind | mode, size, entry.uid, device, inode, entry.rdev, modified)

    def links(self, path: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        full, _ = self._find(path)
        for name in self.listdir(path):
            entry = self._host.entries.get(f"{full}/{name}")
            if entry is not None and entry.target is not None:
                found.append((name, entry.target))
        return found

    def real(self, path: str) -> str:
        full, _ = self._find(path)
        return full[len(self._name) + 1 :]

    def _find(self, path: str) -> tuple[str, Entry | None]:
        full = self._resolve(path)
        entry = self._host.entries.get(full)
        if entry is not None and entry.error:
            raise os_error(entry.error, full)
        if entry is None and full not in self._host.children:
            raise os_error(errno.ENOENT, full)
        return full, entry

    def _resolve(self, path: str) -> str:
        """Follow links component by component; an absolute target may lead into another tree."""
        tree = self._name
        done: list[str] = []
        todo = [part for part in path.split("/") if part and part != "."]
        hops = 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = done[:-1]
                continue
            here = "/".join([tree, *done, part])
            entry = self._host.entries.get(here)
            if entry is not None and entry.error:
                raise os_error(entry.error, here)
            if entry is None or entry.target is None:
                done.append(part)
                continue
            hops += 1
            if hops > _MAX_LINKS:
                raise os_error(errno.ELOOP, here)
            target = entry.target
            if target.startswith("/"):
                done = []
                tree, target = _tree_of(target)
            todo = [step for step in target.split("/") if step and step != "."] + todo
        return "/".join([tree, *done]) if done else tree


def _tree_of(target: str) -> tuple[str, str]:
    """`/sys/devices/x` -> (`sys`, `devices/x`); `/dev/dri/card0` -> (`root`, `dev/dri/card0`)."""
    for tree in ("proc", "sys"):
        if target.startswith(f"/{tree}/"):
            return tree, target[len(tree) + 2 :]
    return "root", target.lstrip("/")


def _size_of(entry: Entry | None, children: int) -> int:
    if entry is not None and entry.size is not None:
        return entry.size
    return children if entry is None or entry.data is None else len(entry.data)


def os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), "/" + path)
