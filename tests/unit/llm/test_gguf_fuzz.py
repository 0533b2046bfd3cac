"""Any bytes end in an answer or a GgufError; `tests/integration/test_gguf_fuzz_long.py` does it 100,000 times."""

from __future__ import annotations

from hypothesis import given, settings

from tests.unit.llm.gguf_fuzz import check, mutated_files


@settings(max_examples=1500, deadline=None)
@given(mutated_files())
def test_no_input_crashes_hangs_or_fills_the_memory(data: bytes) -> None:
    check(data)
