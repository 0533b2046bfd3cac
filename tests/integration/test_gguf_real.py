"""The header of a real file with a vocabulary of 262,000 tokens: the same answers as `gguf.GGUFReader`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.live import LiveTree
from gpusnap.llm.gguf_cursor import TreeSource
from gpusnap.llm.gguf_header import Header, read_header
from gpusnap.llm.weights import quantization, weights
from tests.integration.engine import real_model

if TYPE_CHECKING:
    import gguf

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def ours() -> Header:
    return read_header(TreeSource(LiveTree("/"), str(real_model())[1:]))


@pytest.fixture(scope="module")
def theirs() -> gguf.GGUFReader:
    import gguf

    return gguf.GGUFReader(real_model())


def test_every_scalar_and_string_is_the_same(ours: Header, theirs: gguf.GGUFReader) -> None:
    compared = 0
    for key, field in theirs.fields.items():
        if key.startswith("GGUF.") or key in ours.counts:
            continue
        assert ours.values[key] == contents(field), key
        compared += 1
    assert compared > 25


def test_every_array_has_the_same_length(ours: Header, theirs: gguf.GGUFReader) -> None:
    """And no key is missing. A chat template is too long to be kept: its length in bytes stands there."""
    keys = {key for key in theirs.fields if not key.startswith("GGUF.")}
    assert keys == set(ours.values) | set(ours.counts)
    for key, count in ours.counts.items():
        found = theirs.fields[key].contents()
        assert count == (len(found.encode()) if isinstance(found, str) else len(found)), key
    assert ours.counts["tokenizer.ggml.tokens"] == 262_144


def test_every_tensor_is_the_same(ours: Header, theirs: gguf.GGUFReader) -> None:
    assert ours.data_offset == theirs.data_offset
    for own, peer in zip(ours.tensors, theirs.tensors, strict=True):
        assert (own.name, own.kind, own.elements) == (peer.name, int(peer.tensor_type), peer.n_elements)
        assert own.dims == tuple(map(int, peer.shape))
        assert (own.size, own.offset + ours.data_offset) == (peer.n_bytes, peer.data_offset)


def test_what_people_see(ours: Header) -> None:
    """As the package's own description says it: Gemma 3 270M in Q4_K_M, 253 MB."""
    assert (ours.architecture, ours.name) == ("gemma3", "Gemma 3 270m")
    assert ours.parameters == 268_098_176
    assert quantization(ours).value == "Q4_K_M"
    assert ours.complete
    assert ours.file_bytes == 253_113_024
    assert weights(ours).total.value == ours.data_bytes  # not one byte of padding in this file


def contents(field: Any) -> Any:
    value = field.contents()
    return value.item() if hasattr(value, "item") else value
