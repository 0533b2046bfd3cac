"""Who is who: cards and processes of two snapshots, paired only by what identifies them.

A card is its UUID, then its place on the bus, then its model where only one can be
meant; never its index, which drivers hand out anew at each start (arcnmx/nvapi-rs#5). A process is its pid and
start stamp within one boot: a pid alone is reused within minutes on a busy machine (collectd#3773), and an
unknown start stamp is nobody's (jcodemunch-mcp#450).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from typing import Literal

    from gpusnap.model import Adapter, Process, Snapshot

    MatchedBy = Literal["uuid", "pci", "model", "elimination"]
    Boots = Literal["same", "other", "other-host", "unknown"]
    Cards = Mapping[str, Adapter]
    Key = Callable[[Adapter, Cards], Hashable | None]
    Identity = tuple[int, int]

# Vendors put their name before the model with one driver and not with the next.
_VENDOR_WORDS = ("nvidia ", "amd ", "intel(r) ", "intel ")
_OWN_NAMES: tuple[Literal["uuid", "pci_address"], ...] = ("uuid", "pci_address")
_LAST = 1 << 53


class Pair:
    """One card on both sides, or on one side only."""

    __slots__ = ("after", "before", "by")

    def __init__(self, before: Adapter | None, after: Adapter | None, by: MatchedBy | None = None) -> None:
        self.before = before
        self.after = after
        self.by = by

    @property
    def either(self) -> Adapter:
        """The after side's row, else the before side's."""
        row = self.after or self.before
        assert row is not None  # noqa: S101 - a pair has a side
        return row

    @property
    def is_lost(self) -> bool:
        return any(card is not None and card["health"] == "lost" for card in (self.before, self.after))

    @property
    def is_matched(self) -> bool:
        return self.before is not None and self.after is not None


def compare_boots(before: Snapshot, after: Snapshot) -> Boots:
    """Whether pids and start stamps of the two documents mean the same processes."""
    hosts = before["host"]["hostname"], after["host"]["hostname"]
    if None not in hosts and hosts[0] != hosts[1]:
        return "other-host"
    boots = before["boot_id"], after["boot_id"]
    if None in boots:
        return "unknown"
    return "same" if boots[0] == boots[1] else "other"


def match_adapters(before: Iterable[Adapter], after: Iterable[Adapter], *, same_boot: bool = False) -> list[Pair]:
    """Pairs and lone cards in the order of index and id; the order of the rows plays no part.

    Within one boot a card without UUID and PCI address of its own (two NPUs behind one address) is its id.
    """
    old = {card["id"]: card for card in before}
    new = {card["id"]: card for card in after}
    pairs: list[Pair] = []
    old_cards, new_cards = dict(old), dict(new)
    passes: list[tuple[MatchedBy | None, Key]] = [("uuid", _uuid), ("pci", _place), ("model", _only_model)]
    if same_boot:
        passes.insert(2, (None, _nameless_id))
    for by, key in passes:
        old_keys, new_keys = _unique(old, old_cards, key), _unique(new, new_cards, key)
        for value in old_keys.keys() & new_keys.keys():
            if _may_be_one(old_keys[value], new_keys[value]):
                pairs.append(Pair(old_keys[value], new_keys[value], by))
                del old[old_keys[value]["id"]], new[new_keys[value]["id"]]
    lost = _left_by_elimination(old, new)
    if lost is not None:
        pairs.append(Pair(*lost, "elimination"))
        del old[lost[0]["id"]], new[lost[1]["id"]]
    pairs += [Pair(card, None) for card in old.values()]
    pairs += [Pair(None, card) for card in new.values()]
    return sorted(pairs, key=_order)


def index_by_identity(rows: Iterable[Process]) -> dict[Identity, Process]:
    """Rows by (pid, start stamp); those without a stamp are in no index."""
    return {(row["pid"], row["start_ticks"]): row for row in rows if row["start_ticks"] is not None}


def _unique(unpaired: Cards, cards: Cards, key: Key) -> dict[Hashable, Adapter]:
    """What exactly one unpaired card answers to."""
    found: dict[Hashable, Adapter] = {}
    twice = set()
    for card in unpaired.values():
        value = key(card, cards)
        if value in found:
            twice.add(value)
        elif value is not None:
            found[value] = card
    return {value: card for value, card in found.items() if value not in twice}


def _uuid(card: Adapter, _: Cards) -> Hashable | None:
    return card["uuid"]


def _nameless_id(card: Adapter, _: Cards) -> Hashable | None:
    return card["id"] if card["uuid"] is None and card["pci_address"] is None else None


def _place(card: Adapter, cards: Cards) -> Hashable | None:
    """The PCI address; for a partition that of its card, and its instances there."""
    partition, parent = card["partition"], cards.get(card["parent"] or "")
    address = card["pci_address"] or (parent["pci_address"] if parent is not None else None)
    if address is None or partition is None:
        return address
    return address, partition["gpu_instance"], partition["compute_instance"]


def _only_model(card: Adapter, _: Cards) -> Hashable | None:
    """Whole cards only: a partition of the same size may be anybody's."""
    return None if card["partition"] is not None else _model(card)


def _model(card: Adapter) -> str | None:
    """The model without the vendor's name: "GeForce RTX 3090" became "NVIDIA GeForce RTX 3090" with driver 470."""
    if card["model"] is None:
        return None
    name = " ".join(card["model"].lower().split())
    for words in _VENDOR_WORDS:
        name = name.removeprefix(words)
    return name


def _may_be_one(before: Adapter, after: Adapter) -> bool:
    """Two different models never pair, nor a card with a partition, nor two partitions of different sizes."""
    models = _model(before), _model(after)
    if None not in models and models[0] != models[1]:
        return False
    old, new = before["partition"], after["partition"]
    if old is None or new is None:
        return old is new
    # A partition that was made anew has a new UUID: nothing of the old one is left in it.
    uuids = before["uuid"], after["uuid"]
    return old["profile"] == new["profile"] and (None in uuids or uuids[0] == uuids[1])


def _left_by_elimination(old: Cards, new: Cards) -> tuple[Adapter, Adapter] | None:
    """A card that fell off the bus can't say who it is; when one is left on each side, that is it."""
    before = [card for card in old.values() if card["partition"] is None]
    after = [card for card in new.values() if card["partition"] is None]
    if len(before) != 1 or len(after) != 1 or "lost" not in (before[0]["health"], after[0]["health"]):
        return None
    names_another = any(
        None not in (before[0][name], after[0][name]) and before[0][name] != after[0][name] for name in _OWN_NAMES
    )
    return None if names_another or not _may_be_one(before[0], after[0]) else (before[0], after[0])


def _order(pair: Pair) -> tuple[int, str]:
    index = pair.either["index"]
    return (_LAST if index is None else index), pair.either["id"]
