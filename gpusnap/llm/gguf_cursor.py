"""A capped walk over the head of a file that somebody else wrote.

A header is read in windows of 1 MiB through `read_at`, not through a memory map: a map of a file that shrinks
meanwhile (a download that restarts, a blob that is pruned) kills the reader with SIGBUS, and the pages of a map
count as our memory. A walk over a window is as fast. Every size is checked against the file before it is used;
what a hostile file can cost is bounded by the caps here, not by its own numbers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpusnap.host import Tree

WINDOW = 1 << 20
MAX_READ = 96 << 20  # the header of a model with 262k tokens and 515k merges is 20 MB
MAX_STRINGS = 2_000_000  # in arrays, all together; that model has 777k
MAX_KEPT = 4 << 20  # what is kept of keys, names and values, all together


class GgufError(Exception):
    """This is not a GGUF file that llama.cpp would load; the message says what and where."""


class Source(Protocol):
    """A file to read from: its size and any part of it."""

    size: int

    def read_at(self, offset: int, limit: int) -> bytes: ...


class BytesSource:
    """A header that is in memory already."""

    __slots__ = ("data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read_at(self, offset: int, limit: int) -> bytes:
        return self.data[offset : offset + limit]


class TreeSource:
    """A file of the machine: `TreeSource(host.root, "models/a.gguf")`. Raises OSError as the system does."""

    __slots__ = ("path", "size", "tree")

    def __init__(self, tree: Tree, path: str) -> None:
        self.tree = tree
        self.path = path
        self.size = tree.stat(path).size

    def read_at(self, offset: int, limit: int) -> bytes:
        return self.tree.read_at(self.path, offset, limit)


class Cursor:
    """Reads one value after the other; `order` is "<" or ">"."""

    __slots__ = (
        "_buffer",
        "_kept",
        "_left",
        "_max_read",
        "_position",
        "_source",
        "_start",
        "_strings",
        "_u32",
        "_u64",
        "order",
    )

    def __init__(self, source: Source, max_read: int = MAX_READ, max_strings: int = MAX_STRINGS) -> None:
        self._source = source
        self._start = 0
        self._position = 0
        self._buffer = b""
        self._left = self._max_read = max_read
        self._strings = max_strings
        self._kept = MAX_KEPT
        self.set_order("<")

    def set_order(self, order: str) -> None:
        self.order = order
        self._u32 = struct.Struct(order + "I").unpack_from
        self._u64 = struct.Struct(order + "Q").unpack_from

    @property
    def offset(self) -> int:
        return self._start + self._position

    @property
    def remaining(self) -> int:
        return self._source.size - self.offset

    def take(self, count: int) -> bytes:
        """The next `count` bytes; GgufError where the file ends before."""
        if self._position + count > len(self._buffer):
            self._refill(count)
        data = self._buffer[self._position : self._position + count]
        self._position += count
        return data

    def u32(self) -> int:
        (value,) = self._u32(self.take(4))
        return int(value)

    def u64(self) -> int:
        (value,) = self._u64(self.take(8))
        return int(value)

    def kept(self, count: int) -> bytes:
        """The next `count` bytes, counted against what a header may make us keep."""
        self._kept -= count
        if self._kept < 0:
            raise GgufError(f"more than {MAX_KEPT} bytes of names and values in a header")
        return self.take(count)

    def text(self, limit: int, what: str) -> bytes:
        """A string of at most `limit` bytes, which is kept."""
        length = self.u64()
        if length > limit:
            raise GgufError(f"{what} of {length} bytes at offset {self.offset}: at most {limit} are sensible")
        return self.kept(length)

    def text_or_length(self, limit: int) -> bytes | int:
        """A string, or only its length where it is longer than `limit`."""
        length = self.u64()
        if length <= limit:
            return self.kept(length)
        self.skip(length)
        return length

    def skip(self, count: int) -> None:
        if count > self.remaining:
            raise GgufError(f"{count} bytes are announced at offset {self.offset}, {self.remaining} are left")
        self._position += count

    def skip_strings(self, count: int) -> None:
        """Pass `count` strings. This loop is most of the time of a header: 8 bytes and a jump each."""
        self._strings -= count
        if count * 8 > self.remaining or self._strings < 0:
            raise GgufError(f"{count} strings are announced at offset {self.offset}: the file can't hold them")
        unpack = self._u64
        while count > 0:
            buffer, position, done = self._buffer, self._position, 0
            try:
                for done in range(count):  # noqa: B007 - how many were passed is read below
                    position += 8 + unpack(buffer, position)[0]
                done = count
            except (struct.error, OverflowError):
                pass  # the string that begins here is not in the window
            self._position = position
            count -= done
            if self.remaining < 0:
                raise GgufError(f"a string ends behind the file, which has {self._source.size} bytes")
            if count > 0:
                self._refill(8)

    def _refill(self, count: int) -> None:
        """Move the window to the position; at least `count` bytes must be there."""
        start = self._start + self._position
        if count > self._source.size - start:
            raise GgufError(f"the file ends at {self._source.size}, {count} bytes were expected at offset {start}")
        size = min(max(WINDOW, count), self._source.size - start)
        self._left -= size
        if self._left < 0:
            raise GgufError(f"the header is larger than {self._max_read} bytes")
        self._buffer = self._source.read_at(start, size)
        if len(self._buffer) < count:
            raise GgufError(f"the file ended at {start + len(self._buffer)} while it was read")
        self._start, self._position = start, 0
