"""A card that the driver calls lost: it fell off the bus or its firmware stopped answering.

A recording also says since when, and whether it came back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import card_name, reason_word
from gpusnap.explain.words import clock, count_of, minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.tracks import CardTrack, Spell
    from gpusnap.explain.view import CardView, Found

_MOST_SPELLS = 5
_LOOK = "Look for `Xid 79` and the like: journalctl -k | grep -i -e xid -e nvrm -e amdgpu"
_LOST = [
    _LOOK,
    "Its jobs are over. A reboot, often with the power off, brings it back; if it is lost again, check power, "
    "seating and temperature, then have it replaced.",
]
_BACK = [_LOOK, "Jobs of that time are over. If it is lost again, check power, seating and temperature."]


def find(view: CardView) -> Iterator[Found]:
    if view.card["health"] == "lost":
        where = view.card["pci_address"]
        yield found(
            "lost-card",
            "critical",
            view.subject(),
            "the driver has lost this card",
            [f"PCI address {where or 'unknown'}", f"memory: {reason_word(view.entry, 'memory.used_bytes')}"],
            _LOST,
            headline=f"{view.name} is lost: its driver can't reach it any more",
        )


def find_in_history(history: History) -> Iterator[Found]:
    for card in history.cards.values():
        if card.lost:
            yield _in_recording(history, card)


def _in_recording(history: History, card: CardTrack) -> Found:
    name, last = card_name(card.last_row), card.lost[-1]
    since = _since(history, last)
    evidence = [f"PCI address {card.last_row['pci_address'] or 'unknown'}"]
    evidence += [_stretch(history, spell) for spell in card.lost[:_MOST_SPELLS]]
    evidence.append(f"lost in {card.lost_samples:,} of {count_of(card.samples, 'sample')}")
    is_lost = last.end is None
    return found(
        "lost-card",
        "critical" if is_lost else "warning",
        {"kind": "adapter", "adapter": card.id, "pid": None, "start_ticks": None, "source": None},
        "the driver has lost this card" if is_lost else "the driver had lost this card, and it is back",
        evidence,
        _LOST if is_lost else _BACK,
        headline=(
            f"{name} is lost since {since}: its driver can't reach it any more"
            if is_lost
            else f"{name} was lost {_stretch(history, last).removeprefix('lost ')}"
        ),
    )


def _stretch(history: History, spell: Spell) -> str:
    """`lost since ..`, or `lost from .. until the sample of ..`, in which it is there again."""
    since = _since(history, spell)
    if spell.end is None:
        return f"lost since {since}"
    return f"lost from {since} until {clock(spell.end, spell.start)}"


def _since(history: History, spell: Spell) -> str:
    """The first sample without it; it happened after the one before, which nobody has where it is the first."""
    first = minute(spell.start)
    return f"{first} or before (the first sample)" if spell.start == history.timeline.first else first
