"""The typer application: one line a command."""

from __future__ import annotations

from typing import Annotated

import typer

import gpusnap
from gpusnap.cli import diff, explain, ps, record, snap

app = typer.Typer(
    name="gpusnap",
    help="Snapshots of GPU memory: every byte accounted for, every number with its source.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("snap", help=snap.HELP)(snap.command)
app.command("ps", help=ps.HELP)(ps.command)
app.command("diff", help=diff.HELP)(diff.command)
app.command("explain", help=explain.HELP)(explain.command)
app.command("record", help=record.HELP, context_settings={"allow_extra_args": True})(record.command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpusnap {gpusnap.__version__}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The options that stand before a command."""


def run_app(words: list[str], recording: record.Start | None = None) -> int:
    """typer ends a command by SystemExit; its code is the command's. `recording` is for `record` alone."""
    try:
        code = app(args=words, prog_name="gpusnap", standalone_mode=True, obj=recording)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return int(code or 0)
