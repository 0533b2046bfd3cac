"""Files that lie: a clear error, within a second of CPU and 40 MB (`gguf.GGUFReader` hangs on some of these)."""

from __future__ import annotations

import struct
import time
import tracemalloc

import pytest

from gpusnap.llm.gguf_header import BytesSource, GgufError, Source, read_header
from tests.unit.llm.gguf_files import (
    ARRAY,
    STRING,
    U8,
    U32,
    U64,
    array,
    gguf_file,
    pair,
    string,
    tensor,
    text_pair,
)

HUGE = 1 << 62


class SparseSource:
    """A file of any size that holds `head` and then zeros, as a sparse file does; remembers what was read."""

    def __init__(self, head: bytes, size: int) -> None:
        self.head = head
        self.size = size
        self.bytes_read = 0

    def read_at(self, offset: int, limit: int) -> bytes:
        data = self.head[offset : offset + limit]
        self.bytes_read += limit
        return data + bytes(min(limit, self.size - offset) - len(data))


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def many_pairs(count: int) -> bytes:
    return gguf_file([pair(f"key.{n}", U8, b"\0") for n in range(count)])


LIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "ends at 0"),
    "four bytes": (b"GGUF", "ends at 4"),
    "another magic": (b"GGML" + bytes(64), "does not begin with GGUF"),
    "zip": (b"PK\3\4" + bytes(64), "does not begin with GGUF"),
    "version 1": (gguf_file(version=1), "version 1"),
    "version 99": (gguf_file(version=99), "version 99"),
    "no version": (gguf_file(version=0), "version 0"),
    "2^60 keys": (gguf_file(key_count=1 << 60), "keys are announced"),
    "2^60 tensors": (gguf_file(tensor_count=1 << 60), "tensors are announced"),
    "keys that are not there": (gguf_file([text_pair("a", "b")], key_count=2), "keys are announced"),
    "key of 2^62 bytes": (gguf_file([struct.pack("<Q", HUGE) + bytes(32)]), "a key of"),
    "string of 2^62 bytes": (gguf_file([pair("a", STRING, struct.pack("<Q", HUGE))]), "bytes are announced"),
    "string of 2^64-1 bytes": (gguf_file([pair("a", STRING, b"\xff" * 8)]), "bytes are announced"),
    "u8 array of 2^40": (gguf_file([pair("a", ARRAY, array(U8, 1 << 40))]), "bytes are announced"),
    "u64 array of 2^62": (gguf_file([pair("a", ARRAY, array(U64, HUGE))]), "bytes are announced"),
    "string array of 2^40": (gguf_file([pair("a", ARRAY, array(STRING, 1 << 40))]), "strings are announced"),
    "array of arrays": (
        gguf_file([pair("a", ARRAY, array(ARRAY, 1, array(ARRAY, 1)))]),
        "no loader takes",
    ),
    "token of 2^62 bytes": (
        gguf_file([pair("a", ARRAY, array(STRING, 2, struct.pack("<Q", HUGE) + bytes(8)))]),
        "ends behind the file",
    ),
    "token of 2^64-1 bytes": (
        gguf_file([pair("a", ARRAY, array(STRING, 2, b"\xff" * 8 + bytes(8)))]),
        "ends behind the file",
    ),
    "value type 13": (gguf_file([pair("a", 13, bytes(8))]), "unknown type 13"),
    "array type 13": (gguf_file([pair("a", ARRAY, array(13, 1, bytes(8)))]), "elements of type 13"),
    "the same key twice": (gguf_file([text_pair("a", "b"), text_pair("a", "c")]), "twice"),
    "the same tensor twice": (gguf_file((), [tensor("a", [1]), tensor("a", [1])]), "same name"),
    "alignment 0": (gguf_file([pair("general.alignment", U32, u32(0))]), "power of two"),
    "alignment 33": (gguf_file([pair("general.alignment", U32, u32(33))]), "power of two"),
    "alignment as text": (gguf_file([text_pair("general.alignment", "32")]), "power of two"),
    "2^32 dimensions": (gguf_file((), [string("a") + u32(0xFFFFFFFF) + bytes(40)]), "dimensions"),
    "dimensions that overflow": (gguf_file((), [tensor("a", [HUGE, HUGE])]), "more than any file holds"),
    "dimensions that wrap to 0": (gguf_file((), [tensor("a", [1 << 32, 1 << 32])]), "more than any file holds"),
    "half a block": (gguf_file((), [tensor("a", [33], kind=8)]), "blocks hold 32"),
    "tensors larger than any disk": (
        gguf_file((), [tensor(f"t{n}", [1 << 50]) for n in range(3)]),
        "larger than any file",
    ),
    "too many keys": (many_pairs(20_000), "keys are announced"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_told_in_one_sentence(lie: str) -> None:
    data, words = LIES[lie]
    with pytest.raises(GgufError, match=words):
        read_header(BytesSource(data))


def seconds_and_words(source: Source) -> tuple[float, str]:
    started = time.process_time()
    said = outcome(source)
    return time.process_time() - started, said


def peak_bytes(source: Source) -> int:
    """In a run of its own: tracing makes everything ten times slower."""
    tracemalloc.start()
    outcome(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def outcome(source: Source) -> str:
    try:
        read_header(source)
    except GgufError as error:
        return str(error)
    return "read"


TERABYTES = 1 << 44


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (gguf_file([pair("a", ARRAY, array(STRING, 1 << 40))]), "strings are announced"),
        (gguf_file([pair("a", ARRAY, array(STRING, 1_999_999))]), "read"),
        (
            gguf_file([pair(f"a{n}", ARRAY, array(STRING, 500)) + bytes(4000) for n in range(7000)]),
            "strings are announced",
        ),
        (gguf_file(key_count=16_000), "twice"),
        (gguf_file([pair("a", ARRAY, array(U8, 1 << 40))]), "read"),
        (gguf_file(tensor_count=32_000), "same name"),
    ],
    ids=["2^40 strings", "2M strings", "many string arrays", "empty keys", "one huge array", "empty tensors"],
)
def test_a_sparse_file_of_terabytes_costs_little(head: bytes, words: str) -> None:
    seconds, said = seconds_and_words(SparseSource(head, TERABYTES))
    assert words in said
    assert seconds < 1


def test_strings_that_jump_over_windows_stop_at_the_read_cap() -> None:
    """Each token is 1 MiB and a bit, so that every one of 2 million would cost a read."""
    jump = struct.pack("<Q", (1 << 20) + 16)

    class Jumps(SparseSource):
        def read_at(self, offset: int, limit: int) -> bytes:
            self.bytes_read += limit
            data = bytearray(super().read_at(offset, limit)) if offset == 0 else bytearray(limit)
            first = len(self.head) if offset == 0 else 0
            data[first : first + 8] = jump
            return bytes(data)

    source = Jumps(gguf_file([pair("a", ARRAY, array(STRING, 1_900_000))]), TERABYTES)
    seconds, said = seconds_and_words(source)
    assert "the header is larger than" in said
    assert seconds < 1
    assert source.bytes_read < 2 * (96 << 20)
    assert peak_bytes(source) < 40 << 20


def test_many_real_looking_keys_and_tensors_stay_small() -> None:
    """As much as the caps let through: 16,000 keys with names and values, and 30,000 tensors."""
    pairs = [text_pair(f"general.a.key.of.some.length.{n}", "value" * 20) for n in range(16_000)]
    tensors = [tensor(f"blk.{n % 512}.some_weight_{n}.weight", [256, 256, 8]) for n in range(30_000)]
    data = gguf_file(pairs, tensors)
    seconds, said = seconds_and_words(BytesSource(data))
    assert said == "read"
    assert seconds < 1
    assert peak_bytes(BytesSource(data)) < 40 << 20


def test_names_and_values_that_fill_the_memory_stop_at_the_cap() -> None:
    pairs = [text_pair(f"k{n}", "v" * 4096) for n in range(1100)]
    with pytest.raises(GgufError, match="bytes of names and values"):
        read_header(BytesSource(gguf_file(pairs)))


def test_every_cut_of_a_sound_file_is_an_error() -> None:
    data = gguf_file(
        [
            text_pair("general.architecture", "llama"),
            pair("t", ARRAY, array(STRING, 2, string("a") + string("bc"))),
        ],
        [tensor("blk.0.x", [32, 2])],
    )
    for length in range(len(data)):
        with pytest.raises(GgufError):
            read_header(BytesSource(data[:length]))


def test_a_file_that_shrinks_while_it_is_read_is_an_error() -> None:
    class Shrinking(SparseSource):
        def read_at(self, offset: int, limit: int) -> bytes:
            return super().read_at(offset, limit)[: (1 << 20) - offset] if offset < 1 << 20 else b""

    head = gguf_file([pair("a", ARRAY, array(STRING, 200_000)) + bytes(1_600_000), text_pair("b", "c")])
    with pytest.raises(GgufError, match="while it was read"):
        read_header(Shrinking(head, len(head)))
