"""The machine as an argument.

Everything that gpusnap learns from a machine comes through a `Host`. Two kinds implement it: `live.py` (this
machine) and `captured.py` (a folder that was kept: the tests' machines, `--replay`). Nothing else in the
package opens `/proc` or `/sys`, loads a driver library, starts a command or reads a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READ_LIMIT = 65536


class Stat(NamedTuple):
    """The parts of stat(2) that matter here; `rdev` is (major, minor) of a device node, else None."""

    mode: int
    size: int
    uid: int
    device: int
    inode: int
    rdev: tuple[int, int] | None
    modified: float


class CommandResult(NamedTuple):
    stdout: bytes
    stderr: bytes
    returncode: int


class HttpReply(NamedTuple):
    status: int
    body: bytes


class NvmlError(Exception):
    """NVML answered with an error: `code` is nvmlReturn_t, `name` its own spelling (`NVML_ERROR_GPU_IS_LOST`)."""

    def __init__(self, code: int, name: str, text: str = "") -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.code = code
        self.name = name


class NvmlUnavailable(Exception):
    """There is no NVML to ask: the library is missing, or nvmlInit failed.

    `status` is the backend row's word, `detail` says what was tried or found. `code` is nvmlInit's answer and
    `library` the real path of the library that was loaded (`.../libnvidia-ml.so.460.73.01`), where there was one.
    """

    def __init__(self, status: str, detail: str, code: int | None = None, library: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.library = library


# nvmlReturn_t of nvmlInit that says something else than "it is there and does not work".
_INIT_STATUS = {4: "denied", 10: "timeout", 12: "absent"}


def nvml_init_failed(code: int, name: str, library: str | None = None) -> NvmlUnavailable:
    return NvmlUnavailable(_INIT_STATUS.get(code, "failed"), name, code, library)


class Unsupported(Exception):
    """This kind of host has no such thing (PDH on Linux, an ioctl in a capture that holds none)."""


class Tree(Protocol):
    """A folder of the system that can be read: `proc`, `sys` or `root` (everything else, `/etc/passwd`).

    Paths are relative to the tree, without a leading slash: `host.proc.read("1/stat")`. Every method raises
    the OSError that the system gave.
    """

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """At most `limit` bytes of the file, one read where the kernel allows it."""

    def read_record(self, path: str) -> bytes:
        """A file that the kernel writes in one piece of less than a page (`/proc/PID/stat`): one read, no more."""

    def read_at(self, path: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` (a negative one counts from the end)."""

    def listdir(self, path: str) -> list[str]: ...

    def readlink(self, path: str) -> str: ...

    def stat(self, path: str) -> Stat:
        """Follows links."""

    def links(self, path: str) -> list[tuple[str, str]]:
        """(name, target) of every link in a folder, by one descriptor; links that vanish are left out."""

    def real(self, path: str) -> str:
        """The canonical path inside the tree, links resolved (`class/drm/card0/device` -> `devices/pci..`)."""


class Nvml(Protocol):
    """The NVIDIA Management Library behind plain values.

    `call` takes NVML's own function name and plain arguments: a device is named by its index as a string,
    `"0"`, a MIG partition by `"0/3"`. Structs come back as dictionaries under NVML's field names, strings as
    `str`, lists as lists. Bytes stay bytes, milliwatts stay milliwatts: the backend converts.
    """

    version: str | None
    """Version of the binding (nvidia-ml-py), or None where nothing says."""

    def call(self, function: str, *args: object) -> object:
        """Raises NvmlError for NVML's own answers, UnicodeDecodeError for a name that is not UTF-8."""

    def close(self) -> None: ...


class PerfCounter(Protocol):
    """An open performance counter; it counts from when it was opened."""

    def read(self) -> tuple[int, int]:
        """(value, nanoseconds for which it was enabled)."""

    def close(self) -> None: ...


class Host(Protocol):
    platform: str
    """linux | wsl | windows | macos"""

    @property
    def proc(self) -> Tree: ...

    @property
    def sys(self) -> Tree: ...

    @property
    def root(self) -> Tree: ...

    def nvml(self) -> Nvml:
        """An initialised NVML, the same one at each call; raises NvmlUnavailable."""

    def close_nvml(self) -> None:
        """Forget it: the next `nvml()` initialises anew, with the library that is installed by then."""

    def run(self, argv: Sequence[str], timeout: float, limit: int = 1 << 22) -> CommandResult:
        """A command without a shell. OSError when it can't start, TimeoutError when it took too long.

        One that says more than `limit` bytes is ended: OSError with EFBIG, since half an answer is none.
        """

    def raw(self, source: str, *args: object) -> Any:
        """What a library of this platform answered, as plain JSON values (each `live_*.py` says its form):

        `dcmi` (Huawei's libdcmi.so), `pdh` and `adapters` (Windows counters and graphics adapters), `boot` (when
        Windows started), `process PID` (psutil), `footprint PID` (a Mac's task ledger), `energy` (a Mac's energy
        counters). Unsupported: this platform has no such thing, or its library is not there; OSError: it refused.
        """

    def exists(self, path: str) -> bool:
        """Whether a device node or other absolute path is there, without opening it (`/dev/dxg`)."""

    def http_get(
        self, address: str, port: int, path: str, headers: Mapping[str, str], timeout: float, limit: int
    ) -> HttpReply:
        """One GET to a server on this machine's loopback interface (`127.0.0.1`, `::1`), never further.

        No redirect is followed, no proxy used; OSError (TimeoutError among them) when there is no whole answer
        of at most `limit` bytes within `timeout` seconds.
        """

    def drm_query(self, path: str, driver: str, query: int) -> bytes:
        """What i915's or xe's query ioctl fills in, asked on a node opened for just this call. OSError."""

    def perf_counter(self, pmu: int, config: int, cpu: int) -> PerfCounter:
        """A counter of a system-wide PMU, opened (perf_event_open(2)): OSError, or Unsupported."""

    def wall_time(self) -> float:
        """Seconds since 1970 (CLOCK_REALTIME)."""

    def uptime(self) -> float:
        """Seconds since boot, suspend included (CLOCK_BOOTTIME; `/proc/uptime` under another procfs)."""

    def sleep(self, seconds: float) -> None: ...

    def own_pid(self) -> int:
        """gpusnap's pid in the namespace of `proc` (NSpid under `--procfs`)."""

    def procfs_is_foreign(self) -> bool:
        """True under `--procfs`: `proc` shows another pid namespace's view, so names come from its root."""

    def pid_exists(self, pid: int) -> bool | None:
        """kill(pid, 0): True (EPERM too, which proves a process that hidepid hides), False, None: can't say."""

    def user_name(self, uid: int) -> str | None:
        """None: no such user; PermissionError where the user table can't be read."""

    def clock_ticks(self) -> int:
        """SC_CLK_TCK."""

    def page_size(self) -> int: ...

    def uname(self) -> Mapping[str, str | None]:
        """hostname, os (PRETTY_NAME), kernel, arch."""

    def environ(self) -> Mapping[str, str]:
        """gpusnap's own environment."""
