"""Which layers llama.cpp puts on which card (`llama_model::load_tensors`).

With -ngl N the last N layers go to the cards, the output layer counted as one; builds before that counted the
repeating layers only. --tensor-split shares them out in order; without it the shares follow the free memory at
start, which nobody can know afterwards. --fit writes its own -ngl: then only a log tells.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Placement:
    """`cards[i]` are the layers on card i; `output` is the card of the output layer, None where it is in RAM."""

    __slots__ = ("_card_of", "cards", "output")

    def __init__(self, cards: list[list[int]], output: int | None) -> None:
        self.cards = cards
        self.output = output
        self._card_of = {layer: card for card, layers in enumerate(cards) for layer in layers}

    def card_of(self, layer: int | None) -> int | None:
        """The card of a layer, None being the output; None for what stays in RAM, as the input (-1) does."""
        if layer is None:
            return self.output
        return self._card_of.get(layer)

    def over(self, places: Sequence[int], count: int) -> Placement:
        """The same by the rows of a process: the engine's card n is row `places[n]` of `count`."""
        cards: list[list[int]] = [[] for _ in range(count)]
        for place, layers in zip(places, self.cards, strict=True):
            cards[place] += layers
        return Placement(cards, None if self.output is None else places[self.output])

    @property
    def complete(self) -> bool:
        """Everything that can be on a card is."""
        return self.output is not None and any(0 in card for card in self.cards)


def place(
    layers: int, gpu_layers: int, shares: Sequence[float] = (1.0,), output_counts: bool = True
) -> Placement | None:
    """-ngl `gpu_layers` (negative: all) over cards with these shares; None where the shares say nothing."""
    total = sum(shares)
    if not shares or any(share < 0 for share in shares) or not 0 < total < float("inf"):
        return None
    wanted = layers + 1 if gpu_layers < 0 else min(gpu_layers, layers + 1)
    if not output_counts and 0 <= gpu_layers <= layers:
        return _old_placement(layers, gpu_layers, _split_points(shares))
    points = _split_points(shares)
    first = layers + 1 - wanted
    cards: list[list[int]] = [[] for _ in shares]
    output = None
    for layer in range(first, layers + 1):
        card = _card(points, layer - first, wanted)
        if layer == layers:
            output = card
        else:
            cards[card].append(layer)
    return Placement(cards, output)


def _old_placement(layers: int, gpu_layers: int, points: list[float]) -> Placement:
    """The last `gpu_layers` repeating layers; the output layer only when all of them fit."""
    first = layers - gpu_layers
    cards: list[list[int]] = [[] for _ in points]
    for layer in range(first, layers):
        cards[_card(points, layer - first, gpu_layers)].append(layer)
    return Placement(cards, None)


def _split_points(shares: Sequence[float]) -> list[float]:
    """Running sums as parts of the whole, in the engine's single precision."""
    sums, running = [], 0.0
    for share in shares:
        running = _single(running + share)
        sums.append(running)
    return [_single(value / running) for value in sums]


def _card(points: list[float], position: int, count: int) -> int:
    return min(bisect_right(points, _single(position / count)), len(points) - 1)


def _single(value: float) -> float:
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    return float(rounded)
