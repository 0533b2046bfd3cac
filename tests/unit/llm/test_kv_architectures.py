"""KV cache, recurrent state and weights of 73 architectures against what a real llama.cpp allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusnap.llm.kv_cache import CacheSettings, cache_size
from tests.unit.llm.architectures import MIB, header_of, loads, models

if TYPE_CHECKING:
    from pathlib import Path

    from gpusnap.llm.kv_cache import CacheSize

LOADS = 442


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("architectures")


def computed_size(name: str, letter: str, folder: Path) -> CacheSize:
    told = models()[name].loads[letter].settings
    settings = CacheSettings(
        told["n_ctx"],
        sequences=told["n_seq"],
        unified=told["unified"],
        type_k=told["type_k"],
        type_v=told["type_v"],
        flash_attention=told["flash_attention"],
        swa_full=told["swa_full"],
    )
    return cache_size(header_of(name, folder), settings)


@pytest.mark.parametrize(("name", "letter"), loads())
def test_cache_and_state_are_what_the_engine_allocated(name: str, letter: str, folder: Path) -> None:
    logged, result = models()[name].loads[letter], computed_size(name, letter, folder)
    assert isinstance(result.kv.value, int), result.kv.provenance
    assert isinstance(result.state.value, int)
    assert result.kv.value / MIB == pytest.approx(logged.kv, rel=0.001, abs=0.02)
    assert result.state.value / MIB == pytest.approx(logged.state, rel=0.001, abs=0.02)


@pytest.mark.parametrize("name", models())
def test_tensor_bytes_are_the_engines_model_buffers(name: str, folder: Path) -> None:
    model, header = models()[name], header_of(name, folder)
    ours = sum(tensor.size or 0 for tensor in header.tensors)
    assert ours == model.tensor_bytes
    for load in model.loads.values():
        assert ours / MIB == pytest.approx(load.model, abs=0.01)


def test_all_loads_are_tested() -> None:
    assert len(loads()) == LOADS
    assert len(models()) == 74
