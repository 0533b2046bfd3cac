"""What `gpusnap diff` does: load two snapshots, compare, show, let gates decide. Imports no typer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from gpusnap.cli import exits
from gpusnap.cli.io import CommandError, leave, say, screen, write_out, write_text
from gpusnap.cli.snapping import SnapRequest, take

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot
    from gpusnap.sources import Loaded

FORMATS = ("text", "markdown", "json")
MATCHES = ("identity", "program")


class Gate:
    """`--fail-above 256MiB` of each card, or `--fail-above process:1GiB` of each row."""

    __slots__ = ("limit", "of_processes")

    def __init__(self, words: str) -> None:
        from gpusnap.render.units import parse_size

        kind, colon, size = words.rpartition(":")
        if colon and kind != "process":
            raise CommandError(f"--fail-above {words!r}: expected SIZE or process:SIZE")
        self.of_processes = kind == "process"
        try:
            self.limit = parse_size(size)
        except ValueError as fault:
            raise CommandError(f"--fail-above {fault}") from fault


class DiffRequest:
    """What `gpusnap diff` was asked for; `snap` says how `live` is taken."""

    def __init__(
        self,
        before: str,
        after: str | None,
        *,
        snap: SnapRequest | None = None,
        min_bytes: int = 0,
        match: str = "identity",
        exit_code: bool = False,
        fail_above: tuple[str, ...] = (),
        output_format: str = "text",
        strict_lines: bool = False,
        colour: str = "auto",
    ) -> None:
        self.before = before
        self.after = after
        self.snap = snap or SnapRequest()
        self.min_bytes = min_bytes
        self.match: Literal["identity", "program"] = "program" if match == "program" else "identity"
        self.exit_code = exit_code
        self.gates = [Gate(words) for words in fail_above]
        self.output_format = output_format
        self.strict_lines = strict_lines
        self.colour = colour


def compare(request: DiffRequest) -> int:
    from gpusnap.diff import diff

    live = _Live(request.snap)
    before, after = _load(request, live)
    result = diff(
        before.doc,
        after.doc,
        before_source=before.source,
        after_source=after.source,
        match=request.match,
        min_bytes=request.min_bytes,
    )
    _show(result, before.doc, after.doc, request)
    code = _exit_code(result, before.doc, after.doc, request)
    if live.hangs:
        leave(code)
    return code


class _Live:
    """Takes the snapshot that `live` means, and remembers whether a driver call still hangs."""

    def __init__(self, request: SnapRequest) -> None:
        self._request = request
        self.hangs = False

    def take(self) -> Snapshot:
        document, collector = take(self._request)
        self.hangs = self.hangs or collector.hangs
        return document


def _load(request: DiffRequest, live: _Live) -> tuple[Loaded, Loaded]:
    from gpusnap.codec_read import DocumentError
    from gpusnap.sources import load_pair

    try:
        before, after = load_pair(request.before, request.after, live=live.take, strict_lines=request.strict_lines)
    except DocumentError as fault:
        raise CommandError(str(fault)) from fault
    for loaded in (before, after):
        skipped = loaded.skips.message(loaded.source)
        if skipped is not None:
            say(f"gpusnap diff: {skipped}")
    return before, after


def _show(result: Diff, before: Snapshot, after: Snapshot, request: DiffRequest) -> None:
    if request.output_format == "json":
        from gpusnap.codec import dumps

        write_out(dumps(dict(result), indent=sys.stdout.isatty()) + b"\n")
        return
    from gpusnap.render.diff_text import diff_lines, diff_markdown

    if request.output_format == "markdown":
        lines = diff_markdown(result, before, after, min_bytes=request.min_bytes)
    else:
        lines = diff_lines(
            result,
            before,
            after,
            screen(request.colour),
            min_bytes=request.min_bytes,
        )
    write_text(lines)


def _exit_code(result: Diff, before: Snapshot, after: Snapshot, request: DiffRequest) -> int:
    """1 where a gate failed, which says why in one line, or where `--exit-code` found a difference."""
    from gpusnap.diff.gates import Growth, has_differences

    growth = Growth(result, before, after)
    failures = []
    for gate in request.gates:
        failures += growth.of_processes(gate.limit) if gate.of_processes else growth.of_cards(gate.limit)
    if failures:
        say(f"gpusnap diff: --fail-above: {'; '.join(failures)}")
        return exits.DIFFERENT
    if request.exit_code and has_differences(result, request.min_bytes):
        return exits.DIFFERENT
    return exits.OK
