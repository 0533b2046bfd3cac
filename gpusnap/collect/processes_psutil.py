"""What gpusnap says of a process on Windows and macOS, from psutil's plain answers (`live_psutil.py`).

The same methods and leaves as `processes.ProcessTable`. A process is told by its pid and its creation time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap.collect.process_files import shown_words
from gpusnap.collect.processes import FACT_LEAVES
from gpusnap.collect.redact import redact
from gpusnap.host import Unsupported
from gpusnap.reading import Reading, computed, measured, null
from gpusnap.text import clean
from gpusnap.timefmt import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_STATES = {
    "running": "running",
    "sleeping": "sleeping",
    "idle": "sleeping",
    "waking": "sleeping",
    "disk-sleep": "disk-sleep",
    "stopped": "stopped",
    "zombie": "zombie",
    "dead": "dead",
}
_NONE = null("none")
_ONE_SAMPLE = null("needs-two-samples")
_HERE = measured("host", "psutil")
# Windows' "System Idle Process" and "System"; 0 is kernel_task on a Mac.
_KERNEL = {"windows": (0, 4), "macos": (0,)}


class PsutilTable:
    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._cmdline = options.cmdline
        self._own_pid = host.own_pid()
        self._rows: dict[int, dict[str, Reading]] = {}
        self._words: dict[int, list[str]] = {}
        # pid -> (creation time, CPU seconds, uptime) at the last sample
        self._cpu: dict[int, tuple[float, float, float]] = {}
        self._now: float | None = None

    def begin_sample(self) -> None:
        self._rows = {}
        self._words = {}
        self._now = None

    def prime(self, pids: Iterable[int]) -> None:
        for pid in pids:
            self._row(pid)

    def facts(
        self,
        pid: int,
        pid_space: str,  # noqa: ARG002 - there is one numbering
        holds_gpu_file: Callable[[int], bool | None],  # noqa: ARG002
    ) -> dict[str, Reading]:
        return self._row(pid)

    def raw_words(self, pid: int) -> list[str]:
        return self._words.get(pid, [])

    def is_kernel_thread(self, pid: int) -> bool:
        return pid in _KERNEL.get(self._host.platform, ())

    def _row(self, pid: int) -> dict[str, Reading]:
        row = self._rows.get(pid)
        if row is None:
            row = self._rows[pid] = self._read(pid)
        return row

    def _read(self, pid: int) -> dict[str, Reading]:
        try:
            raw = self._host.raw("process", pid)
        except ProcessLookupError:
            return self._nobody(null("exited"))
        except PermissionError:
            return self._nobody(null("no-permission", "psutil"))
        except (Unsupported, OSError) as error:
            return self._nobody(null("failed", clean(str(error), 100)))
        return self._described(pid, raw)

    def _described(self, pid: int, raw: dict[str, Any]) -> dict[str, Reading]:
        row = dict.fromkeys(FACT_LEAVES, _NONE)
        created = float(raw["create_time"])
        row["pid_namespace"] = _HERE
        row["self"] = measured(pid == self._own_pid, "os.getpid")
        row["start_ticks"] = measured(round(created * 1_000_000), "psutil.create_time")
        row["started_at"] = computed(rfc3339(created), "psutil.create_time")
        for leaf in ("ppid", "name", "exe", "cwd"):
            row[leaf] = _value(raw.get(leaf), leaf)
        row["user"] = _value(raw.get("username"), "username")
        row["uid"] = _value(raw.get("uid"), "uids")
        row["rss_bytes"] = _value(raw.get("rss"), "memory_info")
        state = _value(raw.get("status"), "status")
        row["state"] = state if state.value is None else _state(str(state.value))
        row["cmdline"] = self._command(pid, raw.get("cmdline"))
        row["cpu_percent"] = self._cpu_percent(pid, created, raw.get("cpu_seconds"))
        return row

    def _command(self, pid: int, words: Any) -> Reading:
        if not isinstance(words, list):
            return _value(words, "cmdline")
        self._words[pid] = [str(word) for word in words]
        if self._cmdline == "none":
            return null("not-requested", "--cmdline none")
        return measured(
            shown_words(self._words[pid], list if self._cmdline == "full" else redact), "psutil.cmdline"
        )

    def _cpu_percent(self, pid: int, created: float, seconds: Any) -> Reading:
        """100 is one core."""
        spent = _value(seconds, "cpu_times")
        if not isinstance(spent.value, int | float):
            return spent
        if self._now is None:
            self._now = self._host.uptime()
        before, self._cpu[pid] = self._cpu.get(pid), (created, float(spent.value), self._now)
        if before is None or before[0] != created or self._now <= before[2]:
            return _ONE_SAMPLE
        used = float(spent.value) - before[1]
        if used < 0:
            return null("out-of-range", f"CPU time fell by {-used:g} s")
        return computed(round(100 * used / (self._now - before[2]), 1), "psutil.cpu_times")

    def _nobody(self, reason: Reading) -> dict[str, Reading]:
        row = dict.fromkeys(FACT_LEAVES, reason)
        row["pid_namespace"] = _HERE
        row["self"] = measured(False, "os.getpid")
        return row


def _value(value: Any, name: str) -> Reading:
    if isinstance(value, dict):
        said = str(value.get("error"))
        if said == "access-denied":
            return null("no-permission", f"psutil.{name}")
        return null("exited") if said == "gone" else null("failed", clean(f"psutil.{name}: {said}", 100))
    if value is None or value == "":
        return _NONE
    return measured(clean(value) if isinstance(value, str) else value, f"psutil.{name}")


def _state(word: str) -> Reading:
    known = _STATES.get(word)
    return (
        null("unknown-format", f"status {clean(word, 20)}") if known is None else measured(known, "psutil.status")
    )
