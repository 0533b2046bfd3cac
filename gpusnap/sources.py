"""From what the user typed to snapshots: files, `-`, `live`, and lines of recordings.

    load_snapshot("before.json")          one document, indented or not, .gz and .zst too
    load_snapshot("rec.jsonl@last")       a line of a recording: @first @last @12 @-3 @2026-11-30T10:00Z
    load_snapshot("live", live=take)      what `take()` returns; "-" reads standard input
    load_pair("rec.jsonl", None)          its first and last sample
    for sample in iter_samples("rec.jsonl", skips): ...

Recordings are read as streams, torn and foreign lines are counted in `Skips`. Everything that is wrong with an
argument or a file raises DocumentError, whose message is one line for people.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.codec_read import STDIN_NAME, DocumentError
from gpusnap.samples import Document, Sample, SampleReader, Skips
from gpusnap.streams import open_source, unpacked
from gpusnap.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from gpusnap.model import Snapshot

    Take = Callable[[], Snapshot]

SELECTORS = "@first, @last, @12, @-3 or @2026-11-30T10:00Z"


class Loaded(NamedTuple):
    """A snapshot, how the user named it, and the lines of its recording that were passed over."""

    doc: Snapshot
    source: str
    skips: Skips


def load_snapshot(
    argument: str,
    *,
    live: Take | None = None,
    stdin: BinaryIO | None = None,
    strict_lines: bool = False,
) -> Loaded:
    """The one snapshot that the argument names; a recording of many samples must be told which."""
    if is_live(argument):
        if live is None:
            raise DocumentError("live: no snapshot can be taken here, expected a file")
        return Loaded(live(), "live", Skips())
    path, selector = split_argument(argument)
    skips = Skips()
    reader = SampleReader(_name(path), skips, strict_lines=strict_lines)
    with _open(path, stdin) as stream:
        documents = reader.documents(stream)
        document = _only(documents, reader.name) if selector is None else _choose(selector, documents, reader)
        if strict_lines:
            deque(documents, maxlen=0)  # a torn line behind the chosen one counts too
    return Loaded(reader.decode(document), clean(argument), skips)


def load_pair(
    before: str,
    after: str | None,
    *,
    live: Take | None = None,
    stdin: BinaryIO | None = None,
    strict_lines: bool = False,
) -> tuple[Loaded, Loaded]:
    """Two snapshots to compare; one argument alone is a recording whose first and last sample are meant."""
    if after is None:
        return _load_ends(before, stdin=stdin, strict_lines=strict_lines)
    if is_stdin(split_argument(before)[0]) and is_stdin(split_argument(after)[0]):
        raise DocumentError("standard input can't be both snapshots, expected a file for one of them")
    first = load_snapshot(before, live=live, stdin=stdin, strict_lines=strict_lines)
    return first, load_snapshot(after, live=live, stdin=stdin, strict_lines=strict_lines)


def iter_samples(
    path: str,
    skips: Skips | None = None,
    *,
    stdin: BinaryIO | None = None,
    strict_lines: bool = False,
) -> Iterator[Sample]:
    """Every whole sample of a recording, one at a time; a single document is a recording of one."""
    reader = SampleReader(_name(path), Skips() if skips is None else skips, strict_lines=strict_lines)
    with _open(path, stdin) as stream:
        yield from reader.samples(stream)


def is_live(argument: str) -> bool:
    return argument == "live" and not os.path.exists(argument)


def is_stdin(path: str) -> bool:
    return path == "-" and not os.path.exists(path)


def split_argument(argument: str) -> tuple[str, str | None]:
    """`rec.jsonl@last` -> (`rec.jsonl`, `last`); an existing file is itself, whatever its name."""
    if os.path.exists(argument):
        return argument, None
    path, at, selector = argument.rpartition("@")
    return (path, selector) if at and path else (argument, None)


def _name(path: str) -> str:
    return STDIN_NAME if is_stdin(path) else clean(path)


@contextmanager
def _open(path: str, stdin: BinaryIO | None) -> Iterator[BinaryIO]:
    """The unpacked stream of a path; standard input stays open, since it is not ours to close."""
    if is_stdin(path):
        if stdin is None:
            import sys

            stdin = sys.stdin.buffer
        yield unpacked(stdin, STDIN_NAME)
    else:
        with open_source(path, clean(path)) as packed:
            yield unpacked(packed, clean(path))


def _load_ends(argument: str, *, stdin: BinaryIO | None, strict_lines: bool) -> tuple[Loaded, Loaded]:
    path, selector = split_argument(argument)
    if is_live(argument) or selector is not None:
        raise DocumentError(f"{clean(argument)}: one snapshot, expected two, or a recording alone")
    skips = Skips()
    reader = SampleReader(_name(path), skips, strict_lines=strict_lines)
    first: Document | None = None
    last: Document | None = None
    with _open(path, stdin) as stream:
        for document in reader.documents(stream):
            first, last = first or document, document
    if first is None or last is None or first is last:
        raise DocumentError(f"{reader.name}: one snapshot, expected two, or a recording of many samples")
    return (
        Loaded(reader.decode(first), f"{reader.name}@first", skips),
        Loaded(reader.decode(last), f"{reader.name}@last", Skips()),
    )


def _only(documents: Iterator[Document], name: str) -> Document:
    document = next(documents)
    if next(documents, None) is not None:
        raise DocumentError(f"{name}: holds many samples, expected one: {name}@last ({SELECTORS})")
    return document


def _choose(selector: str, documents: Iterator[Document], reader: SampleReader) -> Document:
    """The sample that a selector means; numbers count whole samples, not lines."""
    name = f"{reader.name}@{clean(selector)}"
    if selector == "first":
        return next(documents)
    if selector == "last":
        return deque(documents, maxlen=1)[0]
    digits = selector.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        return _by_time(selector, documents, reader, name)
    if int(digits) == 0:
        raise DocumentError(f"{name}: samples are counted from 1 (@1, and @-1 from the end)")
    chosen, count = _by_number(int(selector), documents)
    if chosen is None:
        raise DocumentError(f"{name}: the recording holds {count} whole sample{'' if count == 1 else 's'}")
    return chosen


def _by_number(number: int, documents: Iterator[Document]) -> tuple[Document | None, int]:
    """The N-th sample, and how many were seen; from the end, the last N are kept while reading."""
    kept: deque[Document] = deque(maxlen=max(1, -number))
    count = 0
    for document in documents:
        kept.append(document)
        count += 1
        if count == number:
            break
    return (kept[0], count) if kept and count >= abs(number) else (None, count)


def _by_time(selector: str, documents: Iterator[Document], reader: SampleReader, name: str) -> Document:
    """The last sample at or before a time, in the order of the file."""
    from gpusnap.timefmt import parse_rfc3339

    try:
        limit = parse_rfc3339(selector)
    except ValueError:
        raise DocumentError(f"{name}: not a sample of a recording, expected {SELECTORS}") from None
    chosen, first_time = None, None
    for document in documents:
        taken_at = document.taken_at or reader.decode(document)["taken_at"]
        first_time = first_time or taken_at
        if _is_at_or_before(taken_at, limit):
            chosen = document
    if chosen is None:
        raise DocumentError(f"{name}: no sample at or before that time, the first is of {first_time}")
    return chosen


def _is_at_or_before(taken_at: str, limit: float) -> bool:
    from gpusnap.timefmt import parse_rfc3339

    try:
        return parse_rfc3339(taken_at) <= limit
    except ValueError:
        return False
