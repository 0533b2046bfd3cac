"""Options that several commands share, declared once. typer reads the annotations of each command."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from gpusnap.cli.io import CommandError

_COLLECT = "What is collected"
_MACHINE = "Which machine"


def duration(text: str) -> float:
    """`50ms`, `10s`, `5m`, `8h`, plain seconds."""
    from gpusnap.render.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as fault:
        raise typer.BadParameter(str(fault)) from fault


def size(text: str) -> int:
    """`256MiB`, `1.5GiB`, `1GB`, plain bytes."""
    from gpusnap.render.units import parse_size

    try:
        return parse_size(text)
    except ValueError as fault:
        raise typer.BadParameter(str(fault)) from fault


def key_file(path: str | None) -> str | None:
    """The absolute path of a file that can be read."""
    if path is None:
        return None
    try:
        with open(path, "rb"):
            return os.path.abspath(path)
    except OSError as fault:
        raise CommandError(f"--api-key-file {path}: {fault.strerror}") from fault


# What says how this machine is looked at; it says nothing about a file.
_TAKING = frozenset(
    {
        *("window", "processes", "cmdline", "models", "probe", "api_key_file", "holders", "label", "timeout"),
        *("replay", "procfs", "sysfs"),
    }
)


def taking(context: typer.Context) -> list[str]:
    """Those of them that stand on the command line, as they stand there; variables of the environment do not."""
    found = []
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in _TAKING and source is not None and source.name == "COMMANDLINE":
            found.append((parameter.secondary_opts if context.params[name] is False else parameter.opts)[0])
    return found


def refuse_taking(context: typer.Context, why: str) -> None:
    """An option that would be passed over in silence is a usage error; `why` is for a person, {} the option."""
    for option in taking(context):
        raise CommandError(why.format(option))


def labels(words: list[str]) -> dict[str, str]:
    """`--label K=V` ..; the last of a key holds."""
    from gpusnap.text import clean

    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise CommandError(f"--label {word!r}: expected KEY=VALUE")
        found[clean(key, 256)] = clean(value)
    return found


Window = Annotated[
    float,
    typer.Option(
        "--window",
        parser=duration,
        metavar="DURATION",
        rich_help_panel=_COLLECT,
        help="Sample rates (GPU %, engines, PCIe) over this long, such as 250ms.",
    ),
]
Adapters = Annotated[
    list[str],
    typer.Option(
        "--adapter",
        metavar="ID",
        rich_help_panel=_COLLECT,
        help="Only this adapter: index, UUID prefix, PCI address or words of its model. May be repeated.",
    ),
]
Processes = Annotated[
    bool, typer.Option("--processes/--no-processes", help="List processes.", rich_help_panel=_COLLECT)
]
Cmdline = Annotated[
    str,
    typer.Option(
        "--cmdline",
        metavar="redacted|none|full",
        rich_help_panel=_COLLECT,
        help="Command lines with secrets redacted, none at all, or in full.",
    ),
]
Holders = Annotated[
    bool,
    typer.Option("--holders", help="List who has a GPU's device files open or mapped.", rich_help_panel=_COLLECT),
]
Models = Annotated[
    bool,
    typer.Option(
        "--models/--no-models",
        rich_help_panel=_COLLECT,
        help="Tell models, their memory's parts and loaded runtimes, from local files.",
    ),
]
Probe = Annotated[
    bool,
    typer.Option(
        "--probe/--no-probe",
        rich_help_panel=_COLLECT,
        help="Ask the local interfaces of model servers too (GET, loopback).",
    ),
]
ApiKeyFile = Annotated[
    str | None,
    typer.Option(
        "--api-key-file", metavar="FILE", rich_help_panel=_COLLECT, help="A key for those interfaces, in a file."
    ),
]
Labels = Annotated[
    list[str],
    typer.Option("--label", metavar="KEY=VALUE", rich_help_panel=_COLLECT, help="A label of the snapshot."),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        parser=duration,
        metavar="DURATION",
        rich_help_panel=_COLLECT,
        help="How long a backend may take; one that hangs is left behind.",
    ),
]
Replay = Annotated[
    str | None,
    typer.Option("--replay", metavar="DIR", rich_help_panel=_MACHINE, help="A machine that was kept in a folder."),
]
Procfs = Annotated[
    str | None,
    typer.Option(
        "--procfs",
        metavar="DIR",
        envvar="GPUSNAP_PROCFS",
        rich_help_panel=_MACHINE,
        help="Where the host's /proc is mounted.",
    ),
]
Sysfs = Annotated[
    str | None,
    typer.Option(
        "--sysfs",
        metavar="DIR",
        envvar="GPUSNAP_SYSFS",
        rich_help_panel=_MACHINE,
        help="Where the host's /sys is mounted.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr what each backend found.")]
Colour = Annotated[str, typer.Option("--color", metavar="auto|always|never", help="Colour in text for people.")]
NoColour = Annotated[
    str,
    typer.Option("--color", metavar="auto|always|never", help="Taken here as by the others; JSON has no colour."),
]


def colour_word(value: str) -> str:
    return one_of("--color", value, ("auto", "always", "never"))


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise CommandError(f"{name} {value!r}: expected one of {', '.join(allowed)}")
    return value


StrictLines = Annotated[
    bool, typer.Option("--strict-lines", help="A torn or foreign line of a recording ends with exit code 2.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON (the same as --format json).")]
TextOrJson = Annotated[str | None, typer.Option("--format", metavar="text|json", help="How to print.")]


def wants_json(json: bool, output_format: str | None) -> bool:
    """`--json` is `--format json`; both and different is a contradiction."""
    if output_format is None:
        return json
    one_of("--format", output_format, ("text", "json"))
    if json and output_format != "json":
        raise CommandError(f"--json and --format {output_format} contradict each other")
    return output_format == "json"
