"""What gpusnap says of a process: the leaves of the contract's `processes[]` that are about the process itself.

Linux and WSL: everything is read from `/proc` by hand (psutil costs 35 ms of import and translates its errors
unevenly: gpustat#95, psutil#2026). Windows and macOS have another table with the same methods; `open_table`
picks it.

The collector keeps one table for the whole run and calls

    table.begin_sample()                            once before each sample
    table.facts(pid, pid_space, holds_gpu_file)     for each row; at most one read of `stat` a pid and sample
    table.raw_words(pid), table.is_kernel_thread(pid)

`facts` gives a reading for each of FACT_LEAVES. The dictionary is kept for the sample
and must not be changed. What does not change while a process lives is read once per (pid, start ticks), again
when `comm` changes (execve) and every 60 samples.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Protocol

from gpusnap.collect.cgroup import CGROUP_LEAVES
from gpusnap.collect.pid_namespace import sees_host_pids
from gpusnap.collect.process_files import ProcessFiles
from gpusnap.collect.procfs import PF_KTHREAD, STATES, parse_stat
from gpusnap.reading import Reading, computed, measured, null
from gpusnap.timefmt import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

FACT_LEAVES = (
    "pid_namespace",
    "start_ticks",
    "started_at",
    "ppid",
    "name",
    "exe",
    "cmdline",
    "cwd",
    "uid",
    "user",
    "state",
    *CGROUP_LEAVES,
    "self",
    "cpu_percent",
    "rss_bytes",
)
REFRESH_SAMPLES = 60

_NAMESPACES = {name: measured(name, "proc.ns") for name in ("host", "container", "unknown")}
_STATE_READINGS = {letter: measured(word, "proc.stat") for letter, word in STATES.items()}
_ONE_SAMPLE = null("needs-two-samples")
_IDLE = computed(0.0, "proc.stat")


class _Known:
    """A process that was met: its fixed facts and the counters of its last sample."""

    __slots__ = ("age", "believed", "comm", "cpu", "kernel", "raw", "row", "sample", "start", "words")

    def __init__(self, start: int, comm: bytes, fixed: dict[str, Reading], words: list[str]) -> None:
        self.start = start
        self.comm = comm
        # The facts as of its last sample; never changed, another one takes its place.
        self.row = fixed
        self.words = words
        self.kernel = False
        # `stat` as it was read last.
        self.raw = b""
        self.age = 0
        self.sample = 0
        # (CPU ticks, uptime) at its last sample.
        self.cpu: tuple[int, float] | None = None
        # holds_gpu_file's answer, once it was asked: [answer].
        self.believed: list[bool | None] = []

    def update(self, state: Reading, ppid: int, rss: int, cpu: Reading) -> None:
        """What may differ from sample to sample. A reading that says the same as before stays the same object."""
        before = self.row
        row = {
            **before,
            "state": state,
            "ppid": _kept(before.get("ppid"), ppid),
            "rss_bytes": _kept(before.get("rss_bytes"), rss),
            "cpu_percent": cpu,
        }
        self.row = row


def _kept(before: Reading | None, value: int) -> Reading:
    return before if before is not None and before.value == value else Reading(value, "measured:proc.stat")


class Table(Protocol):
    """What the collector asks of a platform's processes; `ProcessTable` says what each method promises."""

    def begin_sample(self) -> None: ...

    def prime(self, pids: Iterable[int]) -> None: ...

    def facts(
        self, pid: int, pid_space: str, holds_gpu_file: Callable[[int], bool | None]
    ) -> dict[str, Reading]: ...

    def raw_words(self, pid: int) -> list[str]: ...

    def is_kernel_thread(self, pid: int) -> bool: ...


def open_table(host: Host, options: CollectOptions) -> Table:
    """The table for this platform: Windows and macOS have no `/proc`."""
    if host.platform in ("windows", "macos"):
        from gpusnap.collect.processes_psutil import PsutilTable

        return PsutilTable(host, options)
    return ProcessTable(host, options)


class ProcessTable:
    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._files = ProcessFiles(host, options)
        self._sees_host_pids = sees_host_pids(host)
        self._own_pid = host.own_pid()
        self._ticks = host.clock_ticks()
        self._page = host.page_size()
        self._boot_wall = host.wall_time() - host.uptime() + self._files.boot_offset_seconds
        self._known: dict[int, _Known] = {}
        self._rows: dict[int, dict[str, Reading] | Reading] = {}
        self._sample = 1
        self._now: float | None = None

    def begin_sample(self) -> None:
        """Forget the last sample's rows, and the processes that it did not name."""
        for pid in [pid for pid, known in self._known.items() if known.sample < self._sample]:
            del self._known[pid]
        self._rows = {}
        self._sample += 1
        self._now = None

    def prime(self, pids: Iterable[int]) -> None:
        """Read the CPU counters of these pids: the first of the two samples that cpu_percent needs."""
        for pid in pids:
            self._row(pid)

    def facts(self, pid: int, pid_space: str, holds_gpu_file: Callable[[int], bool | None]) -> dict[str, Reading]:
        """`pid_space`: "here" (read from `proc`) or "driver" (the driver's own numbers, the host's)."""
        row = self._row(pid)
        if self._sees_host_pids:
            return self._null_row(row, "host") if isinstance(row, Reading) else row
        here = "container" if self._sees_host_pids is False else "unknown"
        if pid_space == "here":
            return self._null_row(row, here) if isinstance(row, Reading) else row
        if self._host.platform == "wsl":  # Windows' number, or another guest's (nvitop#49, wslg#919)
            return self._null_row(null("other-pid-namespace", "WSL"), "unknown")
        believed = not isinstance(row, Reading) and self._believes(pid, holds_gpu_file)
        if isinstance(row, Reading) or believed is False:
            return self._null_row(null("other-pid-namespace"), "host")
        return row if believed else {**row, "pid_namespace": _NAMESPACES["unknown"]}

    def raw_words(self, pid: int) -> list[str]:
        """argv as it is, secrets included: for model detection, never for the document. [] of a stranger."""
        known = self._known.get(pid)
        return [] if known is None or known.believed[:1] == [False] else known.words

    def is_kernel_thread(self, pid: int) -> bool:
        known = self._known.get(pid)
        return known is not None and known.kernel

    def _believes(self, pid: int, holds_gpu_file: Callable[[int], bool | None]) -> bool | None:
        """An unreadable fd folder (None) never takes a name away."""
        known = self._known[pid]
        if not known.believed:
            known.believed = [holds_gpu_file(pid)]
        return known.believed[0]

    def _row(self, pid: int) -> dict[str, Reading] | Reading:
        """This sample's facts of whoever has this number in `proc`, or why there are none."""
        row = self._rows.get(pid)
        if row is None:
            row = self._rows[pid] = self._read(pid)
        return row

    def _read(self, pid: int) -> dict[str, Reading] | Reading:
        try:
            raw = self._host.proc.read_record(f"{pid}/stat")
            known = self._known.get(pid)
            if known is not None and known.raw == raw and known.age < REFRESH_SAMPLES:
                return self._unchanged(known)
            comm, letter, ppid, _, cpu_ticks, start, pages = parse_stat(raw)
            if known is None or known.start != start or known.comm != comm or known.age >= REFRESH_SAMPLES:
                known = self._meet(pid, raw)
        except OSError as error:
            return self._absent(pid, error)
        except (ValueError, IndexError):
            return null("unknown-format", "proc.stat")
        known.age += 1
        known.sample = self._sample
        state = _STATE_READINGS.get(letter)
        if state is None:
            state = null("unknown-format", f"state {letter}")
        cpu = self._cpu_percent(known, cpu_ticks)
        known.update(state, ppid, pages * self._page, cpu)
        known.raw = raw
        return known.row

    def _unchanged(self, known: _Known) -> dict[str, Reading]:
        """A process that slept since the last sample: `stat` is the same to the byte, only time went on."""
        known.age += 1
        known.sample = self._sample
        cpu = self._cpu_percent(known, None)
        if cpu is not known.row["cpu_percent"]:
            known.row = {**known.row, "cpu_percent": cpu}
        return known.row

    def _meet(self, pid: int, raw: bytes) -> _Known:
        """Read the fixed facts; a number that changed hands meanwhile is read again (collectd#3773)."""
        for _ in range(3):
            comm, letter, _, flags, _, start, _ = parse_stat(raw)
            kernel = bool(flags & PF_KTHREAD)
            fixed, words = self._files.read(pid, comm, kernel=kernel, zombie=letter == "Z")
            try:
                raw = self._host.proc.read_record(f"{pid}/stat")
            except (FileNotFoundError, ProcessLookupError):
                break  # gone, but what was read was its own
            if parse_stat(raw)[5] == start:
                break
        else:
            raise ProcessLookupError(errno.ESRCH, "the number changes hands too fast")
        ticks = start - self._files.boot_offset_ticks(self._ticks)
        fixed["start_ticks"] = measured(ticks, "proc.stat")
        fixed["started_at"] = computed(rfc3339(self._boot_wall + ticks / self._ticks), "proc.stat+clock")
        fixed["self"] = measured(pid == self._own_pid, "proc.self")
        here = "unknown" if self._sees_host_pids is None else "host" if self._sees_host_pids else "container"
        fixed["pid_namespace"] = _NAMESPACES[here]
        known = _Known(start, comm, fixed, words)
        known.kernel = kernel
        before = self._known.get(pid)
        if before is not None and before.start == start:
            known.cpu = before.cpu
        self._known[pid] = known
        return known

    def _cpu_percent(self, known: _Known, cpu_ticks: int | None) -> Reading:
        """100 is one core, as in top(1); a process of many threads has more. None: the ticks of last time."""
        if self._now is None:
            self._now = self._host.uptime()
        before = known.cpu
        if cpu_ticks is None:
            cpu_ticks = 0 if before is None else before[0]
        known.cpu = (cpu_ticks, self._now)
        if before is None or self._now <= before[1]:
            return _ONE_SAMPLE
        spent = (cpu_ticks - before[0]) / self._ticks
        if spent == 0:
            return _IDLE
        if spent < 0:
            return null("out-of-range", f"CPU time fell by {-spent:g} s")
        return Reading(round(100 * spent / (self._now - before[1]), 1), "computed:proc.stat")

    def _absent(self, pid: int, error: OSError) -> Reading:
        if isinstance(error, PermissionError):  # hidepid=1 answers EPERM, a security module EACCES
            hides = error.errno == errno.EPERM
            return null("no-permission", "hidepid" if hides else "EACCES proc.stat")
        if not isinstance(error, FileNotFoundError | ProcessLookupError):
            return null("failed", f"{errno.errorcode.get(error.errno or 0, 'error')} proc.stat")
        # hidepid=2 hides what is alive; only kill(pid, 0) tells it from what has exited (telegraf#15698).
        if self._host.pid_exists(pid) or (self._host.procfs_is_foreign() and self._hides_pid_1()):
            return null("no-permission", "hidepid")
        return null("exited")

    def _hides_pid_1(self) -> bool:
        try:
            self._host.proc.read("1/stat")
        except OSError:
            return True
        return False

    def _null_row(self, reason: Reading, namespace: str) -> dict[str, Reading]:
        row = dict.fromkeys(FACT_LEAVES, reason)
        row["pid_namespace"] = _NAMESPACES[namespace]
        row["self"] = measured(False, "proc.self")
        return row
