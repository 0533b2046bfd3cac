"""Models in parts: any part's name stands for all of them; what is missing leaves the weights unknown."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gpusnap.live import LiveTree
from gpusnap.llm.gguf_cursor import GgufError
from gpusnap.llm.gguf_split import part_paths, read_model
from gpusnap.llm.weights import weights
from tests.unit.llm.gguf_files import ARRAY, STRING, U32, array, gguf_file, pair, tensor, text_pair

if TYPE_CHECKING:
    from pathlib import Path

U16 = 2


def split_key(count: int) -> bytes:
    return pair("split.count", U16, struct.pack("<H", count))


def write_parts(folder: Path, count: int = 3) -> LiveTree:
    for number in range(1, count + 1):
        pairs = [split_key(count)]
        if number == 1:
            pairs += [
                text_pair("general.architecture", "llama"),
                pair("llama.block_count", U32, struct.pack("<I", 3)),
            ]
        data = gguf_file(pairs, [tensor(f"blk.{number - 1}.x", [256, number])])
        data += bytes(-len(data) % 32) + bytes(1024 * number)
        (folder / f"m-{number:05}-of-{count:05}.gguf").write_bytes(data)
    return LiveTree(f"{folder}/")


@pytest.mark.parametrize("given", [1, 2, 3])
def test_any_part_stands_for_all(tmp_path: Path, given: int) -> None:
    header = read_model(write_parts(tmp_path), f"m-{given:05}-of-00003.gguf")
    assert header.architecture == "llama"
    assert weights(header).layers == [1024, 2048, 3072]
    assert weights(header).total.value == 6144
    assert header.complete
    assert header.file_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_a_missing_part_leaves_the_weights_unknown(tmp_path: Path) -> None:
    tree = write_parts(tmp_path)
    (tmp_path / "m-00002-of-00003.gguf").unlink()
    header = read_model(tree, "m-00001-of-00003.gguf")
    assert header.number("llama.block_count") == 3
    total = weights(header).total
    assert total.value is None
    assert total.provenance.startswith("null:not-exposed missing part 2 of 3: ")
    assert not header.complete


def test_a_broken_part_leaves_the_weights_unknown(tmp_path: Path) -> None:
    tree = write_parts(tmp_path)
    (tmp_path / "m-00003-of-00003.gguf").write_bytes(b"GGUF")
    assert weights(read_model(tree, "m-00001-of-00003.gguf")).total.value is None


def test_a_renamed_part_is_no_whole_model(tmp_path: Path) -> None:
    tree = write_parts(tmp_path)
    (tmp_path / "m-00001-of-00003.gguf").rename(tmp_path / "renamed.gguf")
    assert weights(read_model(tree, "renamed.gguf")).total.value is None


def test_name_and_header_that_disagree_are_an_error(tmp_path: Path) -> None:
    tree = write_parts(tmp_path)
    (tmp_path / "m-00001-of-00002.gguf").write_bytes((tmp_path / "m-00001-of-00003.gguf").read_bytes())
    with pytest.raises(GgufError, match="the name says 2 parts, the header 3"):
        read_model(tree, "m-00001-of-00002.gguf")


def test_a_later_part_may_not_bring_a_vocabulary(tmp_path: Path) -> None:
    """Every part would cost a second else, and there may be 512 of them."""
    tree = write_parts(tmp_path)
    tokens = pair("t", ARRAY, array(STRING, 2000, bytes(16_000)))
    (tmp_path / "m-00002-of-00003.gguf").write_bytes(gguf_file([tokens]))
    header = read_model(tree, "m-00001-of-00003.gguf")
    assert "strings are announced" in header.missing[0]


@pytest.mark.parametrize(
    "name",
    [
        "model.gguf", "m-00001-of-00000.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-1-of-3.gguf",
        "m-0000١-of-00003.gguf", "m-00001-of-99999.gguf", "m-00001-of-00003.bin", "-of-.gguf", "",
    ],
)  # fmt: skip
def test_names_that_are_no_parts(name: str) -> None:
    assert part_paths(name) == [name]


def test_parts_keep_their_folder() -> None:
    assert part_paths("a/b-00002-of-00002.gguf") == ["a/b-00001-of-00002.gguf", "a/b-00002-of-00002.gguf"]
