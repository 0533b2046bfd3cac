"""What the fuzzers feed to the header reader: sound files with a few bytes changed, cut, moved or repeated."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from gpusnap.llm.gguf_header import BytesSource, GgufError, read_header
from tests.unit.llm.gguf_files import ARRAY, STRING, U8, U32, array, gguf_file, pair, string, tensor, text_pair

if TYPE_CHECKING:
    import random

# Numbers that make readers stumble: edges of every width, and the format's own small numbers.
NUMBERS = [0, 1, 2, 3, 7, 8, 9, 12, 13, 32, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
NUMBERS += [1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


@functools.cache
def seeds() -> tuple[bytes, ...]:
    files = []
    for order in "<>":
        tokens = b"".join(string(f"tok{n}", order) for n in range(5))
        pairs = [
            text_pair("general.architecture", "llama", order),
            pair("llama.block_count", U32, struct.pack(order + "I", 2), order),
            pair("tokenizer.ggml.tokens", ARRAY, array(STRING, 5, tokens, order), order),
            pair("llama.attention.head_count", ARRAY, array(U8, 2, b"\4\4", order), order),
            pair("general.alignment", U32, struct.pack(order + "I", 32), order),
        ]
        tensors = [tensor("blk.0.a", [32, 2], 8, 0, order), tensor("blk.1.b", [64], 0, 96, order)]
        files += [gguf_file(pairs, tensors, order=order), gguf_file(pairs[:2], order=order, version=2)]
    return tuple(files)


def mutate(data: bytes, places: list[tuple[int, int, int]]) -> bytes:
    """Each (place, number, width) writes a number somewhere; width 0 cuts there, 16 repeats what stands before."""
    out = bytearray(data)
    for place, number, width in places:
        at = place % (len(out) + 1)
        if width == 0:
            del out[at:]
        elif width == 16:
            out[at:at] = out[max(0, at - 40) : at]
        else:
            kept = number & ((1 << 8 * width) - 1)
            out[at : at + width] = kept.to_bytes(width, "little" if number % 2 else "big")
    return bytes(out)


def mutated_files() -> st.SearchStrategy[bytes]:
    number = st.one_of(st.sampled_from(NUMBERS), st.integers(0, (1 << 64) - 1))
    change = st.tuples(st.integers(0, 400), number, st.sampled_from([0, 1, 2, 4, 8, 8, 16]))
    return st.builds(mutate, st.sampled_from(seeds()), st.lists(change, max_size=6))


def random_file(rng: random.Random) -> bytes:
    """The same without hypothesis, for the long run."""
    changes = [
        (
            rng.randrange(400),
            rng.choice(NUMBERS) if rng.random() < 0.7 else rng.getrandbits(64),
            rng.choice([0, 1, 2, 4, 8, 8, 16]),
        )
        for _ in range(rng.randrange(7))
    ]
    return mutate(rng.choice(seeds()), changes)


def check(data: bytes) -> bool:
    """True where the file was read; what it says must then be consistent. Anything but GgufError is a fault."""
    try:
        header = read_header(BytesSource(data))
    except GgufError:
        return False
    assert header.version in (2, 3)
    assert header.parameters >= 0
    assert all(tensor.size is None or tensor.size >= 0 for tensor in header.tensors)
    assert header.data_end >= header.data_offset > 0
    return True
