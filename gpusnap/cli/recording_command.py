"""`gpusnap record FILE -- COMMAND`: samples beside a command, its exit code, what it took and left."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import gpusnap
from gpusnap.cli import exits
from gpusnap.cli.io import CommandError, say, write_out
from gpusnap.cli.record_watch import Acknowledgements, Failures
from gpusnap.cli.recording import DEFAULT_EVERY_SECONDS, load_fast_encoder
from gpusnap.cli.snapping import sample
from gpusnap.codec import dumps
from gpusnap.record.child import CannotStart, Child
from gpusnap.record.loop import Recorder, record_beside
from gpusnap.record.summary import Peaks
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.cli.recording import RecordRequest
    from gpusnap.collect import Collector
    from gpusnap.host import Host
    from gpusnap.model import Diff
    from gpusnap.record.loop import CommandRun, Sink, Watcher


def record_command(
    request: RecordRequest, command: list[str], host: Host, collector: Collector, sink: Sink
) -> int:
    load_fast_encoder()
    peaks = Peaks()
    watchers: list[Watcher] = [Failures(), peaks]
    if request.verbose:
        watchers.append(Acknowledgements())
    recorder = Recorder(lambda: sample(collector), dumps, sink, tuple(watchers), request.max_failures)
    every = request.every or DEFAULT_EVERY_SECONDS
    try:
        run = record_beside(recorder, host, request.signals, every, lambda: Child(command))
    except CannotStart as fault:
        raise CommandError(str(fault), fault.exit_code) from fault
    if run.exit_code is None:
        # Never 0: whoever waits for the command must not think that it ran.
        return exits.of_signal(request.signals.received or signal.SIGTERM)
    told = _say_what_it_took(request, command, run, peaks)
    if run.exit_code == 0 and not (run.kept and told):
        return exits.NOTHING_COLLECTED
    return run.exit_code


def _say_what_it_took(request: RecordRequest, command: list[str], run: CommandRun, peaks: Peaks) -> bool:
    """False where the summary could not be written: the exit code of a command that failed is worth more."""
    from gpusnap.collect.redact import redact
    from gpusnap.render.recording import run_lines

    shown = [clean(word) for word in redact(command)]
    code = 0 if run.exit_code is None else run.exit_code
    difference = _difference(peaks)
    if peaks.last is not None:
        summary = peaks.summary(gpusnap.__version__, shown, code, run.elapsed_seconds, difference)
        for line in run_lines(summary, difference, peaks.last, request.file):
            say(line)
    if request.summary is None:
        return True
    try:
        write_summary(request.summary, peaks, shown, code, run.elapsed_seconds)
    except CommandError as fault:
        say(f"gpusnap record: {fault}")
        return False
    return True


def write_summary(path: str, peaks: Peaks, command: list[str], code: int, elapsed_seconds: float) -> None:
    """`gpusnap.summary/1`, whole or not at all."""
    summary = peaks.summary(gpusnap.__version__, command, code, elapsed_seconds, _difference(peaks))
    write_out(dumps(summary) + b"\n", path)


def _difference(peaks: Peaks) -> Diff | None:
    """Of the first and the last sample; None where there are no two."""
    if peaks.first is None or peaks.last is None or peaks.first is peaks.last:
        return None
    from gpusnap.diff import diff

    return diff(peaks.first, peaks.last)
