"""Opening what the user named for reading: plain, gzip or zstd by content, files and pipes alike, line by line.

Nothing is read whole and nothing seeks: `gpusnap diff <(ssh host gpusnap snap) b.json` hands over a pipe.
"""

from __future__ import annotations

import errno
import io
import os
import zlib
from typing import TYPE_CHECKING, BinaryIO, Protocol

from gpusnap.codec_read import MAX_DOCUMENT_BYTES, DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# A zstd block of 4 bytes can stand for 128 KiB: so small a bite bounds what one read can unpack to 16 MiB.
_ZSTD_BITE = 512


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Rejoined(io.RawIOBase):
    """A stream with the bytes put back that were taken to look at; pipes can't seek."""

    def __init__(self, head: bytes, rest: _Readable) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head[: len(buffer)]
        self._head = self._head[len(data) :]
        if not data:
            data = self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Damaged(Exception):
    """Compressed data that does not unpack; zstandard's own error is only there once it is loaded."""


class _Zstd(io.RawIOBase):
    """Frames of zstd one after another, as log rotation appends them; a torn last frame is an EOFError."""

    def __init__(self, source: _Readable) -> None:
        import zstandard

        self._source = source
        self._context = zstandard.ZstdDecompressor()
        self._frame = self._context.decompressobj()
        self._inside = False
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            bite = self._source.read(_ZSTD_BITE)
            if not bite:
                if self._inside:
                    raise EOFError("compressed stream ends inside a frame")
                return 0
            self._ready = self._unpack(bite)
        data = self._ready[: len(buffer)]
        self._ready = self._ready[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def _unpack(self, bite: bytes) -> bytes:
        from zstandard import ZstdError

        parts = []
        while bite:
            self._inside = True
            try:
                parts.append(self._frame.decompress(bite))
            except ZstdError as error:
                raise _Damaged(str(error)) from None
            if not self._frame.eof:
                break
            bite = self._frame.unused_data
            self._frame = self._context.decompressobj()
            self._inside = False
        return b"".join(parts)


def unpacked(stream: BinaryIO, source: str) -> BinaryIO:
    """The stream, unpacked where its first bytes say gzip or zstd; DocumentError where it can't be read at all."""
    try:
        head = stream.read(4)
    except OSError as error:
        raise DocumentError(f"{source}: {_reason(error)}") from None
    whole = io.BufferedReader(_Rejoined(head, stream), 1 << 16)
    if head.startswith(_GZIP):
        import gzip

        return io.BufferedReader(gzip.GzipFile(fileobj=whole), 1 << 16)
    if head == _ZSTD:
        return io.BufferedReader(_Zstd(whole), 1 << 16)
    return whole


def open_source(path: str, source: str) -> BinaryIO:
    """A file that the user named, opened for reading; DocumentError says what stands in the way."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return open(path, "rb")
    except OSError as error:
        raise DocumentError(f"{source}: {_reason(error)}") from None
    except ValueError:
        raise DocumentError(f"{source}: no such file") from None


def numbered_lines(stream: BinaryIO, source: str) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of every line that is not blank.

    A line longer than a document may be comes back cut, so that it reads as torn; what follows it is passed
    over without keeping it. A compressed stream that ends early gives an empty last line: all of it is torn.
    """
    number = 0
    while True:
        try:
            line = stream.readline(MAX_DOCUMENT_BYTES + 2)
            if not line:
                return
            number += 1
            if len(line) > MAX_DOCUMENT_BYTES and not line.endswith(b"\n"):
                _pass_over(stream)
        except EOFError:
            yield number + 1, b""
            return
        except OSError as error:
            raise DocumentError(f"{source}: {_reason(error)}") from None
        except (zlib.error, _Damaged) as error:
            raise DocumentError(f"{source}: damaged compressed data after line {number} ({error})") from None
        if not line.isspace():
            yield number, line


def _pass_over(stream: BinaryIO) -> None:
    while True:
        part = stream.readline(1 << 20)
        if not part or part.endswith(b"\n"):
            return


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return (error.strerror or str(error)).lower()
