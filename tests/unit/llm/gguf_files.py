"""GGUF files of the tests: sound ones by the `gguf` package's writer, broken ones byte by byte."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)


def string(value: str | bytes, order: str = "<") -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack(order + "Q", len(data)) + data


def pair(key: str | bytes, kind: int, payload: bytes, order: str = "<") -> bytes:
    return string(key, order) + struct.pack(order + "I", kind) + payload


def text_pair(key: str, value: str, order: str = "<") -> bytes:
    return pair(key, STRING, string(value, order), order)


def array(kind: int, count: int, payload: bytes = b"", order: str = "<") -> bytes:
    return struct.pack(order + "IQ", kind, count) + payload


def tensor(name: str, dims: Sequence[int], kind: int = 0, offset: int = 0, order: str = "<") -> bytes:
    shape = struct.pack(f"{order}I{len(dims)}Q", len(dims), *dims)
    return string(name, order) + shape + struct.pack(order + "IQ", kind, offset)


def gguf_file(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    *,
    version: int = 3,
    order: str = "<",
    tensor_count: int | None = None,
    key_count: int | None = None,
) -> bytes:
    head = struct.pack(
        order + "IQQ",
        version,
        len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if key_count is None else key_count,
    )
    return b"GGUF" + head + b"".join(pairs) + b"".join(tensors)


def write_with_package(
    path: Path, architecture: str, values: dict[str, Any], tensors: Sequence[Sequence[Any]] = (), **options: Any
) -> None:
    """Header and table by `gguf.GGUFWriter`, no tensor data. `tensors`: (name, dims in GGUF order, type)."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, architecture, **options)
    for key, value in values.items():
        if key != "general.architecture":
            add_value(writer, key, value)
    for name, dims, kind in tensors:
        raw = gguf.GGMLQuantizationType(kind)
        block, size = gguf.GGML_QUANT_SIZES[raw]
        if block == 1:
            count = int(np.prod(dims, dtype=np.int64))
            writer.add_tensor_info(name, list(reversed(dims)), np.dtype(np.float32), count * size, raw_dtype=raw)
        else:
            row = dims[0] // block * size
            shape = [*reversed(dims[1:]), row]
            nbytes = int(np.prod(shape, dtype=np.int64))
            writer.add_tensor_info(name, shape, np.dtype(np.uint8), nbytes, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()


def add_value(writer: Any, key: str, value: Any) -> None:
    """A list keeps the type of its first element; `{"array_of": type, "count": n}` is an array of n zeros."""
    from gguf import GGUFValueType

    if isinstance(value, dict):
        filler: Any = "" if value["array_of"] == STRING else 0
        if value["count"]:
            writer.add_key_value(key, [filler] * value["count"], GGUFValueType.ARRAY)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_int32(key, value) if value < 0 else writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value:
        writer.add_array(key, value)


def value_pair(key: str, value: int | str | list[int] | list[bool]) -> bytes:
    if isinstance(value, str):
        return text_pair(key, value)
    if isinstance(value, list):
        kind, code = (BOOL, "?") if value and isinstance(value[0], bool) else (I32, "i")
        return pair(key, ARRAY, array(kind, len(value), struct.pack(f"<{len(value)}{code}", *value)))
    return pair(key, U32, struct.pack("<I", value))


def model_bytes(architecture: str, values: dict[str, Any], tensors: Sequence[bytes] = ()) -> bytes:
    """A header with the keys of one architecture: `{"block_count": 28}` -> `qwen3.block_count`."""
    pairs = [text_pair("general.architecture", architecture)]
    pairs += [value_pair(f"{architecture}.{key}", value) for key, value in values.items()]
    return gguf_file(pairs, tensors)
