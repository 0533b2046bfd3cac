"""The whole documents of one stream: the lines of a recording, or one document on its own.

A line that is torn (power failed, disk full) or foreign (a stray message) is passed over and counted in
`Skips`; readers that were told to be strict get an error instead. A newer major version always is one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.codec_read import MAX_DOCUMENT_BYTES, DocumentError, Reader
from gpusnap.model import SNAPSHOT_SCHEMA
from gpusnap.streams import numbered_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from gpusnap.model import Snapshot

# What every line of a recording begins with, torn ones too.
_LINE_START = b'{"schema":"' + SNAPSHOT_SCHEMA.split("/")[0].encode() + b"/"
_RECORDING_ENDINGS = (".jsonl", ".ndjson")
_NAMED_LINES = 20
# Of another program's log or table, this much is looked at to name it.
_HEAD_BYTES = 1 << 16


class Sample(NamedTuple):
    """One whole sample of a recording and the line it stands on."""

    line_number: int
    doc: Snapshot


class Skips:
    """Lines that were passed over: how many, and where the first of them stand."""

    __slots__ = ("count", "lines")

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[int] = []

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < _NAMED_LINES:
            self.lines.append(line)

    def message(self, source: str) -> str | None:
        """`rec.jsonl: skipped 2 lines that are no whole samples (lines 7, 12)`; None where none was skipped."""
        if not self.count:
            return None
        places = ", ".join(map(str, self.lines)) + (", …" if self.count > len(self.lines) else "")
        if self.count == 1:
            return f"{source}: skipped 1 line that is no whole sample (line {places})"
        return f"{source}: skipped {self.count} lines that are no whole samples (lines {places})"


class Document(NamedTuple):
    """Bytes of one document; in a recording its line and time, None where the document stands alone."""

    data: bytes
    line: int | None
    taken_at: str | None


class SampleReader:
    """Reads one stream from front to back, once, without ever holding more than one document."""

    def __init__(self, name: str, skips: Skips, *, strict_lines: bool = False) -> None:
        self.name = name
        self._skips = skips
        self._strict = strict_lines
        self._reader = Reader(name)

    def decode(self, document: Document) -> Snapshot:
        return self._reader.read(document.data, document.line)

    def samples(self, stream: BinaryIO) -> Iterator[Sample]:
        """Every sample, fully checked; a document alone is a recording of one."""
        for document in self.documents(stream):
            try:
                sample = Sample(document.line or 1, self.decode(document))
            except DocumentError:
                if document.line is None or self._strict:
                    raise
                # Whole JSON of ours with one wrong value inside: one line of many is no reason to stop.
                self._skips.add(document.line)
                continue
            yield sample

    def documents(self, stream: BinaryIO) -> Iterator[Document]:
        """At least one, not decoded yet; DocumentError where there is none.

        A first line that is a whole document with more after it begins a recording, and so does a torn one;
        anything else is one document, on one line or on many.
        """
        lines = numbered_lines(stream, self.name)
        first = next(lines, None)
        if first is None:
            raise DocumentError(f"{self.name}: empty, expected a gpusnap snapshot")
        second = next(lines, None)
        if not first[1] and second is None:
            raise DocumentError(f"{self.name}: the compressed data ends too early, before its first line does")
        if second is None:
            yield Document(first[1], None, None)
            return
        together = itertools.chain((first, second), lines)
        if self._begins_recording(first[1]):
            yield from self._lines_of_recording(together)
        else:
            yield Document(self._joined(together), None, None)

    def _begins_recording(self, line: bytes) -> bool:
        plain_name = self.name.removesuffix(".gz").removesuffix(".zst")
        if plain_name.endswith(_RECORDING_ENDINGS) or line.startswith(_LINE_START):
            return True
        return self._reader.head(line, 1) is not None

    def _lines_of_recording(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[Document]:
        found = False
        for number, line in lines:
            head = self._reader.head(line, number)
            if head is not None:
                found = True
                yield Document(line, number, head.taken_at)
            elif self._strict:
                raise DocumentError(
                    f"{self.name}: line {number}: torn or foreign, expected a whole {SNAPSHOT_SCHEMA}"
                )
            else:
                self._skips.add(number)
        if not found:
            raise DocumentError(
                f"{self.name}: no whole sample in {self._skips.count} line{'s' * (self._skips.count != 1)}, "
                f"expected {SNAPSHOT_SCHEMA}"
            )

    def _joined(self, lines: Iterator[tuple[int, bytes]]) -> bytes:
        """One document of many lines; of a text that is none, as much as tells what it is."""
        whole = bytearray()
        for _, line in lines:
            whole += line
            if len(whole) > MAX_DOCUMENT_BYTES:
                raise DocumentError(f"{self.name}: longer than {MAX_DOCUMENT_BYTES >> 20} MiB, no snapshot")
            if len(whole) > _HEAD_BYTES and not whole[:16].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                break
        return bytes(whole)
