"""Weights of Hugging Face folders; the layouts are those of public models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.live import LiveTree
from gpusnap.llm.gguf_cursor import BytesSource
from gpusnap.llm.safetensors import SafetensorsError, Weights, read_file, read_folder

if TYPE_CHECKING:
    from pathlib import Path


def packed(header: Any, data: int = 0) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def entry(kind: str, shape: list[Any], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def read(data: bytes) -> Weights:
    return read_file(BytesSource(data))


def test_sums_of_a_file() -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "a": entry("BF16", [4, 8], 0, 64),
        "b": entry("F32", [3], 64, 76),
        "c": entry("F4", [2, 16], 76, 92),
        "d": entry("I64", [], 92, 100),
    }
    found = read(packed(header, 100))
    assert (found.tensors, found.tensor_bytes, found.parameters) == (4, 100, 32 + 3 + 32 + 1)
    assert found.types == {"BF16": 64, "F32": 12, "F4": 16, "I64": 8}
    assert found.main_type == "BF16"


def test_a_type_of_tomorrow_counts_by_its_place() -> None:
    found = read(packed({"a": entry("F8_NEW", [7], 0, 7)}, 7))
    assert (found.tensor_bytes, found.main_type) == (7, "F8_NEW")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "announced"),
        (b"\0" * 7, "announced"),
        (b"\xff" * 8 + b"{}", "announced"),
        ((1 << 62).to_bytes(8, "little") + b"{}", "announced"),
        (packed(b"{"), "not JSON"),
        (packed(b"[" * 100_000), "not JSON"),
        (packed(b'{"a":' + b"9" * 5000 + b"}"), "not JSON"),
        (packed(b"\xff\xfe{}"), "not JSON"),
        (packed([1]), "not a JSON object"),
        (packed({"a": 1}), "no type, shape and place"),
        (packed({"a": {"dtype": "F32", "shape": [1]}}), "no type, shape and place"),
        (packed({"a": entry("F32", ["1"], 0, 4)}, 4), "no type, shape and place"),
        (packed({"a": entry("F32", [True], 0, 4)}, 4), "no type, shape and place"),
        (packed({"a": entry("F32", [-1], 0, 4)}, 4), "no type, shape and place"),
        (packed({"a": entry("F32", [2**53] * 1000, 0, 4)}, 4), "no type, shape and place"),
        (packed({"a": entry("F32", [2], 0, 4)}, 4), "does not fill its place"),
        (packed({"a": entry("F32", [2**52, 2**52], 0, 4)}, 4), "does not fill its place"),
        (packed({"a": entry("F32", [1], 4, 0)}, 4), "does not fill its place"),
        (packed({"a": entry("F32", [1000], 0, 4000)}, 4), "does not fill its place"),
        (packed(b"{}" + b" " * (3 << 20)), "at most"),
    ],
)  # fmt: skip
def test_what_is_no_safetensors_file(data: bytes, words: str) -> None:
    with pytest.raises(SafetensorsError, match=words):
        read(data)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 2**60), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)
ENTRY = st.one_of(
    JSON, st.fixed_dictionaries({"dtype": JSON, "shape": JSON, "data_offsets": st.lists(JSON, max_size=3)})
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.text(max_size=4), ENTRY, max_size=4), st.integers(0, 64))
def test_any_json_ends_in_sums_or_an_error(header: dict[str, Any], data: int) -> None:
    try:
        found = read(packed(header, data))
    except SafetensorsError:
        return
    assert found.tensor_bytes >= 0
    assert found.parameters >= 0


def folder(tmp_path: Path, *names: str) -> LiveTree:
    for number, name in enumerate(names, 1):
        data = packed({f"t{number}": entry("BF16", [number * 512], 0, number * 1024)}, number * 1024)
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m" / name).write_bytes(data)
    return LiveTree(f"{tmp_path}/")


def test_a_series_is_one_model(tmp_path: Path) -> None:
    tree = folder(tmp_path, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    found = read_folder(tree, "m")
    assert (found.files, found.tensor_bytes) == (2, 3072)
    assert found.file_bytes == sum(path.stat().st_size for path in (tmp_path / "m").iterdir())


def test_mistrals_second_copy_counts_once(tmp_path: Path) -> None:
    tree = folder(
        tmp_path,
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "consolidated-00001-of-00001.safetensors",
        "consolidated.safetensors",
    )
    assert read_folder(tree, "m").tensor_bytes == 3072


def test_a_single_file_is_the_model_whatever_else_lies_there(tmp_path: Path) -> None:
    assert read_folder(folder(tmp_path, "model.safetensors", "model.fp16.safetensors"), "m").tensor_bytes == 1024


def test_mistral_alone_has_its_consolidated_file(tmp_path: Path) -> None:
    assert read_folder(folder(tmp_path, "consolidated.safetensors"), "m").tensor_bytes == 1024


def test_a_series_with_a_hole_is_an_error(tmp_path: Path) -> None:
    tree = folder(tmp_path, "model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors")
    with pytest.raises(SafetensorsError, match="2 parts of 3"):
        read_folder(tree, "m")


def test_a_broken_part_is_an_error_for_the_whole(tmp_path: Path) -> None:
    tree = folder(tmp_path, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    (tmp_path / "m" / "model-00002-of-00002.safetensors").write_bytes(b"{}")
    with pytest.raises(SafetensorsError):
        read_folder(tree, "m")


def test_a_folder_without_weights_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    with pytest.raises(SafetensorsError, match="no safetensors"):
        read_folder(LiveTree(f"{tmp_path}/"), "m")
