"""A machine that was kept in a folder: the tests' machines and what `--save-raw` wrote.

`tree.txt` holds the trees `proc`, `sys` and `root` as one text archive, because git on Windows can't hold
`0000:03:00.0`, because permissions can't be kept in files that root reads, and because a diff of it reads well:

    --- proc/4711/stat                        content follows, to the letter, until the next line `--- `
    --- proc/4711/cmdline escaped             one line with backslash escapes
    --- sys/x/gpu_metrics base64              binary
    --- proc/4711/fd/5 -> /dev/dri/renderD128 a link
    --- proc/99/fd !EACCES                    any access fails so
    --- proc/77/fd/ dir size=3                a folder; also rdev=226:128 mode=0640 uid=1000
    --- sys/y gone                            in `tree.2.txt`, which is laid over at the first sleep: removed

Beside it: `machine.json` (clocks, names), `nvml.json`, `commands.json`, `ioctls.json`, `perf.json`,
`http.json`; any may be missing.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

from gpusnap.host import (
    READ_LIMIT,
    CommandResult,
    HttpReply,
    NvmlError,
    NvmlUnavailable,
    Stat,
    Unsupported,
    nvml_init_failed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MARK = b"--- "
_MAX_LINKS = 40


class Entry:
    """One file, folder or link of the archive; `data` for files, `target` for links, `error` an errno."""

    __slots__ = ("data", "error", "mode", "rdev", "size", "target", "uid")

    def __init__(self, data: bytes | None = None, target: str | None = None, error: int = 0) -> None:
        self.data = data
        self.target = target
        self.error = error
        self.rdev: tuple[int, int] | None = None
        self.size: int | None = None
        self.mode: int | None = None
        self.uid = 0


def parse_archive(archive: bytes) -> dict[str, Entry | None]:
    """`tree.txt` -> path -> entry; None marks a path that is gone (in an overlay)."""
    entries: dict[str, Entry | None] = {}
    header: bytes | None = None
    content: list[bytes] = []
    for line in [*archive.splitlines(keepends=True), None]:
        if line is None or line.startswith(_MARK):
            if header is not None:
                path, entry = _parse_entry(header.decode(), b"".join(content))
                entries[path] = entry
            header, content = (line or b"")[len(_MARK) :].strip(), []
        else:
            content.append(line)
    return entries


def _parse_entry(header: str, content: bytes) -> tuple[str, Entry | None]:
    if " -> " in header:
        path, target = header.split(" -> ", 1)
        return path, Entry(target=target)
    path, *options = header.split(" ")
    entry = Entry(data=content)
    for option in options:
        if option == "gone":
            return path, None
        if option.startswith("!"):
            entry = Entry(error=getattr(errno, option[1:]))
        elif option == "dir":
            entry.data = None
        elif option == "escaped":
            text = content[:-1] if content.endswith(b"\n") else content
            entry.data = _unescaped(text)
        elif option == "base64":
            import base64

            entry.data = base64.b64decode(content)
        else:
            _set_option(entry, *option.split("=", 1))
    return path.rstrip("/"), entry


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
    else:
        raise ValueError(f"unknown option in a captured tree: {key}={value}")


class CapturedTree:
    """One of the three trees; `name` is its prefix in the archive."""

    def __init__(self, host: CapturedHost, name: str) -> None:
        self._host = host
        self._name = name

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        return self.read_at(path, 0, limit)

    def read_at(self, path: str, offset: int, limit: int) -> bytes:
        full, entry = self._find(path)
        if entry is None or entry.data is None:
            raise _os_error(errno.EISDIR, full)
        self._host.opened.append(full)
        start = offset if offset >= 0 else max(0, len(entry.data) + offset)
        return entry.data[start : start + limit]

    def listdir(self, path: str) -> list[str]:
        full, entry = self._find(path)
        if entry is not None and entry.data is not None:
            raise _os_error(errno.ENOTDIR, full)
        return sorted(self._host.children.get(full, ()))

    def readlink(self, path: str) -> str:
        parent, _, leaf = path.rstrip("/").rpartition("/")
        full = f"{self._resolve(parent)}/{leaf}"
        entry = self._host.entries.get(full)
        if entry is None and full not in self._host.children:
            raise _os_error(errno.ENOENT, full)
        if entry is not None and entry.error:
            raise _os_error(entry.error, full)
        if entry is None or entry.target is None:
            raise _os_error(errno.EINVAL, full)
        return entry.target

    def stat(self, path: str) -> Stat:
        full, entry = self._find(path)
        folder = entry is None or entry.data is None
        kind = stat.S_IFDIR if folder else stat.S_IFCHR if entry is not None and entry.rdev else stat.S_IFREG
        mode = entry.mode if entry is not None and entry.mode is not None else (0o555 if folder else 0o444)
        size = _size_of(entry, len(self._host.children.get(full, ())))
        uid = entry.uid if entry is not None else 0
        rdev = entry.rdev if entry is not None else None
        return Stat(kind | mode, size, uid, 1, self._host.inode(full), rdev, self._host.wall_time())

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
            raise _os_error(entry.error, full)
        if entry is None and full not in self._host.children:
            raise _os_error(errno.ENOENT, full)
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
                raise _os_error(entry.error, here)
            if entry is None or entry.target is None:
                done.append(part)
                continue
            hops += 1
            if hops > _MAX_LINKS:
                raise _os_error(errno.ELOOP, here)
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


def _os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), "/" + path)


class CapturedNvml:
    """Answers from `nvml.json`; a call that is not there is a function that the driver does not have."""

    def __init__(self, host: CapturedHost) -> None:
        self._host = host
        self.version: str | None = host.nvml_answers.get("version")

    def call(self, function: str, *args: object) -> object:
        calls = self._host.nvml_answers.get("calls", {})
        key = " ".join([function, *map(str, args)])
        if function == "nvmlDeviceGetProcessUtilization":  # its last argument is a time
            key = f"{function} {args[0]}"
        answer = calls.get(key, {"error": 13})
        if isinstance(answer, dict):
            if "error" in answer:
                code = int(answer["error"])
                raise NvmlError(code, NVML_NAMES.get(code, f"NVML_ERROR_{code}"))
            if "hex" in answer:
                return bytes.fromhex(answer["hex"]).decode()
        return answer

    def close(self) -> None:
        return None


# nvmlReturn_t as nvml.h spells it.
NVML_NAMES = {
    1: "NVML_ERROR_UNINITIALIZED",
    2: "NVML_ERROR_INVALID_ARGUMENT",
    3: "NVML_ERROR_NOT_SUPPORTED",
    4: "NVML_ERROR_NO_PERMISSION",
    6: "NVML_ERROR_NOT_FOUND",
    7: "NVML_ERROR_INSUFFICIENT_SIZE",
    8: "NVML_ERROR_INSUFFICIENT_POWER",
    9: "NVML_ERROR_DRIVER_NOT_LOADED",
    10: "NVML_ERROR_TIMEOUT",
    11: "NVML_ERROR_IRQ_ISSUE",
    12: "NVML_ERROR_LIBRARY_NOT_FOUND",
    13: "NVML_ERROR_FUNCTION_NOT_FOUND",
    14: "NVML_ERROR_CORRUPTED_INFOROM",
    15: "NVML_ERROR_GPU_IS_LOST",
    16: "NVML_ERROR_RESET_REQUIRED",
    17: "NVML_ERROR_OPERATING_SYSTEM",
    18: "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    19: "NVML_ERROR_IN_USE",
    20: "NVML_ERROR_MEMORY",
    21: "NVML_ERROR_NO_DATA",
    22: "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED",
    23: "NVML_ERROR_INSUFFICIENT_RESOURCES",
    24: "NVML_ERROR_FREQ_NOT_SUPPORTED",
    25: "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
    26: "NVML_ERROR_DEPRECATED",
    27: "NVML_ERROR_NOT_READY",
    28: "NVML_ERROR_GPU_NOT_FOUND",
    29: "NVML_ERROR_INVALID_STATE",
    999: "NVML_ERROR_UNKNOWN",
}


class CapturedCounter:
    """A performance counter whose value at each sample was kept."""

    def __init__(self, host: CapturedHost, values: list[int]) -> None:
        self._host = host
        self._values = values
        self._opened = host.uptime()

    def read(self) -> tuple[int, int]:
        value = self._values[min(self._host.step, len(self._values)) - 1]
        return value, round((self._host.uptime() - self._opened) * 1e9)

    def close(self) -> None:
        return None


class CapturedHost:
    """A `Host` over a kept folder; `opened` lists every file that was read, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[str] = []
        self.requests: list[str] = []
        self.entries: dict[str, Entry] = {}
        self.children: dict[str, set[str]] = {}
        self._inodes: dict[str, int] = {}
        self.step = 1
        self._machine = self._json("machine.json")
        self.nvml_answers = self._json("nvml.json")
        self._commands = self._json("commands.json")
        self._ioctls = self._json("ioctls.json")
        self._http = self._json("http.json")
        self._perf = self._json("perf.json")
        self._wall = float(self._machine.get("wall_time", 1_796_040_000.0))
        self._uptime = float(self._machine.get("uptime", 86_400.0))
        self.platform: str = self._machine.get("platform", "linux")
        self.proc = CapturedTree(self, "proc")
        self.sys = CapturedTree(self, "sys")
        self.root = CapturedTree(self, "root")
        if (folder / "tree.txt").exists():
            self.overlay(parse_archive((folder / "tree.txt").read_bytes()))

    def _json(self, name: str) -> dict[str, Any]:
        import json

        path = self.folder / name
        if not path.exists():
            return {}
        return json.loads(path.read_bytes())  # type: ignore[no-any-return]

    def overlay(self, entries: Mapping[str, Entry | None]) -> None:
        """Lay entries over the tree; None removes the path and everything below it."""
        for path, entry in entries.items():
            if entry is None:
                for known in [p for p in self.entries if p == path or p.startswith(path + "/")]:
                    del self.entries[known]
            else:
                self.entries[path] = entry
        self.children = {}
        for path in self.entries:
            below = path
            while "/" in below:
                parent, _, leaf = below.rpartition("/")
                siblings = self.children.setdefault(parent, set())
                if leaf in siblings:
                    break
                siblings.add(leaf)
                below = parent
        for tree in ("proc", "sys", "root"):
            self.children.setdefault(tree, set())

    def inode(self, path: str) -> int:
        return self._inodes.setdefault(path, len(self._inodes) + 1000)

    def nvml(self) -> CapturedNvml:
        if not self.nvml_answers:
            raise NvmlUnavailable("absent", "libnvidia-ml.so.1: not found")
        init = self.nvml_answers.get("init")
        if isinstance(init, dict):
            if "unavailable" in init:
                raise NvmlUnavailable(*init["unavailable"])
            code = int(init["error"])
            raise nvml_init_failed(code, NVML_NAMES[code], init.get("library"))
        return CapturedNvml(self)

    def run(self, argv: Sequence[str], timeout: float, limit: int = 1 << 22) -> CommandResult:
        answer = self._commands.get(" ".join(argv))
        if answer is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        if answer.get("timeout"):
            raise TimeoutError(f"{argv[0]}: no answer within {timeout} s")
        return CommandResult(
            str(answer.get("stdout", "")).encode()[:limit],
            str(answer.get("stderr", "")).encode()[:limit],
            int(answer.get("returncode", 0)),
        )

    def http_get(
        self,
        address: str,
        port: int,
        path: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ARG002 - a kept answer comes at once
        limit: int,
    ) -> HttpReply:
        """`http.json`: {"127.0.0.1:8080/props": {"status": 200, "body": {...} | "text"} | {"errno": "ETIMEDOUT"}}.

        Where an answer names `key`, it is given only with that bearer token, else 401. What was asked is kept in
        `requests`; nothing listens at any other address.
        """
        asked = f"{address}:{port}{path}"
        self.requests.append(asked)
        answer = self._http.get(asked, {"errno": "ECONNREFUSED"})
        if "errno" in answer:
            number = getattr(errno, answer["errno"])
            raise OSError(number, os.strerror(number), asked)  # OSError picks TimeoutError for ETIMEDOUT
        if "key" in answer and headers.get("Authorization") != f"Bearer {answer['key']}":
            return HttpReply(401, b"")
        body = answer.get("body", "")
        if not isinstance(body, str):
            import json

            body = json.dumps(body)
        data = body.encode()
        if len(data) > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), asked)
        return HttpReply(int(answer.get("status", 200)), data)

    def exists(self, path: str) -> bool:
        full = "root/" + path.lstrip("/")
        return full in self.entries or full in self.children

    def ioctl(self, path: str, request: int, data: bytes) -> bytes:  # noqa: ARG002 - one answer a request
        answer = self._ioctls.get(f"{path.lstrip('/')} {request:#x}")
        if answer is None:
            raise Unsupported(f"no such ioctl was kept: {path} {request:#x}")
        if "errno" in answer:
            raise _os_error(getattr(errno, answer["errno"]), path.lstrip("/"))
        return bytes.fromhex(answer["hex"])

    def drm_query(self, path: str, driver: str, query: int) -> bytes:
        """`ioctls.json`: `"dev/dri/renderD128 xe.query.1": {"hex": ...}`."""
        name = f"{path.lstrip('/')} {driver}.query.{query}"
        self.opened.append(f"root/{name}")
        answer = self._ioctls.get(name)
        if answer is None:
            raise Unsupported(f"no such query was kept: {name}")
        if "errno" in answer:
            raise _os_error(getattr(errno, answer["errno"]), path.lstrip("/"))
        return bytes.fromhex(answer["hex"])

    def perf_counter(self, pmu: int, config: int, cpu: int) -> CapturedCounter:  # noqa: ARG002 - kept for any CPU
        """`perf.json`: `"10 0x0": [value at the first sample, at the second]`, or `{"errno": "EACCES"}`."""
        answer = self._perf.get(f"{pmu} {config:#x}")
        if answer is None:
            raise Unsupported(f"no such counter was kept: {pmu} {config:#x}")
        if isinstance(answer, dict):
            raise _os_error(getattr(errno, answer["errno"]), "perf_event_open")
        self.opened.append(f"perf/{pmu} {config:#x}")
        return CapturedCounter(self, answer)

    def wall_time(self) -> float:
        return self._wall

    def uptime(self) -> float:
        return self._uptime

    def sleep(self, seconds: float) -> None:
        self._wall += seconds
        self._uptime += seconds
        self.step += 1
        path = self.folder / f"tree.{self.step}.txt"
        if path.exists():
            self.overlay(parse_archive(path.read_bytes()))
        later = self._json(f"nvml.{self.step}.json")
        if later:
            self.nvml_answers = {**self.nvml_answers, **later}
            self.nvml_answers["calls"] = {
                **self._json("nvml.json").get("calls", {}),
                **later.get("calls", {}),
            }

    def own_pid(self) -> int:
        return int(self._machine.get("own_pid", -1))

    def procfs_is_foreign(self) -> bool:
        return bool(self._machine.get("procfs_is_foreign", False))

    def pid_exists(self, pid: int) -> bool | None:
        if pid in self._machine.get("pids", ()):
            return True
        return str(pid) in self.children["proc"]

    def user_name(self, uid: int) -> str | None:
        name = self._machine.get("users", {}).get(str(uid))
        return None if name is None else str(name)

    def clock_ticks(self) -> int:
        return int(self._machine.get("clock_ticks", 100))

    def page_size(self) -> int:
        return int(self._machine.get("page_size", 4096))

    def uname(self) -> Mapping[str, str | None]:
        kept = self._machine.get("uname", {})
        return {key: kept.get(key) for key in ("hostname", "os", "kernel", "arch")}

    def environ(self) -> Mapping[str, str]:
        return dict(self._machine.get("environ", {}))
