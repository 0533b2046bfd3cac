"""100,000 broken headers: no crash, no hang, no growth. The short form is `tests/unit/llm/test_gguf_fuzz.py`."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from tests.unit.llm.gguf_fuzz import check, random_file

pytestmark = pytest.mark.integration

INPUTS = 100_000


def test_a_hundred_thousand_inputs() -> None:
    rng = random.Random(20261130)
    slowest, read = 0.0, 0
    for _ in range(INPUTS):
        data = random_file(rng)
        started = time.process_time()
        read += check(data)
        slowest = max(slowest, time.process_time() - started)
    assert slowest < 1
    assert INPUTS // 20 < read < INPUTS  # both ways were walked often


def test_memory_stays_bounded() -> None:
    rng = random.Random(4)
    files = [random_file(rng) for _ in range(5000)]
    tracemalloc.start()
    for data in files:
        check(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20
