"""KV cache and recurrent state of a GGUF model under given settings: bytes of each layer, exact or not at all.

    result = cache_size(header, CacheSettings(4096, sequences=4, unified=True))
    result.total                     # Reading: computed, estimated, or null with the reason
    result.on_layers(range(20, 33))  # the part of the layers that are on one card

Reserved memory, as the engine allocates it at start; how much of it holds tokens only the engine can say. An
engine without any cache has one of 0 bytes, computed. What has no rule is null: an architecture that neither the
`gguf` package nor the tables in `kv/families.py` name, a cache type of a fork, settings the engine would refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv import plan as plans
from gpusnap.llm.kv import size
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.kv.settings import CacheSettings
from gpusnap.reading import Reading, computed, estimated, null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.llm.gguf_header import Header

__all__ = ["CacheSettings", "CacheSize", "cache_size"]

_MAX_BYTES = 1 << 53


class CacheSize:
    """`total` = `kv` + `state`; `layers` and `state_layers` are bytes by layer, None where there is no figure."""

    __slots__ = ("_make", "kv", "layers", "per_token", "state", "state_layers", "total")

    def __init__(self, layers: list[int], state_layers: list[int], per_token: int | None, source: str, doubt: str):
        self._make = (estimated, f"{source} {doubt}") if doubt else (computed, source)
        self.layers: list[int] | None = layers
        self.state_layers: list[int] | None = state_layers
        self.kv = self._reading(sum(layers))
        self.state = self._reading(sum(state_layers))
        self.total = self._reading(sum(layers) + sum(state_layers))
        self.per_token = null("none", "not linear") if per_token is None else self._reading(per_token)

    def _reading(self, value: int) -> Reading:
        make, source = self._make
        return make(value, source)

    def on_layers(self, numbers: Iterable[int]) -> Reading:
        """Cache and state of these layers; those that the model has not are none."""
        if self.layers is None or self.state_layers is None:
            return self.total
        chosen = {number for number in numbers if 0 <= number < len(self.layers)}
        return self._reading(sum(self.layers[number] + self.state_layers[number] for number in chosen))


def _unsettled(reading: Reading) -> CacheSize:
    result = CacheSize([], [], None, "", "")
    result.layers = result.state_layers = None
    result.kv = result.state = result.total = result.per_token = reading
    return result


def cache_size(header: Header, settings: CacheSettings, source: str = "gguf") -> CacheSize:
    """`source` names the facts in the provenance: `gguf+cmdline+defaults:llama.cpp`."""
    try:
        plan = plans.build(Facts(header), settings.draft_context)
        layers, states = size.cache_bytes(plan, settings), size.state_bytes(plan, settings)
        result = CacheSize(layers, states, size.token_bytes(plan, settings), source, size.doubts(plan, settings))
    except Unsettled as unsettled:
        return _unsettled(null(unsettled.reason, unsettled.words))
    if sum(layers) + sum(states) > _MAX_BYTES:
        return _unsettled(null("out-of-range", "more bytes than any machine has"))
    return result
