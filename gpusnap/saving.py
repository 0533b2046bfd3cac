"""A host that remembers what it was asked and what it answered, so that `--save-raw DIR` can keep it.

Wraps any other host and changes nothing of what it says. What was read between two sleeps is one layer: the first
becomes `tree.txt` and `nvml.json`, the next `tree.2.txt` and `nvml.2.json`.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from gpusnap.host import CommandResult, HttpReply, NvmlError, NvmlUnavailable, Unsupported
from gpusnap.saving_tree import SavingTree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpusnap.captured_tree import Entry
    from gpusnap.host import Host, Nvml, PerfCounter


class Layer:
    """What was read between two sleeps."""

    def __init__(self) -> None:
        # None: was there in the layer before, and is gone.
        self.entries: dict[str, Entry | None] = {}
        self.nvml: dict[str, object] = {}
        self.raw: dict[str, object] = {}
        self.commands: dict[str, object] = {}
        self.ioctls: dict[str, object] = {}
        self.http: dict[str, object] = {}


class SavingNvml:
    def __init__(self, host: SavingHost, inner: Nvml) -> None:
        self._host = host
        self._inner = inner
        self.version: str | None = inner.version

    def call(self, function: str, *args: object) -> object:
        key = " ".join([function, *map(str, args)])
        if function == "nvmlDeviceGetProcessUtilization":  # its last argument is a time
            key = f"{function} {args[0]}"
        try:
            answer = self._inner.call(function, *args)
        except NvmlError as error:
            self._host.layer.nvml[key] = {"error": error.code}
            raise
        except UnicodeDecodeError as error:
            self._host.layer.nvml[key] = {"hex": bytes(error.object).hex()}
            raise
        self._host.layer.nvml[key] = answer
        return answer

    def close(self) -> None:
        self._inner.close()


class SavingCounter:
    """Keeps the value at each layer."""

    def __init__(self, host: SavingHost, key: str, inner: PerfCounter) -> None:
        self._host = host
        self._inner = inner
        self._values: dict[int, int] = {}
        host.perf[key] = self._values

    def read(self) -> tuple[int, int]:
        value, enabled = self._inner.read()
        self._values[len(self._host.layers)] = value
        return value, enabled

    def close(self) -> None:
        self._inner.close()


class SavingHost:
    """A `Host` around another one."""

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self.layers = [Layer()]
        self.perf: dict[str, dict[int, int] | dict[str, str]] = {}
        self.platform = inner.platform
        self.proc = SavingTree(self, "proc", inner.proc)
        self.sys = SavingTree(self, "sys", inner.sys)
        self.root = SavingTree(self, "root", inner.root)
        self.nvml_init: object = None
        self.nvml_version: str | None = None
        self.nvml_asked = False
        self.users: dict[int, str | None] = {}
        self.alive: set[int] = set()
        self.existing: set[str] = set()
        self.started = (inner.wall_time(), inner.uptime())

    @property
    def layer(self) -> Layer:
        return self.layers[-1]

    def is_known(self, place: str) -> bool:
        """Whether the last layer that says anything of the place says that it is there."""
        for layer in reversed(self.layers):
            if place in layer.entries:
                return layer.entries[place] is not None
        return any(path.startswith(place + "/") for layer in self.layers for path in layer.entries)

    def children(self, place: str) -> set[str]:
        """What earlier layers hold directly below the place and later ones have not taken away."""
        found: set[str] = set()
        prefix = place + "/"
        for layer in self.layers[:-1]:
            for path, entry in layer.entries.items():
                if path.startswith(prefix):
                    name, _, below = path[len(prefix) :].partition("/")
                    if entry is None and not below:
                        found.discard(name)
                    else:
                        found.add(name)
        return found

    def nvml(self) -> SavingNvml:
        self.nvml_asked = True
        try:
            inner = self._inner.nvml()
        except NvmlUnavailable as missing:
            self.nvml_init = {"unavailable": [missing.status, missing.detail, missing.code, missing.library]}
            raise
        self.nvml_version = inner.version
        return SavingNvml(self, inner)

    def close_nvml(self) -> None:
        self._inner.close_nvml()

    def run(self, argv: Sequence[str], timeout: float, limit: int = 1 << 22) -> CommandResult:
        key = " ".join(argv)
        try:
            answer = self._inner.run(argv, timeout, limit)
        except TimeoutError:
            self.layer.commands[key] = {"timeout": True}
            raise
        self.layer.commands[key] = {
            "stdout": answer.stdout.decode("utf-8", "surrogateescape"),
            "stderr": answer.stderr.decode("utf-8", "surrogateescape"),
            "returncode": answer.returncode,
        }
        return answer

    def http_get(
        self, address: str, port: int, path: str, headers: Mapping[str, str], timeout: float, limit: int
    ) -> HttpReply:
        asked = f"{address}:{port}{path}"
        try:
            reply = self._inner.http_get(address, port, path, headers, timeout, limit)
        except OSError as error:
            self.layer.http[asked] = {"errno": errno.errorcode.get(error.errno or errno.EIO, "EIO")}
            raise
        self.layer.http[asked] = {"status": reply.status, "body": reply.body.decode("utf-8", "replace")}
        return reply

    def raw(self, source: str, *args: object) -> Any:
        key = " ".join([source, *map(str, args)])
        try:
            answer = self._inner.raw(source, *args)
        except Unsupported as missing:
            self.layer.raw[key] = {"unsupported": str(missing)}
            raise
        except OSError as error:
            self.layer.raw[key] = {"errno": errno.errorcode.get(error.errno or errno.EIO, "EIO")}
            raise
        self.layer.raw[key] = answer
        return answer

    def exists(self, path: str) -> bool:
        found = self._inner.exists(path)
        if found:
            self.existing.add(path)
        return found

    def drm_query(self, path: str, driver: str, query: int) -> bytes:
        key = f"{path.lstrip('/')} {driver}.query.{query}"
        return self._kept_ioctl(key, lambda: self._inner.drm_query(path, driver, query))

    def _kept_ioctl(self, key: str, ask: Callable[[], bytes]) -> bytes:
        try:
            answer = ask()
        except OSError as error:
            self.layer.ioctls[key] = {"errno": errno.errorcode.get(error.errno or errno.EIO, "EIO")}
            raise
        self.layer.ioctls[key] = {"hex": answer.hex()}
        return answer

    def perf_counter(self, pmu: int, config: int, cpu: int) -> PerfCounter:
        key = f"{pmu} {config:#x}"
        try:
            inner = self._inner.perf_counter(pmu, config, cpu)
        except OSError as error:
            self.perf[key] = {"errno": errno.errorcode.get(error.errno or errno.EIO, "EIO")}
            raise
        return SavingCounter(self, key, inner)

    def wall_time(self) -> float:
        return self._inner.wall_time()

    def uptime(self) -> float:
        return self._inner.uptime()

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)
        self.layers.append(Layer())

    def own_pid(self) -> int:
        return self._inner.own_pid()

    def procfs_is_foreign(self) -> bool:
        return self._inner.procfs_is_foreign()

    def pid_exists(self, pid: int) -> bool | None:
        found = self._inner.pid_exists(pid)
        if found:
            self.alive.add(pid)
        return found

    def user_name(self, uid: int) -> str | None:
        name = self._inner.user_name(uid)
        self.users[uid] = name
        return name

    def clock_ticks(self) -> int:
        return self._inner.clock_ticks()

    def page_size(self) -> int:
        return self._inner.page_size()

    def uname(self) -> Mapping[str, str | None]:
        return self._inner.uname()

    def environ(self) -> Mapping[str, str]:
        return self._inner.environ()
