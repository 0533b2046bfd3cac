"""`gpusnap diff`: what changed between two snapshots."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusnap.cli import options as o
from gpusnap.cli.comparing import FORMATS, MATCHES, DiffRequest, compare
from gpusnap.cli.io import CommandError
from gpusnap.cli.schema import print_schema
from gpusnap.cli.snapping import Machine, SnapRequest
from gpusnap.collect.options import CollectOptions

HELP = """Compare two snapshots: cards, processes, and what nobody explains.

A and B are files (.gz and .zst too), - for standard input, live for a snapshot taken now, or a line of a
recording: rec.jsonl@first, @last, @12, @-3, @2026-11-30T10:00Z. A recording alone: its first against its last.
"""
_GATES = "Gates for pipelines (exit code 1)"


def command(
    context: typer.Context,
    before: Annotated[
        str | None, typer.Argument(metavar="A", help="The snapshot before, or a recording alone.")
    ] = None,
    after: Annotated[str | None, typer.Argument(metavar="[B]", help="The snapshot after.")] = None,
    min_bytes: Annotated[
        int, typer.Option("--min", parser=o.size, metavar="SIZE", help="Leave out changes smaller than this.")
    ] = "0",  # type: ignore[assignment]
    match: Annotated[
        str,
        typer.Option(
            "--match",
            metavar="identity|program",
            help="program: also pair an exited with an appeared process of one program and user.",
        ),
    ] = "identity",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", rich_help_panel=_GATES, help="Exit 1 if there is a difference.")
    ] = False,
    fail_above: Annotated[
        list[str],
        typer.Option(
            "--fail-above",
            metavar="[process:]SIZE",
            rich_help_panel=_GATES,
            help="Exit 1 if a card's used memory (or a process's) grew by more, or nobody can tell. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    output_format: Annotated[
        str | None, typer.Option("--format", metavar="text|markdown|json", help="How to print.")
    ] = None,
    json: o.Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a difference.")] = False,
    strict_lines: o.StrictLines = False,
    timeout: o.Timeout = "10s",  # type: ignore[assignment]
    replay: o.Replay = None,
    procfs: o.Procfs = None,
    sysfs: o.Sysfs = None,
    colour: o.Colour = "auto",
    verbose: o.Verbose = False,
) -> None:
    if schema:
        print_schema("diff")
        return
    from gpusnap.sources import is_live

    if before is None:
        raise CommandError("expected two snapshots, or a recording alone")
    if not (is_live(before) or (after is not None and is_live(after))):
        o.refuse_taking(context, "{} is what `live` means: neither side is that")
    o.colour_word(colour)
    request = DiffRequest(
        before,
        after,
        snap=SnapRequest(CollectOptions(timeout=timeout), machine=Machine(replay, procfs, sysfs), verbose=verbose),
        min_bytes=min_bytes,
        match=o.one_of("--match", match, MATCHES),
        exit_code=exit_code,
        fail_above=tuple(fail_above),
        output_format=_format(json, output_format),
        strict_lines=strict_lines,
        colour=colour,
    )
    raise typer.Exit(compare(request))


def _format(json: bool, output_format: str | None) -> str:
    """`--json` is `--format json`; both and different is a contradiction."""
    wanted = o.one_of("--format", output_format or ("json" if json else "text"), FORMATS)
    if json and wanted != "json":
        raise CommandError(f"--json and --format {wanted} contradict each other")
    return wanted
