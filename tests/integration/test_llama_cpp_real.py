"""Cache and weights of a real model against what a real llama.cpp says it allocated.

The engine's log gives what it was told (context, sequences, batch) and what it made of it; the cache is computed
from the file's header and the former, and compared with the latter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.live import LiveTree
from gpusnap.llm.gguf_cursor import TreeSource
from gpusnap.llm.gguf_header import Header, read_header
from gpusnap.llm.kv_cache import CacheSettings, CacheSize, cache_size
from gpusnap.llm.weights import weights
from tests.integration.engine import REFUSED, Logs, real_model, run_engine

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

MIB = 1 << 20
QUANTISED = {"experimentalKvCacheKeyType": "Q8_0", "experimentalKvCacheValueType": "Q8_0", "flashAttention": True}

# Options of node-llama-cpp's createContext; its contextSize is that of one sequence.
CONTEXTS: list[dict[str, Any]] = [
    {"contextSize": 256},
    {"contextSize": 2048},
    {"contextSize": 4096},
    {"contextSize": 32768},
    {"contextSize": 5000},
    {"contextSize": 4096, "batchSize": 128},
    {"contextSize": 4096, "batchSize": 2048},
    {"contextSize": 4096, "sequences": 2},
    {"contextSize": 700, "sequences": 5},
    {"contextSize": 4096, "swaFullCache": True},
    {"contextSize": 2048, "sequences": 3, "swaFullCache": True},
    {"contextSize": 4096, "flashAttention": False},
    {"contextSize": 4096, **QUANTISED},
    {"contextSize": 8192, **QUANTISED, "experimentalKvCacheValueType": "Q4_0"},
    {"contextSize": 4096, **QUANTISED, "experimentalKvCacheKeyType": "Q5_1", "sequences": 2},
    {"contextSize": 4096, **QUANTISED, "experimentalKvCacheValueType": "IQ4_NL", "swaFullCache": True},
    {"contextSize": 4096, "experimentalKvCacheKeyType": "F32", "experimentalKvCacheValueType": "F32"},
    {"contextSize": 4096, "experimentalKvCacheKeyType": "BF16", "experimentalKvCacheValueType": "F16"},
]
REFUSED_CONTEXT = {"contextSize": 4096, **QUANTISED, "flashAttention": False}


@pytest.fixture(scope="module")
def logs() -> Logs:
    return run_engine([*CONTEXTS, REFUSED_CONTEXT])


@pytest.fixture(scope="module")
def header() -> Header:
    path = real_model()
    return read_header(TreeSource(LiveTree("/"), str(path)[1:]))


def settings_of(told: dict[str, Any], log: list[str]) -> CacheSettings:
    """Context, sequences and batch as the engine took them; types and window as it was told."""
    return CacheSettings(
        int(logged(log, "n_ctx")),
        sequences=int(logged(log, "n_seq_max")),
        ubatch=int(logged(log, "n_ubatch")),
        unified=logged(log, "kv_unified") == "true",
        type_k=told.get("experimentalKvCacheKeyType", "F16").lower(),
        type_v=told.get("experimentalKvCacheValueType", "F16").lower(),
        swa_full=told.get("swaFullCache", False),
        flash_attention=told.get("flashAttention", True),
    )


def logged(log: list[str], name: str) -> str:
    (found,) = {match[1] for line in log if (match := re.fullmatch(rf"llama_context: {name} += (\S+)", line))}
    return found


def buffers(log: list[str], kind: str) -> list[float]:
    """MiB of every line "... KIND buffer size = N MiB"."""
    return [float(match[1]) for line in log if (match := re.search(rf"{kind} buffer size = +([\d.]+) MiB", line))]


@pytest.mark.parametrize("number", range(len(CONTEXTS)), ids=[str(told) for told in CONTEXTS])
def test_cache_is_what_the_engine_allocated(logs: Logs, header: Header, number: int) -> None:
    log = logs.contexts[number]
    result = cache_size(header, settings_of(CONTEXTS[number], log))
    assert result.state.value == 0
    assert isinstance(result.kv.value, int)
    pools = buffers(log, "KV")
    assert len(pools) == 2  # full and windowed layers
    assert result.kv.value / MIB == pytest.approx(sum(pools), abs=0.02, rel=0.001)


@pytest.mark.parametrize("number", range(len(CONTEXTS)), ids=[str(told) for told in CONTEXTS])
def test_cells_and_layers_are_the_engines(logs: Logs, header: Header, number: int) -> None:
    log = logs.contexts[number]
    settings = settings_of(CONTEXTS[number], log)
    said = [
        (int(match[1]), int(match[2]))
        for line in log
        if (match := re.search(r"llama_kv_cache: size = .*\( *(\d+) cells, +(\d+) layers", line))
    ]
    assert said == [(settings.cells, 3), (settings.window_cells(512), 15)]


def test_a_layers_part_is_what_the_log_assigns_to_it(logs: Logs, header: Header) -> None:
    """With 4096 tokens a full layer takes 4 MiB; the three of the log's first pool are 5, 11 and 17."""
    result: CacheSize = cache_size(header, settings_of(CONTEXTS[2], logs.contexts[2]))
    assert result.layers is not None
    assert [layer for layer, size in enumerate(result.layers) if size == 4 * MIB] == [5, 11, 17]


def test_what_the_engine_refuses_has_no_figure(logs: Logs, header: Header) -> None:
    """Values of a quantised type need flash attention."""
    log = logs.contexts[-1]
    assert any(line.startswith(REFUSED) for line in log)
    assert buffers(log, "KV") == []
    settings = CacheSettings(4096, type_k="q8_0", type_v="q8_0", flash_attention=False)
    assert cache_size(header, settings).total.provenance.startswith("null:contradiction")


def test_weights_are_the_engines_model_buffers(logs: Logs, header: Header) -> None:
    lines = buffers(logs.model, "model")
    total = weights(header).total
    assert isinstance(total.value, int)
    assert total.provenance == "computed:gguf"
    assert total.value / MIB == pytest.approx(sum(lines), abs=0.01 * len(lines))


def test_header_says_what_the_engine_prints(logs: Logs, header: Header) -> None:
    def printed(name: str, convert: Callable[[str], Any] = str) -> Any:
        (found,) = {m[1] for line in logs.model if (m := re.fullmatch(rf"print_info: {name} += (.+?) *", line))}
        return convert(found)

    assert header.architecture == printed("arch")
    assert header.name == printed("general.name")
    assert header.number("gemma3.block_count") == printed("n_layer", int)
    assert header.number("gemma3.context_length") == printed("n_ctx_train", int)
    assert header.number("gemma3.attention.sliding_window") == printed("n_swa", int)
    assert header.parameters / 1e6 == pytest.approx(
        printed("model params", lambda text: float(text.split()[0])), abs=0.005
    )
