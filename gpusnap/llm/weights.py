"""A model's weights by layer, from the tensor table: the engine's "model buffer size" lines sum to the same.

Where a tensor goes (`LLM_TENSOR_INFOS`): what is looked up by token stays in RAM, `blk.N.` goes with layer N, the
rest with the output layer. A model without an output matrix uses its embeddings twice; on a card that is a second
copy. Draft layers (MTP) are loaded only where the server drafts with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import gguf_constants
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.reading import Reading, computed, estimated, null

if TYPE_CHECKING:
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.gguf_tensors import Tensor
    from gpusnap.llm.overrides import Overrides
    from gpusnap.llm.placement import Placement

_INPUT = ("token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.")
_FIRST_LAYER = ("token_embd_norm.", "rope_freqs.", "rope_factors_long.", "rope_factors_short.")
_EMBEDDINGS = "token_embd."
_ADAPTERS = (".lora_a", ".lora_b")


class Weights:
    """Bytes: `input` stays in RAM, `layers` by layer, `output` after the last."""

    __slots__ = ("_doubt", "_source", "_tensors", "input", "layers", "output", "tied", "total")

    def __init__(self, header: Header, drafts: bool | None, source: str) -> None:
        trunk, count = _layers(header)
        self._source = source
        self._doubt = ""
        self.layers = [0] * count
        # (name, bytes, layer) of what is loaded; the layer is None for the output, -1 for the input.
        self._tensors: list[tuple[str, int, int | None]] = []
        self.input = self.output = self.tied = 0
        self._sort(header, trunk if drafts is not True else count)
        if drafts is None and trunk < count:
            self._doubt = f"without {count - trunk} draft layers"
        self.total = self._total(header)

    def _sort(self, header: Header, last: int) -> None:
        embeddings, has_output = 0, False
        for tensor in header.tensors:
            size = tensor.size or 0  # None: `total` says so
            if tensor.name.startswith(_EMBEDDINGS):
                embeddings += size
            has_output = has_output or tensor.name == "output.weight"
            layer = _layer(tensor)
            if layer is not None and not self.layers:
                layer = None  # a projector's or an adapter's blocks are no layers of a model
            if layer is not None and layer >= last:
                continue
            self._tensors.append((tensor.name, size, layer))
            if layer is None:
                self.output += size
            elif layer < 0:
                self.input += size
            else:
                self.layers[layer] += size
        self.tied = 0 if has_output else embeddings

    def _total(self, header: Header) -> Reading:
        if header.missing:
            return null("not-exposed", f"missing {header.missing[0]}")
        odd = [tensor for tensor in header.tensors if tensor.size is None]
        if not odd:
            return self._reading(self.input + sum(self.layers) + self.output)
        if not header.complete:
            return null("unknown-format", f"tensor type {odd[0].kind} is not known")
        self._doubt = f"file size, tensor type {odd[0].kind} is not known"
        return self._reading(header.data_bytes)

    def _reading(self, value: int) -> Reading:
        if self._doubt:
            return estimated(value, f"{self._source} {self._doubt}")
        return computed(value, self._source)

    def on_card(self, placement: Placement, card: int, moved: Overrides | None = None) -> Reading:
        """What is on one card; `moved` are the tensors that were sent elsewhere by hand."""
        if self.total.is_null or "file size" in self._doubt:
            return self.total if self.total.is_null else null("ambiguous", self._doubt)
        value = sum(self.layers[layer] for layer in placement.cards[card])
        if placement.output == card:
            value += self.output + self.tied
        if moved is not None:
            try:
                value += sum(self._difference(one, placement, card, moved) for one in self._tensors)
            except Unsettled as unsettled:
                return null(unsettled.reason, unsettled.words)
        return self._reading(value)

    def _difference(
        self, tensor: tuple[str, int, int | None], placement: Placement, card: int, moved: Overrides
    ) -> int:
        """What an override adds to a card or takes from it. Tied embeddings sent to one buffer are one tensor."""
        name, size, layer = tensor
        place = moved.place_of(name)
        if place is None:
            return 0
        before = size if placement.card_of(layer) == card else 0
        if self.tied and name.startswith(_EMBEDDINGS):
            before = size if placement.output == card else 0
        return (size if place == card else 0) - before


def adapter_on_card(header: Header, placement: Placement, card: int, moved: Overrides | None = None) -> Reading:
    """A LoRA lies where the tensors lie that it changes (`llama_adapter_lora_init_impl`)."""
    value = 0
    for tensor in header.tensors:
        if tensor.size is None:
            return null("unknown-format", f"tensor type {tensor.kind} is not known")
        base = tensor.name
        for ending in _ADAPTERS:
            base = base.removesuffix(ending)
        place = moved.place_of(base) if moved is not None else None
        if place is None:
            place = placement.card_of(_layer(tensor))
        if place == card:
            value += tensor.size
    return computed(value, "gguf.lora")


def weights(header: Header, drafts: bool | None = None, source: str = "gguf") -> Weights:
    """`drafts`: does the server load draft layers? None: nobody knows, and a model that has some is estimated."""
    return Weights(header, drafts, source)


def _layers(header: Header) -> tuple[int, int]:
    """Layers that always run, and all; a file that is no language model has none."""
    try:
        facts = Facts(header)
        return facts.trunk, facts.layers
    except Unsettled:
        return 0, 0


def _layer(tensor: Tensor) -> int | None:
    """The layer, -1 for the input, None for the output."""
    if tensor.layer is not None:
        return tensor.layer
    if tensor.name.startswith(_INPUT):
        return -1
    return 0 if tensor.name.startswith(_FIRST_LAYER) else None


def quantization(header: Header) -> Reading:
    """`Q4_K_M` by the file's own word; without it the type that most bytes have."""
    number = header.file_type
    name = gguf_constants.file_type_name(number) if number is not None else None
    if name is not None:
        return computed(name, "gguf.file_type")
    by_type: dict[int, int] = {}
    for tensor in header.tensors:
        by_type[tensor.kind] = by_type.get(tensor.kind, 0) + (tensor.size or 0)
    if not by_type:
        return null("none", "no tensors")
    most = max(by_type, key=lambda kind: by_type[kind])
    known = gguf_constants.tensor_sizes().get(most)
    if known is None:
        return null("unknown-format", f"tensor type {most} is not known")
    return computed(known[0], "gguf.tensor_types")
