"""`gpusnap snap`: one snapshot as JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusnap.cli import options as o
from gpusnap.cli.schema import print_schema
from gpusnap.cli.snapping import Machine, SnapRequest, snap
from gpusnap.collect.options import CollectOptions

HELP = "Take one snapshot and print it as JSON."


def command(
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file, whole or not at all.")
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
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 4 if a figure is null for a reason that could be mended.")
    ] = False,
    require_gpu: Annotated[bool, typer.Option("--require-gpu", help="Exit 3 if there is no adapter.")] = False,
    save_raw: Annotated[
        str | None,
        typer.Option(
            "--save-raw", metavar="DIR", help="Keep what was read, without what is private, for --replay."
        ),
    ] = None,
    output_format: Annotated[
        str, typer.Option("--format", metavar="json|prometheus", help="JSON, or text for node_exporter.")
    ] = "json",
    per_pid: Annotated[
        bool, typer.Option("--per-pid", help="With --format prometheus: series by process too, the largest 200.")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a snapshot.")] = False,
    replay: o.Replay = None,
    procfs: o.Procfs = None,
    sysfs: o.Sysfs = None,
    colour: o.NoColour = "auto",
    verbose: o.Verbose = False,
) -> None:
    o.colour_word(colour)
    if schema:
        print_schema("snapshot", output)
        return
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
    request = SnapRequest(
        options,
        machine=Machine(replay, procfs, sysfs),
        output=output,
        strict=strict,
        require_gpu=require_gpu,
        verbose=verbose,
        save_raw=save_raw,
        output_format=o.one_of("--format", output_format, ("json", "prometheus")),
        per_pid=per_pid,
    )
    raise typer.Exit(snap(request))
