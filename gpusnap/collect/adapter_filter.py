"""Which adapter a person means: `0`, `GPU-1b2c`, `0000:3b:00.0`, `3b:00.0`, `rtx 4080`; what `--adapter` keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import Reading
from gpusnap.text import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.collect.harvest import AdapterFacts
    from gpusnap.model import Warning_


_MODEL_DIGITS = 3  # fewer are a slip in an index sooner than a model


class NoSuchAdapter(ValueError):
    """Nothing on this machine answers to the word; the message is for a person."""


def names_adapter(word: str, row: Mapping[str, object]) -> bool:
    """Whether `word` names the adapter: its index, a prefix of its UUID or id, its PCI address (with or without
    domain), or words of its model."""
    text = word.strip().lower()
    if not text:  # `--adapter "$UNSET"` means no card, not every card
        return False
    number = whole_number(text)
    if number is not None:
        return row.get("parent") is None and row.get("index") == number
    ident = str(row.get("id") or "").lower()
    uuid = str(row.get("uuid") or "").lower()
    address = str(row.get("pci_address") or "").lower()
    if len(text) >= 4 and (ident.startswith(text) or uuid.startswith((text, "gpu-" + text))):
        return True
    if address and (text == address or text == address.partition(":")[2]):
        return True
    model = str(row.get("model") or "").lower()
    return bool(model) and all(part in model for part in text.split())


def named_by(word: str, rows: Sequence[Mapping[str, object]]) -> set[object]:
    """The ids of the adapters that `word` names. A card's partitions come with it: its processes stand on them.

    A number is an index; one that no card has may be a word of a model: 4080.
    """
    cards = {row.get("id") for row in rows if names_adapter(word, row)}
    text = word.strip()
    if not cards and whole_number(text) is not None and len(text) >= _MODEL_DIGITS:
        cards = {row.get("id") for row in rows if text in str(row.get("model") or "").split()}
    return cards | {row.get("id") for row in rows if row.get("parent") in cards}


def keep_adapters(
    adapters: list[AdapterFacts], words: Sequence[str], *, must_exist: bool = True
) -> list[AdapterFacts]:
    """Those that some word names, all without words; NoSuchAdapter when a word that `must_exist` names none."""
    if not words:
        return adapters
    plain = [_plain(facts.identity) for facts in adapters]
    kept: set[object] = set()
    for word in words:
        named = named_by(word, plain)
        if must_exist and not named:
            known = ", ".join(f"{row.get('index')}: {row.get('model') or 'model unknown'}" for row in plain)
            raise NoSuchAdapter(f"no adapter is named {word!r} (adapters here: {known or 'none'})")
        kept |= named
    return [facts for facts in adapters if facts.identity.get("id") in kept]


def keep_warnings(
    warnings: list[Warning_], merged: list[AdapterFacts], kept: list[AdapterFacts]
) -> list[Warning_]:
    """What is told of an adapter that `--adapter` leaves out says nothing about this document."""
    left_out = {facts.identity["id"] for facts in merged} - {facts.identity["id"] for facts in kept}
    return [note for note in warnings if note["adapter"] not in left_out]


def _plain(identity: Mapping[str, object]) -> dict[str, object]:
    return {key: value.value if isinstance(value, Reading) else value for key, value in identity.items()}
