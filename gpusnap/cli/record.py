"""`gpusnap record`: a recording, one line a sample."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusnap.cli import options as o
from gpusnap.cli.io import CommandError
from gpusnap.cli.recording import MAX_FAILURES, RecordRequest, record
from gpusnap.cli.snapping import Machine
from gpusnap.collect.options import CollectOptions
from gpusnap.record.signals import Signals

HELP = """Append samples to a recording: one and exit (for cron), a series, or while a command runs.

gpusnap record FILE [--every 10s] [--count N] [--for 8h] [-- COMMAND ARG..]
"""
_WHEN = "When and how often"


class Start:
    """What `record` got before typer: signals caught from the first moment, the words behind `--`."""

    def __init__(self, signals: Signals, command: list[str] | None) -> None:
        self.signals = signals
        self.command = command


def command(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The recording, JSON Lines; - is standard output.")],
    every: Annotated[
        float | None,
        typer.Option(
            "--every",
            parser=o.duration,
            metavar="DURATION",
            rich_help_panel=_WHEN,
            help="Sample this often.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", rich_help_panel=_WHEN, help="Stop after N samples.")
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--for", parser=o.duration, metavar="DURATION", rich_help_panel=_WHEN, help="Stop after this long."
        ),
    ] = None,
    fsync: Annotated[
        bool, typer.Option("--fsync/--no-fsync", help="Whether a sample is on the disk before it counts.")
    ] = True,
    max_failures: Annotated[
        int,
        typer.Option("--max-failures", metavar="N", help="Exit 3 after N samples in a row that can't be kept."),
    ] = MAX_FAILURES,
    summary: Annotated[
        str | None,
        typer.Option("--summary", metavar="FILE", help="Write peak and what was left behind as JSON."),
    ] = None,
    window: o.Window = "0",  # type: ignore[assignment]
    adapter: o.Adapters = [],  # noqa: B006 - typer copies it
    processes: o.Processes = True,
    cmdline: o.Cmdline = "redacted",
    models: o.Models = True,
    probe: o.Probe = False,
    api_key_file: o.ApiKeyFile = None,
    holders: o.Holders = False,
    label: o.Labels = [],  # noqa: B006
    timeout: o.Timeout = "10s",  # type: ignore[assignment]
    replay: o.Replay = None,
    procfs: o.Procfs = None,
    sysfs: o.Sysfs = None,
    colour: o.NoColour = "auto",
    verbose: o.Verbose = False,
) -> None:
    o.colour_word(colour)
    if context.args:
        raise CommandError(f"unexpected {context.args[0]!r}: a command stands behind `--`")
    options = CollectOptions(
        window=window,
        adapters=tuple(adapter),
        processes=processes,
        cmdline=cmdline,
        models=models,
        probe=probe,
        api_key_file=o.key_file(api_key_file),
        holders=holders,
        labels=o.labels(label),
        timeout=timeout,
    )
    start: Start = context.obj
    request = RecordRequest(
        file,
        start.signals,
        options=options,
        machine=Machine(replay, procfs, sysfs),
        every=every,
        count=count,
        duration=duration,
        fsync=fsync,
        max_failures=max_failures,
        summary=summary,
        command=start.command,
        verbose=verbose,
    )
    raise typer.Exit(record(request))
