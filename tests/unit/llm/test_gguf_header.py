"""The header reader against files of the `gguf` package's writer, and against its reader."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gpusnap.llm.gguf_header import BytesSource, Header, read_header
from tests.unit.llm.gguf_files import (
    ARRAY,
    BOOL,
    F32,
    I32,
    STRING,
    U8,
    U32,
    array,
    gguf_file,
    pair,
    string,
    tensor,
    text_pair,
    write_with_package,
)

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {
    "general.name": "Tiny Llama",
    "general.file_type": 15,
    "llama.block_count": 2,
    "llama.attention.head_count": [4, 8],
    "llama.attention.sliding_window_pattern": [True, False],
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": [f"token{n}" for n in range(2000)],
    "tokenizer.ggml.scores": [0.5] * 2000,
}
TENSORS = [
    ("token_embd.weight", [256, 2000], 12),  # Q4_K: 256 elements in 144 bytes
    ("blk.0.attn_q.weight", [256, 64], 8),  # Q8_0: 32 in 34
    ("blk.1.attn_norm.weight", [256], 0),
    ("blk.11.ffn_up.weight", [256, 8, 3], 30),  # BF16
    ("output.weight", [256, 2000], 14),  # Q6_K: 256 in 210
]


def read(data: bytes) -> Header:
    return read_header(BytesSource(data))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_with_package(path, "llama", VALUES, TENSORS)
    return path.read_bytes()


def test_names_and_values_are_those_that_were_written(written: bytes) -> None:
    header = read(written)
    assert (header.version, header.big_endian) == (3, False)
    assert (header.architecture, header.name, header.file_type) == ("llama", "Tiny Llama", 15)
    assert header.number("llama.block_count") == 2
    assert header.values["llama.rope.freq_base"] == 10000.0


def test_short_integer_arrays_are_kept_and_long_ones_counted(written: bytes) -> None:
    header = read(written)
    assert header.values["llama.attention.head_count"] == [4, 8]
    assert header.values["llama.attention.sliding_window_pattern"] == [True, False]
    assert header.counts["tokenizer.ggml.tokens"] == 2000
    assert "tokenizer.ggml.tokens" not in header.values
    assert "tokenizer.ggml.scores" not in header.values


def test_tensor_bytes_follow_the_block_sizes(written: bytes) -> None:
    sizes = {tensor.name: (tensor.size, tensor.layer) for tensor in read(written).tensors}
    assert sizes == {
        "token_embd.weight": (2000 * 144, None),
        "blk.0.attn_q.weight": (64 * 8 * 34, 0),
        "blk.1.attn_norm.weight": (1024, 1),
        "blk.11.ffn_up.weight": (256 * 8 * 3 * 2, 11),
        "output.weight": (2000 * 210, None),
    }


def test_parameters_are_the_elements_of_all_tensors(written: bytes) -> None:
    assert read(written).parameters == 256 * (2000 + 64 + 1 + 24 + 2000)


def test_same_answers_as_the_packages_reader(tmp_path: Path) -> None:
    import gguf
    import numpy as np

    path = tmp_path / "whole.gguf"
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_name("Whole")
    writer.add_uint64("qwen3.big", 2**63)
    writer.add_int8("qwen3.small", -5)
    writer.add_array("qwen3.types", [1, 0, 1])
    writer.add_token_list(["a", "b", "", "ü"])
    writer.add_tensor("blk.0.a", np.ones((3, 32), dtype=np.float16))
    writer.add_tensor("b", np.ones(7, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    ours, theirs = read(path.read_bytes()), gguf.GGUFReader(path)
    assert ours.data_offset == theirs.data_offset
    assert ours.data_end == path.stat().st_size - 4  # the writer pads the last tensor, 28 bytes, to 32
    for own, peer in zip(ours.tensors, theirs.tensors, strict=True):
        assert (own.name, own.size, own.elements) == (peer.name, peer.n_bytes, peer.n_elements)
        assert (own.kind, own.dims) == (int(peer.tensor_type), tuple(map(int, peer.shape)))
        assert own.offset + ours.data_offset == peer.data_offset
    for key, value in ours.values.items():
        assert theirs.fields[key].contents() == value
    names = {key for key in theirs.fields if not key.startswith("GGUF.")}
    assert names == set(ours.values) | set(ours.counts)


def test_big_endian_file_gives_the_same_answers(tmp_path: Path, written: bytes) -> None:
    import gguf

    path = tmp_path / "big.gguf"
    write_with_package(path, "llama", VALUES, TENSORS, endianess=gguf.GGUFEndian.BIG)
    big, little = read(path.read_bytes()), read(written)
    assert big.big_endian is True
    assert big.version == 3
    assert (big.values, big.counts, big.data_offset) == (little.values, little.counts, little.data_offset)
    assert [(t.name, t.size, t.offset) for t in big.tensors] == [
        (t.name, t.size, t.offset) for t in little.tensors
    ]


def test_version_2_reads_as_version_3() -> None:
    header = read(gguf_file([text_pair("general.architecture", "llama")], [tensor("a", [32])], version=2))
    assert (header.version, header.architecture, header.tensors[0].size) == (2, "llama", 128)


def test_long_string_is_passed_over_and_what_follows_is_read() -> None:
    header = read(
        gguf_file([text_pair("tokenizer.chat_template", "x" * 300_000), pair("a.b", U32, struct.pack("<I", 7))])
    )
    assert header.values == {"a.b": 7}
    assert header.counts == {"tokenizer.chat_template": 300_000}


def test_strings_longer_than_a_window_are_passed_over() -> None:
    tokens = array(STRING, 3, string(b"a" * 3_000_000) + string(b"") + string(b"b" * 1_500_000))
    header = read(gguf_file([pair("t", ARRAY, tokens), text_pair("general.name", "after")]))
    assert header.name == "after"


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9])
def test_strings_across_the_edge_of_a_window(length: int) -> None:
    """The window ends at 1 MiB: strings of each length make the edge fall at every place of a string."""
    count = (1 << 20) // (length + 8) + 20
    tokens = array(STRING, count, string(b"x" * length) * count)
    header = read(gguf_file([pair("t", ARRAY, tokens), text_pair("general.name", "after")]))
    assert (header.counts["t"], header.name) == (count, "after")


def test_alignment_moves_the_data() -> None:
    pairs = [pair("general.alignment", U32, struct.pack("<I", 4096))]
    assert read(gguf_file(pairs, [tensor("a", [1])])).data_offset == 4096


def test_tensor_type_of_a_fork_has_no_size() -> None:
    header = read(gguf_file((), [tensor("a", [32], kind=137), tensor("b", [32], kind=0)]))
    assert [t.size for t in header.tensors] == [None, 128]


def test_names_that_are_not_utf8_stay_readable() -> None:
    header = read(gguf_file([pair("general.name", STRING, string(b"Llama\xff\x1b[31m"))]))
    assert header.name == "Llama\\xff\\x1b[31m"


def test_a_negative_or_odd_value_is_no_number() -> None:
    pairs = [
        pair("a", I32, struct.pack("<i", -1)),
        pair("b", BOOL, b"\1"),
        pair("c", F32, struct.pack("<f", 1.0)),
        pair("d", ARRAY, array(U8, 2, b"\1\2")),
    ]
    header = read(gguf_file(pairs))
    assert [header.number(key) for key in "abcde"] == [None] * 5
    assert header.values["d"] == [1, 2]
