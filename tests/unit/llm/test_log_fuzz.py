"""Whatever stands in a log: no crash, bounded work, and no figure out of nothing."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.llm.logs.lines import memory_lines
from gpusnap.llm.logs.llama_cpp import read
from tests.unit.llm.log_data import lines, log, names
from tests.unit.llm.log_fuzz import PIECES, TOKENS, read_all

_chunk = st.one_of(st.sampled_from(PIECES), st.sampled_from(TOKENS), st.binary(max_size=40))


@settings(max_examples=600, deadline=2000)
@given(st.lists(_chunk, max_size=60))
def test_any_log_is_read_without_a_fault(chunks: list[bytes]) -> None:
    read_all(b"".join(chunks))
    read_all(b"\n".join(chunks))


@settings(max_examples=100, deadline=2000)
@given(st.sampled_from(names()), st.data())
def test_a_torn_log_never_makes_a_larger_figure(name: str, data: st.DataObject) -> None:
    whole = log(name)
    cut = data.draw(st.integers(0, len(whole)))
    part = read(memory_lines(whole[:cut]))
    biggest = max((n for load in read(lines(name)) for _, _, n in load.rows()), default=0)
    assert all(n <= biggest for load in part for _, _, n in load.rows())


def test_a_hostile_log_is_read_in_time() -> None:
    """4 MiB of the worst: one endless line, a line of marks, prefixes over prefixes, 200,000 half-matches."""
    mib = 1 << 20
    hostile = [
        b"A" * (2 * mib) + b" buffer size = 1.00 MiB",
        b"MiB" * mib,
        b"I " * (mib // 2) + b"load_tensors: CUDA0 buffer size = 1 MiB\n",
        (b"llama_kv_cache: CUDA0 " + b"K " * 40 + b"buffer size = 1.00 MiX MiB\n") * 20_000,
        (b'{"msg":"' + b"[" * 3000 + b"MiB\n") * 600,
        (b"[1] " * 900 + b"MiB\n") * 500,
        b"MiB\n" * (mib // 2),
    ]
    for data in hostile:
        began = time.process_time()
        read_all(data)
        assert time.process_time() - began < 3.0
