"""What `gpusnap record` does: one sample, or a series. Imports no typer."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from gpusnap.cli import exits
from gpusnap.cli.io import CommandError, die_of_broken_pipes, leave
from gpusnap.cli.record_watch import Acknowledgements, Failures, Measured, Progress
from gpusnap.cli.snapping import Machine, open_collector, sample
from gpusnap.cli.standard import write_standard_output
from gpusnap.collect.options import CollectOptions
from gpusnap.record.loop import GivenUp, Recorder, record_series
from gpusnap.record.signals import Signals
from gpusnap.record.writer import NotARecording, RecordFile, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.collect import Collector
    from gpusnap.host import Host
    from gpusnap.record.loop import Sink, Watcher
    from gpusnap.record.summary import Peaks

DEFAULT_EVERY_SECONDS = 10.0
MAX_FAILURES = 3


class RecordRequest:
    """What `gpusnap record` was asked for; `signals` were caught from the program's first moment on."""

    def __init__(
        self,
        file: str,
        signals: Signals | None = None,
        *,
        options: CollectOptions | None = None,
        machine: Machine | None = None,
        every: float | None = None,
        count: int | None = None,
        duration: float | None = None,
        fsync: bool = True,
        max_failures: int = MAX_FAILURES,
        summary: str | None = None,
        command: Sequence[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.file = file
        self.signals = signals or Signals()
        self.options = options or CollectOptions()
        self.machine = machine or Machine()
        self.every = every
        self.count = count
        self.duration = duration
        self.fsync = fsync
        self.max_failures = max_failures
        self.summary = summary
        self.command = None if command is None else list(command)
        self.verbose = verbose

    @property
    def is_one_sample(self) -> bool:
        """The cron form."""
        return self.every is None and self.count is None and self.duration is None and self.command is None


def record(request: RecordRequest) -> int:
    _check(request)
    sink = _sink(request)
    host = request.machine.open()
    collector = open_collector(host, request.options)
    if request.command is not None:
        from gpusnap.cli.recording_command import record_command

        code = record_command(request, request.command, host, collector, sink)
    else:
        code = _series(request, host, collector, sink)
    if collector.hangs:
        leave(code)
    return code


def _check(request: RecordRequest) -> None:
    """Usage, before anything is read or written."""
    if request.every is not None and request.every <= 0:
        raise CommandError("--every: expected more than 0 seconds")
    if request.count is not None and request.count < 1:
        raise CommandError("--count: expected at least 1")
    if request.duration is not None and request.duration <= 0:
        raise CommandError("--for: expected more than 0 seconds")
    if request.max_failures < 1:
        raise CommandError("--max-failures: expected at least 1")
    if not request.file:
        raise CommandError("FILE: expected a name")
    if request.file.endswith((".gz", ".zst")):
        plain = request.file.rpartition(".")[0]
        raise CommandError(f"{request.file}: a recording grows as plain lines: name it {plain}, compress it later")
    if request.summary is not None:
        _check_summary(request.summary, request.file)
    if request.command is None:
        return
    if not request.command:
        raise CommandError("no command after `--`")
    if request.count is not None or request.duration is not None:
        raise CommandError("the command's end ends the recording: --count and --for do not go with it")
    if request.machine.replay is not None:
        raise CommandError("--replay has a clock of its own: a command does not run by it")
    if request.file == "-":
        raise CommandError("`-` is the command's standard output too: name a file")


def _check_summary(path: str, recording: str) -> None:
    """It is written at the very end: a slip in its name must not show only when the command has run for a day."""
    if path == recording or (path and os.path.realpath(path) == os.path.realpath(recording)):
        raise CommandError(
            f"--summary {path}: that is the recording itself, and would be replaced: name another file"
        )
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path):
        raise CommandError(f"--summary {path!r}: expected the name of a file")
    if not os.path.isdir(folder):
        raise CommandError(f"--summary {path}: there is no folder {folder}")


def _sink(request: RecordRequest) -> Sink:
    if request.file == "-":
        die_of_broken_pipes()
        return Stdout()
    file = RecordFile(request.file, fsync=request.fsync)
    try:
        file.check()
    except NotARecording as error:
        raise CommandError(str(error)) from error
    return file


class Stdout:
    """`record -`: a pipe to something that follows; whole lines, no lock."""

    def append(self, line: bytes) -> int:
        data = line + b"\n"
        try:
            write_standard_output(data)
        except BrokenPipeError:  # where there is no SIGPIPE, or a parent ignores it
            leave(exits.BROKEN_PIPE)
        except OSError as error:
            raise WriteFailed(f"standard output: {error.strerror}") from error
        return len(data)


def _series(request: RecordRequest, host: Host, collector: Collector, sink: Sink) -> int:
    from gpusnap.codec import dumps

    measured, progress, peaks = Measured(), _progress(request), _peaks(request)
    watchers: list[Watcher] = [Failures(), measured]
    watchers += [watcher for watcher in (progress, peaks) if watcher is not None]
    if request.verbose:
        watchers.append(Acknowledgements())
    max_failures = 1 if request.is_one_sample else request.max_failures
    recorder = Recorder(lambda: sample(collector), dumps, sink, tuple(watchers), max_failures)
    started = host.uptime()
    code = _run_series(request, host, recorder)
    if progress is not None:
        progress.end()
    if code == exits.OK and request.signals.received is None:
        code = measured.exit_code()
    if peaks is not None and request.summary is not None and peaks.samples > 0:
        from gpusnap.cli.recording_command import write_summary

        write_summary(request.summary, peaks, [], code, host.uptime() - started)
    return code


def _run_series(request: RecordRequest, host: Host, recorder: Recorder) -> int:
    signals = request.signals
    try:
        if not request.is_one_sample:
            load_fast_encoder()
            every = request.every or DEFAULT_EVERY_SECONDS
            record_series(recorder, host, signals, every, count=request.count, duration=request.duration)
        elif signals.received is None:
            recorder.take()
    except GivenUp:  # `Failures` has said why
        return exits.NOTHING_COLLECTED
    except NotARecording:
        return exits.USAGE
    return exits.INTERRUPTED if signals.received == signal.SIGINT else exits.OK


def load_fast_encoder() -> None:
    """`codec` takes orjson where it is loaded: its import pays for itself with the second sample."""
    import orjson  # noqa: F401


def _progress(request: RecordRequest) -> Progress | None:
    """On a terminal, for more than one sample; `-v` says a line for each of them instead."""
    if request.is_one_sample or request.verbose or request.file == "-" or not sys.stderr.isatty():
        return None
    return Progress()


def _peaks(request: RecordRequest) -> Peaks | None:
    if request.summary is None:
        return None
    from gpusnap.record.summary import Peaks

    return Peaks()
