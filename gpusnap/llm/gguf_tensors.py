"""The tensor table of a GGUF file: how many bytes each tensor takes, and to which layer it belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import gguf_constants
from gpusnap.llm.gguf_cursor import GgufError
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.llm.gguf_cursor import Cursor

MAX_TENSORS = 32_768  # 512 layers of 64 tensors; the largest published models have about 3,000
MAX_DIMENSIONS = 8
MAX_NAME = 512
MAX_BYTES = 1 << 53

TensorTable = tuple[list["Tensor"], int]
"""The tensors and the offset in the file where their data begins."""


class Tensor:
    """`size` is None where the type is newer than the installed `gguf` package, or a fork's."""

    __slots__ = ("dims", "elements", "kind", "layer", "name", "offset", "size")

    def __init__(self, name: str, dims: tuple[int, ...], kind: int, offset: int) -> None:
        self.name = name
        self.dims = dims
        self.kind = kind
        self.offset = offset
        self.elements = _product(name, dims)
        self.size = _bytes(name, dims, self.elements, kind)
        self.layer = _layer(name)


def read_tensors(cursor: Cursor, count: int, alignment: int) -> TensorTable:
    if count > MAX_TENSORS or count * 24 > cursor.remaining:
        raise GgufError(f"{count} tensors are announced: the file can't hold them")
    tensors = [_read_tensor(cursor) for _ in range(count)]
    if len({tensor.name for tensor in tensors}) < count:
        raise GgufError("two tensors have the same name")
    if sum(tensor.size for tensor in tensors if tensor.size is not None) > MAX_BYTES:
        raise GgufError("the tensors together are larger than any file")
    return tensors, -(-cursor.offset // alignment) * alignment


def _read_tensor(cursor: Cursor) -> Tensor:
    name = clean(cursor.text(MAX_NAME, "a tensor's name"))
    dimensions = cursor.u32()
    if dimensions > MAX_DIMENSIONS:
        raise GgufError(f"the tensor {name!r} has {dimensions} dimensions")
    dims = tuple(cursor.u64() for _ in range(dimensions))
    return Tensor(name, dims, cursor.u32(), cursor.u64())


def _product(name: str, dims: tuple[int, ...]) -> int:
    elements = 1
    for size in dims:
        elements *= size
        if elements > 1 << 56:
            raise GgufError(f"the tensor {name!r} has dimensions {dims}, more than any file holds")
    return elements


def _bytes(name: str, dims: tuple[int, ...], elements: int, kind: int) -> int | None:
    """As ggml_row_size: whole blocks along the first dimension."""
    known = gguf_constants.tensor_sizes().get(kind)
    if known is None:
        return None
    type_name, block, size = known
    if (dims[0] if dims else 1) % block:
        raise GgufError(f"the tensor {name!r} of type {type_name} has rows of {dims[:1]}, blocks hold {block}")
    return elements // block * size


def _layer(name: str) -> int | None:
    """`blk.12.attn_k.weight` -> 12; None for what is not in a repeating layer."""
    prefix, _, rest = name.partition(".")
    number = rest.partition(".")[0]
    if prefix == "blk" and number.isascii() and number.isdigit() and len(number) < 5:
        return int(number)
    return None
