"""Samples one after the other: take, number, append, wait."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gpusnap.record.schedule import Schedule
from gpusnap.record.writer import NotARecording, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Host
    from gpusnap.model import Snapshot
    from gpusnap.record.signals import Signals

# A sleep does not count suspend; the boot clock is looked at this often, so that an hourly sample that a
# suspend held up comes at most this late after it.
MAX_NAP_SECONDS = 60.0
_SOON = 1e-6


class Sink(Protocol):
    """Where lines go; `append` returns the bytes it wrote and raises WriteFailed or NotARecording."""

    def append(self, line: bytes) -> int: ...


class Watcher(Protocol):
    """Whoever wants to know: progress, `-v`, the summary of a command."""

    def sampled(self, doc: Snapshot) -> None: ...

    def wrote(self, doc: Snapshot, count: int) -> None:
        """The line is safe in the file."""

    def failed(self, message: str) -> None: ...


class GivenUp(Exception):
    """Too many samples in a row could not be kept; the message is the last cause."""


class Recorder:
    """One run of `record`: `sample` takes a document, `dumps` makes it one line, `sink` keeps it."""

    def __init__(
        self,
        sample: Callable[[], Snapshot],
        dumps: Callable[[Snapshot], bytes],
        sink: Sink,
        watchers: tuple[Watcher, ...] = (),
        max_failures: int = 3,
    ) -> None:
        self._sample = sample
        self._dumps = dumps
        self._sink = sink
        self._watchers = watchers
        self._max_failures = max_failures
        self.written = 0
        self.failures_in_a_row = 0
        self._unrecorded = 0
        self._pid = os.getpid()

    def take(self, missed: int = 0, late: float = 0.0) -> None:
        """One sample; raises GivenUp after too many failures in a row. A sample that is lost is a missed tick."""
        doc = self._sample()
        for watcher in self._watchers:
            watcher.sampled(doc)
        doc["recording"] = {
            "writer_pid": self._pid,
            "sequence": self.written + 1,
            "missed_ticks": missed + self._unrecorded,
            "late_seconds": round(late, 3),
        }
        try:
            count = self._sink.append(self._dumps(doc))
        except NotARecording as error:
            self._tell_failure(str(error))
            raise
        except WriteFailed as error:
            self._unrecorded += missed + 1
            self.failures_in_a_row += 1
            self._tell_failure(str(error))
            if self.failures_in_a_row >= self._max_failures:
                raise GivenUp(str(error)) from error
            return
        self.written += 1
        self.failures_in_a_row = self._unrecorded = 0
        for watcher in self._watchers:
            watcher.wrote(doc, count)

    def _tell_failure(self, message: str) -> None:
        for watcher in self._watchers:
            watcher.failed(message)


def record_series(
    recorder: Recorder,
    host: Host,
    signals: Signals,
    every: float,
    *,
    count: int | None = None,
    duration: float | None = None,
) -> None:
    """Sample every `every` seconds until `count` are written, `duration` is over or a signal comes."""
    schedule = Schedule(every, host.uptime())
    end = None if duration is None else schedule.start + duration
    while signals.received is None and (count is None or recorder.written < count):
        due = schedule.due(host.uptime())
        if end is not None and due > end + _SOON:
            return
        if _wait_until(due, host, signals, _never):
            recorder.take(*schedule.take(host.uptime()))


class Command(Protocol):
    """What a recording accompanies (`child.Child`)."""

    def exit_code(self) -> int | None: ...

    def forward(self, number: int) -> None: ...


class CommandRun(NamedTuple):
    """How a command went; `exit_code` is None where a signal came before it was started."""

    exit_code: int | None
    elapsed_seconds: float
    kept: bool
    """False where --max-failures samples in a row could not be kept."""


def record_beside(
    recorder: Recorder,
    host: Host,
    signals: Signals,
    every: float,
    start: Callable[[], Command],
) -> CommandRun:
    """One sample before the command, samples while it runs, one after it. It outlives a recording that fails."""
    schedule = Schedule(every, host.uptime())
    kept = _keep_on(recorder, *schedule.take(schedule.start))
    if signals.received is not None:
        return CommandRun(None, 0.0, kept)
    began = host.uptime()
    command = start()
    signals.forward_to(command.forward)

    def ended() -> bool:
        return command.exit_code() is not None

    try:
        while not ended():
            if _wait_until(schedule.due(host.uptime()), host, signals, ended):
                kept &= _keep_on(recorder, *schedule.take(host.uptime()))
    except BaseException:
        while not ended():  # a fault of ours must not end what runs under us: a batch job ends with its wrapper
            signals.sleep(MAX_NAP_SECONDS, host.sleep)
        raise
    signals.stop_forwarding()
    elapsed = host.uptime() - began
    kept &= _keep_on(recorder, schedule.passed(host.uptime()), 0.0)
    return CommandRun(command.exit_code(), elapsed, kept)


def _keep_on(recorder: Recorder, missed: int, late: float) -> bool:
    try:
        recorder.take(missed, late)
    except (GivenUp, NotARecording):
        return False  # the watchers have said so; there may be space again
    return True


def _wait_until(due: float, host: Host, signals: Signals, ended: Callable[[], bool]) -> bool:
    """True when `due` has come on the boot clock, False when a signal or the end came first."""
    while signals.received is None and not ended():
        left = due - host.uptime()
        if left <= _SOON:
            return True
        signals.sleep(min(left, MAX_NAP_SECONDS), host.sleep)
    return False


def _never() -> bool:
    return False
