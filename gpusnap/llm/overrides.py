"""Tensors that were sent to a buffer by hand: -ot, --cpu-moe, --n-cpu-moe, --n-cpu-ffn.

`llama_model_loader::create_tensor`: the overrides are tried in order, the first that fits a tensor's name decides.
Only weights move; the cache of a layer stays where the layer is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv.facts import Unsettled
from gpusnap.llm.tensor_patterns import Pattern, TooCostly, pattern_of
from gpusnap.text import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.cards import Cards

MAX_OVERRIDES = 128
MAX_LETTERS = 8_000_000  # of names, once for each pattern; a large model with ten patterns has half a million
# common.h: LLM_FFN_EXPS_REGEX and LLM_FFN_DENSE_REGEX; with a number of layers `blk\.N` stands in front.
_SHAPES = {"experts": r"\.ffn_(up|down|gate|gate_up)_(ch|)exps", "ffn": r"\.ffn_(up|down|gate)\."}
_EVERY = 1 << 30


class Overrides:
    """`place_of(name)`: the row of the card that a tensor was sent to, RAM, or None: it was not sent."""

    def __init__(self, given: Sequence[tuple[str, str]], cards: Cards) -> None:
        self._rules: list[tuple[Pattern, int, int]] = []  # pattern, layers it is for, place
        self._known: dict[str, int | None] = {}
        self._left = MAX_LETTERS
        for kind, text in given:
            if kind in _SHAPES:
                layers = _EVERY if text == "all" else whole_number(text)
                if layers is None:
                    raise Unsettled("ambiguous", "tensors were placed by hand, by a number that is none")
                self._add(_SHAPES[kind], layers, cards.of_buffer("CPU"))
                continue
            for one in text.split(","):
                pattern, equals, buffer = one.partition("=")
                if not equals:
                    raise Unsettled(
                        "ambiguous", "tensors were placed by hand (-ot), by a word that is not understood"
                    )
                self._add(pattern, _EVERY, cards.of_buffer(buffer))

    def _add(self, text: str, layers: int, place: int) -> None:
        pattern = pattern_of(text)
        if pattern is None or len(self._rules) >= MAX_OVERRIDES:
            raise Unsettled("ambiguous", "tensors were placed by hand (-ot), by a pattern that is not understood")
        self._rules.append((pattern, layers, place))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def place_of(self, name: str) -> int | None:
        if name not in self._known:
            self._left -= len(name) * len(self._rules)
            if self._left < 0:
                raise Unsettled(
                    "ambiguous", "tensors were placed by hand (-ot), by more patterns than any real ones"
                )
            fitting = (place for pattern, layers, place in self._rules if _fits(pattern, layers, name))
            self._known[name] = next(fitting, None)
        return self._known[name]


def _fits(pattern: Pattern, layers: int, name: str) -> bool:
    if layers != _EVERY:
        head, _, rest = name.partition(".")
        number = whole_number(rest.partition(".")[0]) if head == "blk" else None
        if number is None or number >= layers:
            return False
    try:
        return pattern.found_in(name)
    except TooCostly as costly:
        raise Unsettled("ambiguous", "tensors were placed by hand (-ot), by a pattern of no end") from costly
