"""This machine as a `Host`: the only module that opens its files, runs its commands and reads its clocks."""

from __future__ import annotations

import errno
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from gpusnap.host import READ_LIMIT, Stat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.host import CommandResult, HttpReply, Nvml, PerfCounter

_PART = 1 << 18  # a read allocates what it asks for, however little comes
_PAGE = 4096
_MAX_RECORDS = 256
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_FLAGS = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT"):  # the last two are Windows'
    _FLAGS |= getattr(os, _flag, 0)


_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin")


class LiveTree:
    """A folder of this machine; `base` ends in `/`."""

    __slots__ = ("_records", "base")

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/") + "/" if base else ""
        # Descriptors of records: they stay with their process, and reading one again costs half of opening it.
        self._records: dict[str, int] = {}

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        fd = os.open(self.base + path, _FLAGS)
        try:
            data = os.read(fd, min(limit, _PART))
            left = limit - len(data)
            # Files below /proc answer in parts; an empty read is the end.
            if not data or left <= 0 or not (more := os.read(fd, min(left, _PART))):
                return data
            parts = [data, more]
            left -= len(more)
            while left > 0 and (more := os.read(fd, min(left, _PART))):
                parts.append(more)
                left -= len(more)
        finally:
            os.close(fd)
        return b"".join(parts)

    def read_record(self, path: str) -> bytes:
        fd = self._records.get(path)
        if fd is not None:
            try:
                return os.pread(fd, _PAGE, 0)
            except OSError:  # its process is gone: the number may be another's by now
                os.close(self._records.pop(path))
        fd = os.open(self.base + path, _FLAGS)
        if len(self._records) >= _MAX_RECORDS:
            self._forget_records()
        self._records[path] = fd
        return os.read(fd, _PAGE)

    def _forget_records(self) -> None:
        """Some are of processes that nobody asks for any more."""
        for fd in self._records.values():
            os.close(fd)
        self._records.clear()

    def read_at(self, path: str, offset: int, limit: int) -> bytes:
        fd = os.open(self.base + path, _FLAGS)
        try:
            if offset < 0:
                offset = max(0, os.fstat(fd).st_size + offset)
            data = b""
            os.lseek(fd, offset, os.SEEK_SET)  # Windows has no pread(2)
            while len(data) < limit:
                more = os.read(fd, limit - len(data))
                if not more:
                    break
                data += more
        finally:
            os.close(fd)
        return data

    def listdir(self, path: str) -> list[str]:
        return os.listdir(self.base + path)

    def readlink(self, path: str) -> str:
        return os.readlink(self.base + path)

    def stat(self, path: str) -> Stat:
        found = os.stat(self.base + path)
        rdev = (os.major(found.st_rdev), os.minor(found.st_rdev)) if found.st_rdev else None
        return Stat(
            found.st_mode,
            found.st_size,
            found.st_uid,
            found.st_dev,
            found.st_ino,
            rdev,
            found.st_mtime,
        )

    def links(self, path: str) -> list[tuple[str, str]]:
        if os.readlink not in os.supports_dir_fd:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path)
        fd = os.open(self.base + path, os.O_RDONLY | _DIRECTORY)
        found: list[tuple[str, str]] = []
        readlink = os.readlink
        try:
            for name in os.listdir(fd):
                try:
                    found.append((name, readlink(name, dir_fd=fd)))
                except OSError:  # closed meanwhile
                    continue
        finally:
            os.close(fd)
        return found

    def real(self, path: str) -> str:
        resolved = os.path.realpath(self.base + path, strict=True)
        base = os.path.realpath(self.base)
        return os.path.relpath(resolved, base)


def _place_of(command: str) -> str:
    """cron's PATH is `/usr/bin:/bin`: ioreg, sysctl and npu-smi stand elsewhere."""
    if os.sep in command:
        return command
    known = os.environ.get("PATH", "").split(os.pathsep)
    for folder in (*known, *_SYSTEM_FOLDERS):
        path = os.path.join(folder, command)
        if folder and os.access(path, os.X_OK):
            return path
    return command


class LiveHost:
    """`procfs` and `sysfs` may name folders that a container mounted from its host."""

    def __init__(self, procfs: str | None = None, sysfs: str | None = None) -> None:
        self._procfs = (procfs or "/proc").rstrip("/") or "/"
        self.proc = LiveTree(self._procfs)
        self.sys = LiveTree(sysfs or "/sys")
        # Paths below it come without their leading slash; on Windows they begin with a drive.
        self.root = LiveTree("" if sys.platform == "win32" else "/")
        self.platform = self._platform()
        self._nvml: Nvml | None = None
        self._users: dict[int, str | None] = {}
        self._raw_state: dict[str, object] = {}

    def _platform(self) -> str:
        if sys.platform == "win32":
            return "windows"
        if sys.platform == "darwin":
            return "macos"
        if os.path.exists("/dev/dxg"):
            return "wsl"
        return "linux"

    def nvml(self) -> Nvml:
        if self._nvml is None:
            from gpusnap.live_nvml import open_nvml

            self._nvml = open_nvml()
        return self._nvml

    def close_nvml(self) -> None:
        """A library that an update replaced meanwhile is let go too (shine-cluster#30)."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def run(self, argv: Sequence[str], timeout: float, limit: int = 1 << 22) -> CommandResult:
        from gpusnap.live_run import run_command

        return run_command([_place_of(argv[0]), *argv[1:]], timeout, limit)

    def http_get(
        self, address: str, port: int, path: str, headers: Mapping[str, str], timeout: float, limit: int
    ) -> HttpReply:
        from gpusnap.live_http import http_get

        return http_get(address, port, path, headers, timeout, limit)

    def raw(self, source: str, *args: object) -> Any:
        from gpusnap.live_raw import ask

        return ask(self._raw_state, source, *args)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def drm_query(self, path: str, driver: str, query: int) -> bytes:
        from gpusnap.live_kernel import drm_query

        return drm_query(path, driver, query)

    def perf_counter(self, pmu: int, config: int, cpu: int) -> PerfCounter:
        from gpusnap.live_kernel import open_perf_counter

        return open_perf_counter(pmu, config, cpu)

    def wall_time(self) -> float:
        return time.time()

    def uptime(self) -> float:
        if self.procfs_is_foreign():
            return float(self.proc.read("uptime").split()[0])
        clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC_RAW", None))
        return time.monotonic() if clock is None else time.clock_gettime(clock)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def own_pid(self) -> int:
        """The link `self` of a procfs mount names the reader in that mount's own pid namespace."""
        if not self.procfs_is_foreign():
            return os.getpid()
        try:
            return int(self.proc.readlink("self"))
        except (OSError, ValueError):  # a copied tree: no reader of it is in it
            return -1

    def procfs_is_foreign(self) -> bool:
        return self._procfs != "/proc"

    def pid_exists(self, pid: int) -> bool | None:
        if self.procfs_is_foreign() or sys.platform == "win32":
            return None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        except (OSError, OverflowError):
            return None
        return True

    def user_name(self, uid: int) -> str | None:
        if uid not in self._users:
            try:
                import pwd
            except ImportError as missing:
                raise PermissionError(errno.EACCES, "no user table on this platform") from missing
            try:
                self._users[uid] = pwd.getpwuid(uid).pw_name
            except KeyError:
                self._users[uid] = None
        return self._users[uid]

    def clock_ticks(self) -> int:
        return os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 1

    def page_size(self) -> int:
        return os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def uname(self) -> Mapping[str, str | None]:
        if hasattr(os, "uname"):
            names = os.uname()
            return {
                "hostname": names.nodename,
                "os": self._os_name(),
                "kernel": names.release,
                "arch": names.machine,
            }
        import platform

        return {
            "hostname": platform.node(),
            "os": platform.platform(),
            "kernel": platform.version(),
            "arch": platform.machine(),
        }

    def _os_name(self) -> str | None:
        """PRETTY_NAME of os-release(5); `macOS 15.7`."""
        if sys.platform == "darwin":
            import platform

            return f"macOS {platform.mac_ver()[0]}"
        for path in ("etc/os-release", "usr/lib/os-release"):
            try:
                text = self.root.read(path).decode("utf-8", "replace")
            except OSError:
                continue
            for line in text.splitlines():
                if line.startswith("PRETTY_NAME="):
                    return line[12:].strip("\"'")
        return None

    def environ(self) -> Mapping[str, str]:
        return os.environ
