"""The answer for several cards in one sentence: each byte once, and never "0 of 0" for what nobody measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.account import sentence
from gpusnap.explain.rows import card_name, held_bytes
from gpusnap.explain.words import count_of
from gpusnap.render.units import format_bytes, format_of_total

if TYPE_CHECKING:
    from gpusnap.model import Adapter, Snapshot


def several(snapshot: Snapshot, cards: list[Adapter]) -> str:
    counted = _counted(cards)
    known = [card for card in counted if card["memory"]["used_bytes"] is not None]
    sizes = [size for size in (card["memory"]["used_bytes"] for card in counted) if size is not None]
    if not known:
        return _without_figures(snapshot, counted)
    totals = [card["memory"]["total_bytes"] for card in known]
    used = sum(sizes)
    total = None if None in totals else sum(size for size in totals if size is not None)
    if len(counted) == 1:
        return sentence(snapshot, counted[0]) + "."
    said = f"{count_of(len(counted), 'adapter')}: {format_of_total(used, total)} used"
    if len(known) < len(counted):
        said += f" ({len(counted) - len(known)} not measured)"
    shares = {card["id"]: share for card in counted if (share := _share(card)) is not None}
    if shares:
        card = max((card for card in counted if card["id"] in shares), key=lambda card: shares[card["id"]])
        said += f"; fullest is {card_name(card)}, {sentence(snapshot, card)}"
    return said + "."


def _counted(cards: list[Adapter]) -> list[Adapter]:
    """Each byte once: the partitions of a card, or the card itself where only its own use is measured."""
    measured = {card["parent"] for card in cards if card["memory"]["used_bytes"] is not None}
    parents = {card["parent"] for card in cards}
    whole = {
        card["id"]
        for card in cards
        if card["id"] in parents and card["id"] not in measured and card["memory"]["used_bytes"] is not None
    }
    return [
        card
        for card in cards
        if card["id"] in whole or (card["id"] not in parents and card["parent"] not in whole)
    ]


def _without_figures(snapshot: Snapshot, cards: list[Adapter]) -> str:
    """Never "0 of 0": no card says how full it is."""
    names = ", ".join(card_name(card) for card in cards)
    here = {card["id"]: card for card in cards}
    sizes = [
        held_bytes(here[row["adapter"]], row) for row in snapshot["processes"] or () if row["adapter"] in here
    ]
    known = [size for size in sizes if size is not None]
    said = f"{count_of(len(cards), 'adapter')} ({names}): how much is used is not known"
    if known:
        said += f"; {count_of(len(known), 'process holds', 'processes hold')} {format_bytes(sum(known))}"
    return said + "."


def _share(card: Adapter) -> float | None:
    used, total = card["memory"]["used_bytes"], card["memory"]["total_bytes"]
    return used / total if used is not None and total else None
