"""`gpusnap explain`: what a machine, a card, a process or a recording says, in words."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusnap.cli import options as o
from gpusnap.cli.explaining import FORMATS, ExplainRequest, explain
from gpusnap.cli.io import CommandError
from gpusnap.cli.schema import print_schema
from gpusnap.cli.snapping import Machine, SnapRequest
from gpusnap.collect.options import CollectOptions
from gpusnap.text import whole_number

HELP = (
    "Explain this machine, a card, a process, a snapshot or a recording: what, whose, since when, and what to do."
)


def tokens(text: str) -> list[int]:
    """`8k,1M,1000` -> [8192, 1048576, 1000]; k is 1,024 as model makers count."""
    found = []
    for word in text.split(","):
        unit = {"k": 1 << 10, "m": 1 << 20}.get(word.strip()[-1:].lower(), 1)
        number = whole_number(word.strip()[:-1] if unit > 1 else word.strip())
        if number is None or not 0 < number * unit < 1 << 40:
            raise CommandError(f"--context {word.strip()!r}: expected a number of tokens, such as 8192 or 8k")
        found.append(number * unit)
    return found


def command(
    context: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]",
            help="pid:N, gpu:ID|N|model words, file:PATH, or a bare word; without it this machine.",
        ),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--context", metavar="TOKENS", help="What other context lengths would take, such as 8k,32k."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="A snapshot or recording instead of now; - is stdin."),
    ] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Say where each number comes from.")] = False,
    probe: o.Probe = True,
    api_key_file: o.ApiKeyFile = None,
    output_format: Annotated[
        str | None, typer.Option("--format", metavar="|".join(FORMATS), help="How to print.")
    ] = None,
    json: o.Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of an explanation.")] = False,
    strict_lines: o.StrictLines = False,
    window: o.Window = "250ms",  # type: ignore[assignment]
    cmdline: o.Cmdline = "redacted",
    timeout: o.Timeout = "10s",  # type: ignore[assignment]
    replay: o.Replay = None,
    procfs: o.Procfs = None,
    sysfs: o.Sysfs = None,
    colour: o.Colour = "auto",
    verbose: o.Verbose = False,
) -> None:
    if schema:
        print_schema("explanation")
        return
    if json and output_format not in (None, "json"):
        raise CommandError(f"--json and --format {output_format} contradict each other")
    options = CollectOptions(
        window=window,
        cmdline=cmdline,
        probe=probe,
        holders=True,
        timeout=timeout,
        api_key_file=o.key_file(api_key_file),
    )
    request = ExplainRequest(
        SnapRequest(options, machine=Machine(replay, procfs, sysfs), verbose=verbose),
        what,
        source=source,
        contexts=tokens(lengths) if lengths is not None else [],
        sources=sources,
        output_format=o.one_of("--format", output_format or ("json" if json else "text"), FORMATS),
        strict_lines=strict_lines,
        colour=o.colour_word(colour),
        taking=tuple(option for option in o.taking(context) if option != "--no-probe"),  # a file is never asked
    )
    raise typer.Exit(explain(request))
