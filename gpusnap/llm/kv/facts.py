"""A header's numbers as llama.cpp reads them: one value for all layers or one for each, with its defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.llm.gguf_header import Header

MAX_LAYERS = 512  # LLAMA_MAX_LAYERS
MAX_NUMBER = 1 << 31


class Unsettled(Exception):
    """There is no figure; `reason` is one of the contract's, `words` say why in this case."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(f"{reason} {words}")
        self.reason = reason
        self.words = words


class Facts:
    """`facts.number("attention.key_length", 64)`: the key without the architecture in front."""

    __slots__ = ("_header", "architecture", "layers")

    def __init__(self, header: Header) -> None:
        architecture = header.architecture
        if architecture is None:
            raise Unsettled("unknown-format", "the file names no architecture")
        self._header = header
        self.architecture = architecture
        self.layers = self.number("block_count", 0)
        if not 0 < self.layers <= MAX_LAYERS:
            raise Unsettled("unknown-format", f"block_count is {self.layers}")

    @property
    def trunk(self) -> int:
        """Layers without those at the end that draft tokens (MTP, `nextn`); the main context runs only these."""
        drafts = self.number("nextn_predict_layers", 0)
        if drafts > self.layers:
            raise Unsettled("unknown-format", f"{drafts} draft layers of {self.layers}")
        trunk = self.layers - drafts
        if self.architecture == "deepseek4" and not self._has_tensor(f"blk.{trunk}.nextn.eh_proj.weight"):
            return self.layers
        return trunk

    def _value(self, name: str) -> object:
        return self._header.values.get(f"{self.architecture}.{name}")

    def has(self, name: str) -> bool:
        return self._value(name) is not None

    def number(self, name: str, default: int) -> int:
        value = self._value(name)
        if value is None or isinstance(value, list):
            return default
        if not isinstance(value, int) or not 0 <= value < MAX_NUMBER:
            raise Unsettled("unknown-format", f"{name} is {value!r}")
        return int(value)

    def needed(self, name: str) -> int:
        """A number without which llama.cpp would not load the model."""
        if not self.has(name):
            raise Unsettled("unknown-format", f"the header has no {name}")
        return self.number(name, 0)

    def array(self, name: str) -> list[int] | None:
        """The values of a key that is an array, 0 where it is shorter than the layers; None if it is none."""
        value = self._value(name)
        if not isinstance(value, list):
            return None
        if any(not 0 <= element < MAX_NUMBER for element in value):
            raise Unsettled("unknown-format", f"{name} has elements that are no sizes")
        numbers = [int(element) for element in value[: self.layers]]
        return numbers + [0] * (self.layers - len(numbers))

    def listed(self, name: str) -> list[int]:
        """The elements of an array as they stand, none if there is no array."""
        value = self._value(name)
        return [int(element) for element in value] if isinstance(value, list) else []

    def per_layer(self, name: str, default: list[int]) -> list[int]:
        """One number for every layer; an array must then be as long as the layers."""
        value = self._value(name)
        if isinstance(value, list) and len(value) != self.layers:
            raise Unsettled("unknown-format", f"{name} has {len(value)} values for {self.layers} layers")
        return self.array(name) or ([self.number(name, 0)] * self.layers if self.has(name) else default)

    def _has_tensor(self, name: str) -> bool:
        return any(tensor.name == name for tensor in self._header.tensors)
