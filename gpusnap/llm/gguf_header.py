"""Header and tensor table of a GGUF file: what a model's memory is computed from.

Format: `docs/gguf.md` of ggml, versions 2 and 3, either byte order. `gguf.GGUFReader` reads the same in 20 CPU
seconds and 700 MB for a vocabulary of 262k tokens, since it keeps every token and maps the tensor data; here
arrays are passed over, except the short integer ones that say something about each layer.

    source = TreeSource(host.root, "models/a.gguf")      # or BytesSource(data)
    header = read_header(source)

The file is somebody else's: what does not add up ends in a GgufError that says where, within the bounds that
`gguf_cursor` sets. `gguf_split.read_model` puts the parts of a split model together.
"""

from __future__ import annotations

import struct

from gpusnap.llm import gguf_constants
from gpusnap.llm.gguf_cursor import MAX_READ, MAX_STRINGS, BytesSource, Cursor, GgufError, Source, TreeSource
from gpusnap.llm.gguf_tensors import Tensor, read_tensors
from gpusnap.text import clean

__all__ = [
    "BytesSource",
    "GgufError",
    "Header",
    "Source",
    "Tensor",
    "TreeSource",
    "Value",
    "read_header",
]

Value = int | float | bool | str | list[int] | list[bool]

MAX_KEYS = 16_384  # real models have fewer than 100
MAX_KEY = 1024
MAX_STRING = 4096  # longer ones (chat templates) are passed over
MAX_KEPT = 1024  # elements of an integer array; llama.cpp allows 512 layers

# GGUFValueType -> struct code, in the format's own numbering; 8 is a string, 9 an array.
_CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_WIDTHS = {number: struct.calcsize("<" + code) for number, code in _CODES.items()}
_STRING, _ARRAY = 8, 9
_PER_LAYER = frozenset({0, 1, 2, 3, 4, 5, 7, 10, 11})


class Header:
    """What one GGUF file says about itself: `values` by key, and in `counts` the size of each array."""

    __slots__ = (
        "big_endian",
        "complete",
        "counts",
        "data_bytes",
        "data_end",
        "data_offset",
        "file_bytes",
        "missing",
        "tensors",
        "values",
        "version",
    )

    def __init__(self, version: int, big_endian: bool, file_bytes: int) -> None:
        self.version = version
        self.big_endian = big_endian
        self.file_bytes = file_bytes
        self.values: dict[str, Value] = {}
        self.counts: dict[str, int] = {}
        self.tensors: list[Tensor] = []
        self.data_offset = 0
        self.data_bytes = 0  # what is there behind the header
        self.data_end = 0  # where the last tensor ends
        self.complete = False  # all tensors are in the file: not so in a download that was cut
        self.missing: list[str] = []  # parts of a split model that could not be read

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """A whole number that is not negative; everything else is as if the key were not there."""
        value = self.values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    @property
    def architecture(self) -> str | None:
        return self.text(gguf_constants.key("General", "ARCHITECTURE", "general.architecture"))

    @property
    def name(self) -> str | None:
        return self.text(gguf_constants.key("General", "NAME", "general.name"))

    @property
    def file_type(self) -> int | None:
        return self.number(gguf_constants.key("General", "FILE_TYPE", "general.file_type"))

    @property
    def parameters(self) -> int:
        return sum(tensor.elements for tensor in self.tensors)


def read_header(source: Source, max_read: int = MAX_READ, max_strings: int = MAX_STRINGS) -> Header:
    """Raises GgufError for what llama.cpp would not load, OSError where the file can't be read."""
    cursor = Cursor(source, max_read, max_strings)
    header = _read_preamble(cursor, source.size)
    tensor_count, key_count = cursor.u64(), cursor.u64()
    if key_count > MAX_KEYS or key_count * 13 > cursor.remaining:
        raise GgufError(f"{key_count} keys are announced: the file can't hold them")
    for _ in range(key_count):
        _read_pair(cursor, header)
    header.tensors, header.data_offset = read_tensors(cursor, tensor_count, _alignment(header))
    header.data_bytes = max(0, source.size - header.data_offset)
    header.data_end = header.data_offset + max(
        (tensor.offset + (tensor.size or 0) for tensor in header.tensors), default=0
    )
    header.complete = header.data_end <= source.size
    return header


def _read_preamble(cursor: Cursor, file_bytes: int) -> Header:
    if cursor.take(4) != b"GGUF":
        raise GgufError("not a GGUF file: it does not begin with GGUF")
    version = cursor.u32()
    big_endian = version & 0xFFFF == 0  # the same test as GGUFReader's: versions are small
    if big_endian:
        cursor.set_order(">")
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version}: 2 and 3 are known")
    return Header(version, big_endian, file_bytes)


def _read_pair(cursor: Cursor, header: Header) -> None:
    key = clean(cursor.text(MAX_KEY, "a key"))
    if key in header.values or key in header.counts:
        raise GgufError(f"the key {key!r} stands there twice")
    kind = cursor.u32()
    if kind in _CODES:
        (header.values[key],) = struct.unpack(cursor.order + _CODES[kind], cursor.take(_WIDTHS[kind]))
    elif kind == _STRING:
        _read_string(cursor, header, key)
    elif kind == _ARRAY:
        _read_array(cursor, header, key)
    else:
        raise GgufError(f"the key {key!r} has the unknown type {kind}")


def _read_string(cursor: Cursor, header: Header, key: str) -> None:
    content = cursor.text_or_length(MAX_STRING)
    if isinstance(content, int):
        header.counts[key] = content
    else:
        header.values[key] = clean(content, MAX_STRING)


def _read_array(cursor: Cursor, header: Header, key: str) -> None:
    kind, count = cursor.u32(), cursor.u64()
    header.counts[key] = count
    if kind == _STRING:
        cursor.skip_strings(count)
    elif kind not in _CODES:
        raise GgufError(f"the array {key!r} has elements of type {kind}, which no loader takes")
    elif kind in _PER_LAYER and count <= MAX_KEPT:
        data = cursor.kept(count * _WIDTHS[kind])
        header.values[key] = list(struct.unpack(f"{cursor.order}{count}{_CODES[kind]}", data))
    else:
        cursor.skip(count * _WIDTHS[kind])


def _alignment(header: Header) -> int:
    key = gguf_constants.key("General", "ALIGNMENT", "general.alignment")
    if key not in header.values:
        return int(gguf_constants.load().GGUF_DEFAULT_ALIGNMENT)
    alignment = header.number(key)
    if alignment is None or alignment == 0 or alignment & (alignment - 1) or alignment > 1 << 20:
        raise GgufError(f"the alignment {header.values[key]!r} is not a power of two")
    return alignment
