"""Headers of safetensors files, the weights of Hugging Face models.

Format: 8 bytes of length, little endian, then that much JSON: each tensor's type, shape and place. A model has one
file or a series; a folder may hold the same weights twice (Mistral's `consolidated.safetensors`): they count once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusnap.llm.gguf_cursor import TreeSource
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.host import Tree
    from gpusnap.llm.gguf_cursor import Source

MAX_HEADER = 2 << 20  # 14,000 tensors; the library's own limit of 100 MB would be a gigabyte of JSON in memory
MAX_FILES = 1024
MAX_DIMENSIONS = 16

_TYPES = {
    4: ("F4",),
    6: ("F6_E2M3", "F6_E3M2"),
    8: ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"),
    16: ("I16", "U16", "F16", "BF16"),
    32: ("I32", "U32", "F32"),
    64: ("I64", "U64", "F64", "C64"),
}
_BITS = {name: bits for bits, names in _TYPES.items() for name in names}


class SafetensorsError(Exception):
    """This is not a safetensors file; the message says what is wrong with it."""


class Weights:
    """`tensor_bytes` and `parameters` of all tensors, `types` the bytes of each type; `files` were read."""

    __slots__ = ("file_bytes", "files", "parameters", "tensor_bytes", "tensors", "types")

    def __init__(self) -> None:
        self.files = 0
        self.file_bytes = 0
        self.tensors = 0
        self.tensor_bytes = 0
        self.parameters = 0
        self.types: dict[str, int] = {}

    @property
    def main_type(self) -> str | None:
        """The type that most bytes have: `BF16`."""
        return max(self.types, key=lambda name: self.types[name], default=None)


def read_file(source: Source, weights: Weights | None = None) -> Weights:
    """Adds a file to `weights`. SafetensorsError, or OSError from the source."""
    weights = weights or Weights()
    tensors = _header(source)
    for name, entry in tensors.items():
        if name != "__metadata__":
            _add(weights, name, entry, source.size)
    weights.files += 1
    weights.file_bytes += source.size
    return weights


def _header(source: Source) -> dict[str, Any]:
    start = source.read_at(0, 8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > source.size - 8:
        raise SafetensorsError(f"a header of {length} bytes is announced in a file of {source.size}")
    if length > MAX_HEADER:
        raise SafetensorsError(f"a header of {length} bytes: at most {MAX_HEADER} are read")
    return _json(source.read_at(8, length))


def _json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SafetensorsError(f"not JSON: {clean(str(error), 200)}") from None
    if not isinstance(found, dict):
        raise SafetensorsError("not a JSON object")
    return found


def _add(weights: Weights, name: str, entry: Any, file_bytes: int) -> None:
    """The bytes are where the offsets say; shape and type must say the same, as the library demands."""
    kind, shape, place = _fields(name, entry)
    elements = 1
    for size in shape:
        elements *= size
    begin, end = place
    bits = _BITS.get(kind)
    if not begin <= end <= file_bytes or (bits is not None and elements * bits != (end - begin) * 8):
        raise SafetensorsError(f"the tensor {clean(name, 80)} does not fill its place")
    weights.tensors += 1
    weights.tensor_bytes += end - begin
    weights.parameters += elements
    weights.types[kind] = weights.types.get(kind, 0) + end - begin


def _fields(name: str, entry: Any) -> tuple[str, list[int], list[int]]:
    if isinstance(entry, dict) and isinstance(entry.get("dtype"), str):
        shape, place = _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
        if shape is not None and place is not None and len(place) == 2:
            return clean(entry["dtype"], 40), shape, place
    raise SafetensorsError(f"no type, shape and place for the tensor {clean(name, 80)}")


def _sizes(value: Any) -> list[int] | None:
    if not isinstance(value, list) or len(value) > MAX_DIMENSIONS:
        return None
    return value if all(type(number) is int and 0 <= number < 1 << 53 for number in value) else None


def read_folder(tree: Tree, folder: str) -> Weights:
    """All weights of a model's folder; an error in one file is one for the whole: a part would be a wrong sum."""
    names = _files(tree, folder)
    if not names:
        raise SafetensorsError(f"no safetensors files in {folder}")
    weights = Weights()
    for name in names:
        read_file(TreeSource(tree, f"{folder}/{name}"), weights)
    return weights


def _files(tree: Tree, folder: str) -> list[str]:
    """The files of one set of weights: a single file, or a series of which every part is there."""
    found = sorted(name for name in tree.listdir(folder) if name.endswith(".safetensors"))
    if "model.safetensors" in found:
        return ["model.safetensors"]
    found = [name for name in found if not name.startswith("consolidated")] or found
    series = [name for name in found if _parts(name) > 0 and name.startswith("model")]
    if series and len(series) != _parts(series[0]):
        raise SafetensorsError(f"{len(series)} parts of {_parts(series[0])} in {folder}")
    if len(found) > MAX_FILES:
        raise SafetensorsError(f"{len(found)} files are more than any model has")
    return series or found


def _parts(name: str) -> int:
    """`model-00002-of-00004.safetensors` -> 4; 0 for what is no part."""
    _, mark, rest = name.removesuffix(".safetensors").rpartition("-of-")
    return int(rest) if mark and rest.isascii() and rest.isdigit() and len(rest) <= 6 else 0
