"""Strict reading: bytes to a snapshot, or one line that says what is wrong and where.

Unknown keys are accepted (and dropped), since version 1 of the schema may gain some; a newer major version and
anything that is not a gpusnap snapshot are refused by naming the file, the line, the path inside and what was
expected. The types of `model.py` are the check; msgspec walks them while it parses, which costs less than parsing
without any check.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.codec_check import fault_in
from gpusnap.codec_clean import with_printable_text
from gpusnap.model import SNAPSHOT_SCHEMA, Snapshot

if TYPE_CHECKING:
    import msgspec

# 10,000 rows take 14 MB; what is larger than this is no snapshot of one machine.
MAX_DOCUMENT_BYTES = 1 << 28
_FAMILY, _MAJOR = SNAPSHOT_SCHEMA.split("/")
STDIN_NAME = "standard input"  # what a source is called that has no name
_BINARY = "binary data"


class DocumentError(ValueError):
    """A file or stream that can't be read as what was asked for; the message is one whole line for people."""


class Head(NamedTuple):
    """What a reader of many lines needs to know of one before it decodes the whole."""

    schema: str
    taken_at: str


class _Decoders:
    """Built at the first document and kept: defining them costs two milliseconds."""

    __slots__ = ("head", "snapshot")

    def __init__(self) -> None:
        import msgspec

        self.snapshot = msgspec.json.Decoder(Snapshot)
        self.head: msgspec.json.Decoder[object] = msgspec.json.Decoder(
            msgspec.defstruct("Head", [("schema", str), ("taken_at", str)])
        )


@functools.cache
def _decoders() -> _Decoders:
    return _Decoders()


class Reader:
    """Decodes documents of one source. `line` is given where the source is JSON Lines."""

    __slots__ = ("_decoders", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._decoders = _decoders()

    def read(self, data: bytes, line: int | None = None) -> Snapshot:
        """The whole document, checked; DocumentError else."""
        import msgspec

        if len(data) > MAX_DOCUMENT_BYTES:
            raise DocumentError(
                f"{_place(self.source, line)}: longer than {MAX_DOCUMENT_BYTES >> 20} MiB, no snapshot"
            )
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            doc: Snapshot = self._decoders.snapshot.decode(data)
        except msgspec.ValidationError as error:
            raise self._invalid(data, line, str(error)) from None
        except msgspec.DecodeError as error:
            raise self._malformed(data, line, str(error)) from None
        except RecursionError:
            raise DocumentError(f"{_place(self.source, line)}: nested too deeply, no gpusnap document") from None
        if doc["schema"] != SNAPSHOT_SCHEMA:
            raise self._foreign_schema(doc["schema"], line)
        fault = fault_in(doc)
        if fault is not None:
            raise DocumentError(f"{_place(self.source, line)}: {fault}")
        return with_printable_text(doc, data)

    def head(self, data: bytes, line: int | None = None) -> Head | None:
        """The head of a line that is whole JSON and a snapshot; None where it is torn or another tool's.

        A newer major version is neither: it raises, so that no reader skips what it should not miss.
        """
        import msgspec

        try:
            found = self._decoders.head.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        head = Head(found.schema, found.taken_at)  # type: ignore[attr-defined]
        if head.schema == SNAPSHOT_SCHEMA:
            return head
        if _is_newer(head.schema):
            raise self._foreign_schema(head.schema, line)
        return None

    def _invalid(self, data: bytes, line: int | None, words: str) -> DocumentError:
        """JSON, but not of our types: another schema, another tool, or one wrong value."""
        schema = _peek(data, "schema")
        if isinstance(schema, str):
            if schema != SNAPSHOT_SCHEMA:
                return self._foreign_schema(schema, line)
            what, path = _in_our_words(words)
            where = _place(self.source, line if line is not None else _only_line(data))
            return DocumentError(f"{where}: {path}: {what}" if path else f"{where}: {what}")
        why = 'key "schema" is missing' if schema is None else 'key "schema" is not a text'
        if words.startswith("Expected `object`"):
            why = _in_our_words(words)[0]
        tool = _whose(data)
        if tool:
            why += f"; looks like {tool}"
        return DocumentError(
            f"{self.source}: not a gpusnap document (line {line or 1}: {why}); {_hint(self.source)}"
        )

    def _malformed(self, data: bytes, line: int | None, words: str) -> DocumentError:
        """Not JSON at all, or JSON that ends too early."""
        what = _what_it_is(data)
        if what:
            hint = _hint(self.source, may_replace=what != _BINARY)
            return DocumentError(f"{self.source}: {what}, expected a gpusnap snapshot; {hint}")
        if "truncated" in words:
            at = line if line is not None else data.count(b"\n", 0, len(data.rstrip())) + 1
            return DocumentError(
                f"{self.source}: line {at}: the JSON ends too early (truncated after {len(data)} bytes)"
            )
        words, _, position = words.removesuffix(")").partition(" (byte ")
        offset = int(position) if position.isdigit() else 0
        at = line if line is not None else data.count(b"\n", 0, offset) + 1
        column = offset - (data.rfind(b"\n", 0, offset) + 1) + 1
        where = f"{self.source}: line {at}" + (f", column {column}" if position else "")
        return DocumentError(
            f"{where}: not JSON ({words.removeprefix('JSON is malformed: ')}), expected a gpusnap snapshot"
        )

    def _foreign_schema(self, schema: str, line: int | None) -> DocumentError:
        from gpusnap.text import clean

        where = _place(self.source, line)
        shown = clean(schema, 60)
        if _is_newer(schema):
            return DocumentError(
                f"{where}: {shown} is newer than what this gpusnap reads ({SNAPSHOT_SCHEMA}); update gpusnap"
            )
        return DocumentError(f'{where}: schema is "{shown}", expected "{SNAPSHOT_SCHEMA}"')


def _place(source: str, line: int | None) -> str:
    return source if line is None else f"{source}: line {line}"


def _only_line(data: bytes) -> int | None:
    """1 for a document on one line; where it is indented, the path inside says more than a line would."""
    return None if b"\n" in data.rstrip() else 1


def _is_newer(schema: str) -> bool:
    family, _, major = schema.partition("/")
    return family == _FAMILY and major.isascii() and major.isdigit() and int(major[:9]) > int(_MAJOR)


def _in_our_words(words: str) -> tuple[str, str]:
    """msgspec's "Expected `int`, got `str` - at `$.a[0].b`" -> ("expected int, got str", "a[0].b")."""
    words, _, path = words.partition(" - at ")
    path = path.strip("`").removeprefix("$").removeprefix(".")
    if words.startswith("Object missing required field "):
        return f'key "{words.split("`")[1]}" is missing', path
    if words.startswith("Expected `int` "):  # `<= 9007199254740992`, or `>=` its negative
        return "expected a whole number within 2^53", path
    words = words.replace("`", "").replace(" | ", " or ")
    return words[:1].lower() + words[1:], path


def _peek(data: bytes, key: str) -> object:
    """One top-level value of whatever JSON this is, without its types; None where there is none."""
    import msgspec

    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(found[key])
    except (msgspec.DecodeError, RecursionError, KeyError):
        return None


# Keys by which the JSON of others is told, and what people typed to get it.
_OTHERS = (
    (b'"query_time"', b'"gpus"', "gpustat --json"),
    (b'"device_name"', b'"gpu_clock"', "nvtop -s"),
    (b'"VRAM Total Memory (B)"', b'"card', "rocm-smi --json"),
    (b'"VRAM"', b'"fdinfo"', "amdgpu_top --json"),
)


def _whose(data: bytes) -> str | None:
    start = data[:65536]
    for first, second, tool in _OTHERS:
        if first in start and second in start:
            return tool
    return None


def _hint(source: str, *, may_replace: bool = True) -> str:
    """How such a file comes about; nobody is told to write over a program, or into standard input."""
    if source == STDIN_NAME or not may_replace:
        return "taken with `gpusnap snap`?"
    from shlex import quote

    return f"taken with `gpusnap snap > {quote(source)}`?"


def _what_it_is(data: bytes) -> str | None:
    """Kinds of file that are no JSON and worth a name of their own."""
    start = data[:4096].lstrip()
    if not start:
        return "empty"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or (b"\0" in start[:4] and b"{" in start[:4]):
        return "UTF-16 text (PowerShell's `>` writes it; use `gpusnap snap -o FILE`)"
    if start.startswith(b"<?xml"):
        return "XML (nvidia-smi -q -x?)"
    if b"NVIDIA-SMI" in start:
        return "the table of nvidia-smi"
    if b"\0" in start:
        return _BINARY
    return None
