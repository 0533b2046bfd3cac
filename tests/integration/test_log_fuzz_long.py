"""100,000 broken logs: no crash, no hang, no growth. The short form is `tests/unit/llm/test_log_fuzz.py`."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from tests.unit.llm.log_fuzz import random_log, read_all

pytestmark = pytest.mark.integration

INPUTS = 100_000


def test_a_hundred_thousand_inputs() -> None:
    rng = random.Random(20261130)
    slowest, read = 0.0, 0
    for _ in range(INPUTS):
        data = random_log(rng)
        started = time.process_time()
        read += read_all(data) > 0
        slowest = max(slowest, time.process_time() - started)
    assert slowest < 1
    assert INPUTS // 10 < read < INPUTS  # both ways were walked often


def test_memory_stays_bounded() -> None:
    rng = random.Random(4)
    logs = [random_log(rng) for _ in range(3000)]
    tracemalloc.start()
    for data in logs:
        read_all(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
