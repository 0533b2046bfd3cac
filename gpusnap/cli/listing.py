"""What `gpusnap ps` does: take or load a snapshot, choose rows, show them. Imports no typer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpusnap.cli import exits
from gpusnap.cli.around import look_around
from gpusnap.cli.io import CommandError, leave, say, screen, write_out, write_text
from gpusnap.cli.snapping import SnapRequest, exit_code, take
from gpusnap.render.ps_select import GROUP_KEYS, SORT_KEYS, Selection, select, select_groups, undecided

if TYPE_CHECKING:
    from gpusnap.model import Group, Process, Snapshot

STATES = ("running", "sleeping", "disk-sleep", "stopped", "zombie", "dead")


class PsRequest:
    """What `gpusnap ps` was asked for; `snap` says how to take the snapshot unless `source` names one."""

    def __init__(
        self,
        snap: SnapRequest,
        selection: Selection,
        *,
        source: str | None = None,
        strict_lines: bool = False,
        group_by: str | None = None,
        json: bool = False,
        wide: bool = False,
        plain_bytes: bool = False,
        adapters: tuple[str, ...] = (),
        colour: str = "auto",
    ) -> None:
        self.snap = snap
        self.selection = selection
        self.source = source
        self.strict_lines = strict_lines
        self.group_by = group_by
        self.json = json
        self.wide = wide
        self.plain_bytes = plain_bytes
        self.adapters = adapters
        self.colour = colour


def ps(request: PsRequest) -> int:
    _check(request)
    if request.source is not None:
        return _show(_loaded(request), request, exits.OK)
    document, collector = take(request.snap)
    if request.selection.orphans:
        request.selection.around = look_around(collector.host, document)
    code = _show(document, request, exit_code(document, request.snap))
    if not document["adapters"] and not request.json and code == exits.OK:
        say("gpusnap ps: no GPU found on this machine")
    if collector.hangs:
        leave(code)
    return code


def _check(request: PsRequest) -> None:
    from gpusnap.fields import CATEGORIES

    wanted = request.selection
    for option, value, allowed in (
        ("--sort", wanted.sort, SORT_KEYS),
        ("--group-by", request.group_by, GROUP_KEYS),
        ("--category", wanted.category, CATEGORIES),
        ("--state", wanted.state, STATES),
    ):
        if value is not None and value not in allowed:
            raise CommandError(f"{option} {value!r}: expected one of {', '.join(allowed)}")
    if wanted.user == "":
        raise CommandError("--user '': expected a name or uid (an empty variable?)")
    if wanted.top is not None and wanted.top < 1:
        raise CommandError(f"--top {wanted.top}: expected 1 or more")


def _loaded(request: PsRequest) -> Snapshot:
    from gpusnap.codec_read import DocumentError
    from gpusnap.sources import load_snapshot

    try:
        loaded = load_snapshot(str(request.source), strict_lines=request.strict_lines)
    except DocumentError as fault:
        raise CommandError(str(fault)) from fault
    skipped = loaded.skips.message(loaded.source)
    if skipped is not None:
        say(f"gpusnap ps: {skipped}")
    return loaded.doc


def _show(document: Snapshot, request: PsRequest, code: int) -> int:
    request.selection.adapters = _named(document, request.adapters)
    if request.group_by is not None:
        rows, groups = select_groups(document, request.selection, request.group_by)
    else:
        rows, groups = select(document, request.selection), None
    if request.json:
        _show_json(document, rows, groups)
        return code
    from gpusnap.render.ps_text import Layout, group_lines, ps_lines

    layout = Layout(screen(request.colour), wide=request.wide, plain_bytes=request.plain_bytes)
    if request.selection.adapters is not None:
        kept = [row for row in document["adapters"] if row["id"] in request.selection.adapters]
        document = {**document, "adapters": kept}
    if groups is not None and request.group_by is not None:
        lines = group_lines({**document, "processes": rows}, groups, request.group_by, layout)
    else:
        lines = ps_lines(document, rows, layout)
    count, figures = undecided(document, request.selection)
    if count:
        processes = "1 process" if count == 1 else f"{count} processes"
        lines += ["", *layout.screen.filled(f"{processes} left out: {' or '.join(figures)} not known.")]
    if lines:
        write_text(lines)
    return code


def _show_json(document: Snapshot, rows: list[Process], groups: list[Group] | None) -> None:
    """A snapshot document whose processes are filtered and sorted, accounting untouched."""
    from gpusnap.codec import dumps

    shown: dict[str, object] = dict(document)
    if document["processes"] is not None:
        shown["processes"] = rows
    if groups is not None:
        shown["groups"] = groups
    write_out(dumps(shown, indent=sys.stdout.isatty()) + b"\n")


def _named(document: Snapshot, words: tuple[str, ...]) -> list[str] | None:
    from gpusnap.collect.adapter_filter import named_by
    from gpusnap.explain.rows import model_name

    if not words:
        return None
    found: set[object] = set()
    for word in words:
        named = named_by(word, document["adapters"])
        if not named:
            known = ", ".join(f"{row['index']}: {model_name(row)}" for row in document["adapters"]) or "none"
            raise CommandError(f"no adapter is named {word!r} (adapters here: {known})")
        found |= named
    return [row["id"] for row in document["adapters"] if row["id"] in found]
