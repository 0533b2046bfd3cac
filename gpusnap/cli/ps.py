"""`gpusnap ps`: who holds GPU memory."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusnap.cli import options as o
from gpusnap.cli.listing import PsRequest, ps
from gpusnap.cli.snapping import Machine, SnapRequest
from gpusnap.collect.options import CollectOptions
from gpusnap.render.ps_select import GROUP_KEYS, SORT_KEYS, Selection

HELP = "List the processes that hold GPU memory, and what each card's memory goes to."
_ROWS = "Which rows"


def command(
    context: typer.Context,
    sort: Annotated[
        str, typer.Option("--sort", metavar="KEY", help="|".join(SORT_KEYS), rich_help_panel=_ROWS)
    ] = "vram",
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Name or uid.", rich_help_panel=_ROWS)
    ] = None,
    category: Annotated[
        str | None,
        typer.Option("--category", metavar="C", help="desktop|llm|ai|browser|app|system|kernel|unknown"),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="S", help="running|sleeping|disk-sleep|stopped|zombie|dead"),
    ] = None,
    orphans: Annotated[bool, typer.Option("--orphans", help="Only processes whose parent is gone.")] = False,
    min_vram: Annotated[
        int | None,
        typer.Option("--min-vram", parser=o.size, metavar="SIZE", help="At least this much, such as 256MiB."),
    ] = None,
    top: Annotated[int | None, typer.Option("--top", metavar="N", help="The first N rows, or groups.")] = None,
    group_by: Annotated[str | None, typer.Option("--group-by", metavar="KEY", help="|".join(GROUP_KEYS))] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Start, container or unit, job, folder, command line too.")
    ] = False,
    plain_bytes: Annotated[bool, typer.Option("--bytes", help="Plain bytes instead of MiB and GiB.")] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="A snapshot or a recording's line instead of now; - is stdin."
        ),
    ] = None,
    strict_lines: o.StrictLines = False,
    json: o.Json = False,
    output_format: o.TextOrJson = None,
    window: o.Window = "250ms",  # type: ignore[assignment]
    adapter: o.Adapters = [],  # noqa: B006
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
    colour: o.Colour = "auto",
    verbose: o.Verbose = False,
) -> None:
    if source is not None:
        o.refuse_taking(context, "--from and {} contradict each other: say which is meant")
    options = CollectOptions(
        window=window,
        processes=processes,
        cmdline=cmdline,
        models=models,
        probe=probe,
        api_key_file=o.key_file(api_key_file),
        holders=holders,
        labels=o.labels(label),
        timeout=timeout,
    )
    selection = Selection(
        user=user,
        category=category,
        state=state,
        orphans=orphans,
        min_vram=min_vram,
        sort=sort,
        top=top,
    )
    o.colour_word(colour)
    request = PsRequest(
        SnapRequest(options, machine=Machine(replay, procfs, sysfs), verbose=verbose),
        selection,
        source=source,
        strict_lines=strict_lines,
        group_by=group_by,
        json=o.wants_json(json, output_format),
        wide=wide,
        plain_bytes=plain_bytes,
        adapters=tuple(adapter),
        colour=colour,
    )
    raise typer.Exit(ps(request))
