"""What `gpusnap explain` does: find the subject, take or read its samples, show them. Imports no typer."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpusnap.cli import exits
from gpusnap.cli.around import look_around
from gpusnap.cli.io import CommandError, leave, say, screen, write_out, write_text
from gpusnap.cli.snapping import SnapRequest, exit_code, open_collector, sample, say_backends
from gpusnap.text import clean, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.collect import Collector
    from gpusnap.explain.explanation import Explained
    from gpusnap.explain.history import History
    from gpusnap.explain.subject import Chosen, Wish
    from gpusnap.explain.view import Viewer
    from gpusnap.host import Host
    from gpusnap.llm.aside import Aside
    from gpusnap.model import Snapshot
    from gpusnap.samples import Skips

FORMATS = ("text", "json", "svg", "html", "openmetrics")
_MAX_INDEX = 255
_MOST_NAMED = 4
PICTURES = frozenset({"svg", "html"})


class ExplainRequest:
    """What `gpusnap explain` was asked for; `snap` says how to look at this machine."""

    def __init__(
        self,
        snap: SnapRequest,
        what: str | None = None,
        *,
        source: str | None = None,
        contexts: list[int] | None = None,
        sources: bool = False,
        output_format: str = "text",
        strict_lines: bool = False,
        colour: str = "auto",
        taking: tuple[str, ...] = (),
    ) -> None:
        self.snap = snap
        self.what = what
        self.source = source
        self.contexts = contexts or []
        self.sources = sources
        self.output_format = output_format
        self.strict_lines = strict_lines
        self.colour = colour
        self.taking = taking


def explain(request: ExplainRequest) -> int:
    from gpusnap.codec_read import DocumentError
    from gpusnap.explain.subject import NoSuchSubject, parse

    try:
        wish = parse(request.what, os.path.exists)
        if wish.kind == "file" and request.source is not None:
            raise CommandError(f"{request.what} and --from {request.source}: one file at a time")
        source = wish.value if wish.kind == "file" else request.source
        if source is None:
            return _explain_live(request, wish)
        if request.taking:
            raise CommandError(f"{source} and {request.taking[0]} contradict each other: say which is meant")
        _explain_file(request, wish, source)
    except (DocumentError, NoSuchSubject) as fault:
        raise CommandError(str(fault)) from fault
    return exits.OK


def _explain_live(request: ExplainRequest, wish: Wish) -> int:
    from gpusnap.explain.explanation import explain_snapshot
    from gpusnap.explain.subject import choose

    host = request.snap.machine.open()
    if _is_process(wish):
        request.snap.options.holders = False  # a look into every process: what a card's account needs
    collector = open_collector(host, request.snap.options)
    document = sample(collector)
    if request.snap.verbose:
        say_backends(document)
    chosen = choose(wish, document)
    if request.output_format == "openmetrics":
        _write_metrics([document])
    elif request.output_format in PICTURES:
        _show(request, _of_samples(request, iter([document]), wish, None))
    else:
        explained = explain_snapshot(
            document,
            chosen,
            viewer=_viewer(host),
            around=look_around(host, document),
            contexts=request.contexts,
            aside=_aside(collector, document, chosen),
        )
        _show(request, explained)
    code = exit_code(document, request.snap)
    if collector.hangs:
        leave(code)
    return code


def _aside(collector: Collector, document: Snapshot, chosen: Chosen) -> Aside:
    """What the look at the machine gave beyond the document, of one process or one card."""
    from gpusnap.explain.committed import with_committed
    from gpusnap.explain.visible import with_visible
    from gpusnap.llm.aside import NOTHING

    if chosen.pid is not None:
        aside = collector.models.describer.aside(chosen.pid)
        return with_committed(aside, document, collector.committed(chosen.pid))
    return NOTHING if chosen.adapter is None else with_visible(NOTHING, collector.beside(chosen.adapter))


def _is_process(wish: Wish) -> bool:
    """A pid, said so or too large for a card's index."""
    number = whole_number(wish.value)
    return wish.kind == "pid" or (wish.kind == "word" and number is not None and number > _MAX_INDEX)


def _explain_file(request: ExplainRequest, wish: Wish, source: str) -> None:
    from gpusnap.samples import Skips

    skips = Skips()
    samples = _samples(source, skips, request)
    if request.output_format == "openmetrics":
        _write_metrics(samples)
    else:
        _show(request, _of_samples(request, samples, wish, source))
    skipped = skips.message(source)
    if skipped is not None:
        say(f"gpusnap explain: {skipped}")


def _samples(source: str, skips: Skips, request: ExplainRequest) -> Iterator[Snapshot]:
    """All samples of a recording, or the one that `FILE@last` and the like name."""
    from gpusnap.sources import iter_samples, load_snapshot, split_argument

    if split_argument(source)[1] is not None:
        yield load_snapshot(source, strict_lines=request.strict_lines).doc
        return
    for one in iter_samples(source, skips, strict_lines=request.strict_lines):
        yield one.doc


def _of_samples(request: ExplainRequest, samples: Iterator[Snapshot], wish: Wish, source: str | None) -> Explained:
    """One sample is a snapshot, more are a recording; a picture is drawn of either."""
    from gpusnap.explain.explanation import explain_history, explain_snapshot
    from gpusnap.explain.history import History
    from gpusnap.explain.subject import choose

    source = None if source is None else clean(source)  # its name may be no UTF-8, which JSON must be
    pictures = request.output_format in PICTURES
    history = History(pictures=pictures, source=source).feed(samples)
    if history.last is None:
        raise CommandError(f"{source}: holds no sample")
    viewer = _reader_of(history.last, request)
    if history.timeline.count > 1:
        chosen = choose(wish, _everything(history))
        return explain_history(history, chosen, source=source, viewer=viewer)
    explained = explain_snapshot(
        history.last, choose(wish, history.last), source=source, viewer=viewer, contexts=request.contexts
    )
    return explained._replace(history=history) if pictures else explained


def _everything(history: History) -> Snapshot:
    """All cards and processes that a recording saw, for choosing among them."""
    if history.last is None:
        raise ValueError("a recording without a sample")
    return {
        **history.last,
        "adapters": [track.last_row for track in history.cards.values()],
        "processes": [track.last_row for track in history.processes.values()],
    }


def _show(request: ExplainRequest, explained: Explained) -> None:
    if request.contexts and not explained.document["context"]:
        say(f"gpusnap explain: --context: {_no_context(explained)}")
    if request.output_format == "json":
        from gpusnap.codec import dumps

        write_out(dumps(explained.document, indent=sys.stdout.isatty()) + b"\n")
        return
    if request.output_format == "svg":
        from gpusnap.render.svg import svg_picture

        write_out(svg_picture(explained).encode())
        return
    if request.output_format == "html":
        from gpusnap.render.html import html_page

        write_out(html_page(explained).encode())
        return
    from gpusnap.render.explain import explain_lines

    lines = explain_lines(
        explained,
        screen(request.colour),
        sources=request.sources,
        command=_words(request),
        replay=request.snap.machine.replay,
    )
    write_text(lines)


def _no_context(explained: Explained) -> str:
    """Other lengths are said of one process: which are worth asking, if none was named."""
    if explained.document["subject"]["kind"] == "process":
        return "the cache of this process can't be computed"
    if explained.history is not None and explained.history.timeline.count > 1:
        return "a recording says nothing of other lengths: ask one sample of it for a process, FILE@last"
    known = {
        row["pid"]
        for row in explained.snapshot["processes"] or ()
        if row["llm"] is not None and row["llm"]["kv_bytes_per_token"] is not None
    }
    if not known:
        return "no process here whose cache can be computed"
    return f"say which process is meant: {', '.join(f'pid:{pid}' for pid in sorted(known)[:_MOST_NAMED])}"


def _words(request: ExplainRequest) -> str:
    """What was asked, as a shell takes it, for the command that says where each number comes from."""
    import shlex

    words = [request.what, *_option("--from", request.source), *_option("--replay", request.snap.machine.replay)]
    return shlex.join(word for word in words if word is not None)


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]


def _write_metrics(samples: Iterator[Snapshot] | list[Snapshot]) -> None:
    from gpusnap.render.openmetrics import LeftOut, openmetrics

    left_out = LeftOut()
    for piece in openmetrics(samples, left_out):
        write_out(piece)
    said = left_out.message()
    if said is not None:
        say(f"gpusnap explain: {said}")


def _reader_of(document: Snapshot, request: ExplainRequest) -> Viewer:
    """Who reads a file is known to its machine only: elsewhere the same name may be another person."""
    from gpusnap.explain.view import Viewer

    host = request.snap.machine.open()
    here = host.uname()["hostname"]
    return _viewer(host) if here is not None and here == document["host"]["hostname"] else Viewer()


def _viewer(host: Host) -> Viewer:
    """The user that gpusnap runs as, in the machine that is looked at."""
    from gpusnap.explain.view import Viewer

    try:
        uid = host.proc.stat(str(host.own_pid())).uid
    except OSError:
        return Viewer()
    try:
        return Viewer(uid, host.user_name(uid))
    except OSError:
        return Viewer(uid)
