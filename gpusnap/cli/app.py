"""The typer application: one line a command."""

from __future__ import annotations

from typing import Annotated, cast

import typer

import gpusnap
from gpusnap.cli import diff, exits, explain, ps, record, snap
from gpusnap.cli.io import CommandError, say, write_out

_HELP = frozenset({"--help", "-h"})
app = typer.Typer(
    name="gpusnap",
    help="Snapshots of GPU memory: every byte accounted for, every number with its source.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": sorted(_HELP)},
)
app.command("snap", help=snap.HELP)(snap.command)
app.command("ps", help=ps.HELP)(ps.command)
app.command("diff", help=diff.HELP)(diff.command)
app.command("explain", help=explain.HELP)(explain.command)
app.command("record", help=record.HELP, context_settings={"allow_extra_args": True})(record.command)


# What a wrong command line raises. typer has no public name for it, and its home differs between versions.
_UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])


def _show_version(wanted: bool) -> None:
    if wanted:
        write_out(f"gpusnap {gpusnap.__version__}\n".encode())
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The options that stand before a command."""


def run_app(words: list[str], recording: record.Start | None = None) -> int:
    """A command's exit code; `recording` is for `record` alone. What typer would print itself is one line here."""
    try:
        code = app(args=words, prog_name="gpusnap", standalone_mode=False, obj=recording)
    except _UsageError as fault:
        if not words:  # the help, to whoever has not asked for anything yet
            for line in str(fault).splitlines():
                say(line)
            return exits.USAGE
        raise CommandError(_in_one_line(fault)) from fault
    except OSError as fault:
        if not _HELP.intersection(words):
            raise
        raise CommandError(f"standard output: {fault.strerror}", exits.NOTHING_COLLECTED) from fault
    return code if isinstance(code, int) else exits.OK


def _in_one_line(fault: Exception) -> str:
    """`No such option: --foo.` -> `no such option: --foo`, as our own faults are told."""
    message = str(getattr(fault, "format_message", fault.__str__)()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]} (--help shows what there is)"
