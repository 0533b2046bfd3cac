"""The log parser on the lines of a real llama.cpp: it reads what the engine printed and what we compute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.live import LiveTree
from gpusnap.llm.gguf_cursor import TreeSource
from gpusnap.llm.gguf_header import read_header
from gpusnap.llm.kv_cache import CacheSettings, cache_size
from gpusnap.llm.logs.lines import memory_lines
from gpusnap.llm.logs.llama_cpp import last_complete, read
from gpusnap.llm.weights import weights
from tests.integration.engine import Logs, real_model, run_engine

if TYPE_CHECKING:
    from gpusnap.llm.logs.load import Load

pytestmark = pytest.mark.integration

MIB = 1 << 20
CONTEXTS: list[dict[str, Any]] = [
    {"contextSize": 4096},
    {"contextSize": 2048, "sequences": 3},
    {"contextSize": 4096, "swaFullCache": True},
    {
        "contextSize": 8192,
        "flashAttention": True,
        "experimentalKvCacheKeyType": "Q8_0",
        "experimentalKvCacheValueType": "Q4_0",
    },
]


@pytest.fixture(scope="module")
def logs() -> Logs:
    return run_engine(CONTEXTS)


def load_of(logs: Logs, number: int) -> Load:
    text = "\n".join([*logs.model, *logs.contexts[number]])
    load = last_complete(read(memory_lines(text.encode())))
    assert load is not None
    return load


@pytest.mark.parametrize("number", range(len(CONTEXTS)))
def test_cache_and_settings_are_read_and_agree_with_the_header(logs: Logs, number: int) -> None:
    load = load_of(logs, number)
    (context,) = load.contexts
    caches = [cache for cache in context.caches if cache.part == "kv"]
    settings = CacheSettings(
        int(context.settings["n_ctx"]),
        sequences=int(context.settings["n_seq_max"]),
        ubatch=int(context.settings["n_ubatch"]),
        unified=context.settings["kv_unified"] == "true",
        type_k=str(caches[0].type_k),
        type_v=str(caches[0].type_v),
        swa_full=CONTEXTS[number].get("swaFullCache") is True,
    )
    header = read_header(TreeSource(LiveTree("/"), str(real_model())[1:]))
    ours = cache_size(header, settings).total.value
    assert isinstance(ours, int)
    assert load.total("kv") / MIB == pytest.approx(ours / MIB, abs=0.02)
    assert load.cache_total() == pytest.approx(ours, abs=0.02 * MIB)
    assert [cache.cells for cache in caches] == [settings.cells, settings.window_cells(512)]
    assert {cache.sequences for cache in caches} == {settings.sequences}


def test_weights_are_read_and_agree_with_the_header(logs: Logs) -> None:
    header = read_header(TreeSource(LiveTree("/"), str(real_model())[1:]))
    total = weights(header).total.value
    assert isinstance(total, int)
    assert load_of(logs, 0).total("weights") / MIB == pytest.approx(total / MIB, abs=0.02)


def test_compute_buffers_are_the_lines_own(logs: Logs) -> None:
    printed = [m[1] for line in logs.contexts[0] if (m := re.search(r"compute buffer size = +([\d.]+) MiB", line))]
    assert load_of(logs, 0).total("compute") / MIB == pytest.approx(float(printed[-1]), abs=0.01)


def test_nothing_of_it_is_on_a_card(logs: Logs) -> None:
    assert load_of(logs, 0).by_device() == {}
