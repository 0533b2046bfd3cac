"""Broken logs: pieces of real ones, tokens that parsers trip over, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.logs import breakdown, sglang, vllm
from gpusnap.llm.logs.lines import MAX_LINES, memory_lines
from gpusnap.llm.logs.llama_cpp import last_complete, read
from tests.unit.llm.log_data import log, names

if TYPE_CHECKING:
    import random

PIECES = sorted({line for name in names() for line in log(name).splitlines()})
TOKENS = [
    b"MiB", b" = ", b"buffer size", b"KV", b"llama_kv_cache:", b"load_tensors: ", b"CUDA0", b"9" * 40, b"-1",
    b"[34m", b"\x1b[", b'{"msg":"', b"(", b"GiB", b"time=2025 level=INFO msg=", b'"', b"\xff\xfe", b"\0", b"\n",
    b"\r", b"|", b"- ", b"KV Cache is allocated. #tokens: ", b"Model loading took ", b"1e308", b"nan", b"0,0,0",
]  # fmt: skip


def read_all(data: bytes) -> int:
    """Every parser on every line; how many figures came out."""
    found = memory_lines(data)
    assert len(found) <= MAX_LINES
    loads = read(found)
    last_complete(loads)
    for load in loads:
        assert all(nbytes >= 0 for _, _, nbytes in load.rows())
        load.by_device()
    rows = breakdown.read(found)
    ranks = [*vllm.read(found).values(), *sglang.read(found).values()]
    return sum(len(load.rows()) for load in loads) + len(rows) + len(ranks)


def random_log(rng: random.Random) -> bytes:
    """Whole lines, torn lines, and lines with a few bytes changed."""
    lines = []
    for _ in range(rng.randrange(1, 12)):
        line = bytearray(rng.choice(PIECES) if rng.random() < 0.7 else rng.choice(TOKENS) * rng.randrange(1, 4))
        for _ in range(rng.randrange(3)):
            if line:
                line[rng.randrange(len(line))] = rng.randrange(256)
        if rng.random() < 0.2:
            del line[rng.randrange(len(line) + 1) :]
        lines.append(bytes(line))
    return rng.choice([b"\n", b"\n", b"", b"\r\n"]).join(lines)
