"""The one line on top: which card changed most, by how much, in what time, and who did it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.render.diff_details import leftovers
from gpusnap.render.units import (
    format_bytes,
    format_delta,
    format_duration,
    format_number,
    format_pair_in_one_unit,
    pick_unit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.model import Adapter, Diff
    from gpusnap.render.diff_rows import CardDiff

_NAMED = 3
# Words before a model that every reader of it knows.
_VENDOR_WORDS = ("NVIDIA ", "GeForce ", "AMD ", "Radeon ", "Intel(R) ", "Intel ")


class Share(NamedTuple):
    """How much of a card's change one program made, with so many processes of that name."""

    program: str
    processes: int
    delta: int


def verdict(result: Diff, cards: Sequence[CardDiff]) -> str:
    """A sentence with the biggest change first; nothing changed is said too."""
    if not cards:
        return "No GPU in either snapshot."
    moved = sorted((card for card in cards if has_changed(card)), key=_biggest_first)
    if not moved:
        return _unchanged(result, cards)
    alone = len(cards) == 1
    head = _sentence(result, moved[0], alone=alone)
    if len(moved) == 1:
        return head
    others = ", ".join(_short_change(card) for card in moved[1 : 1 + _NAMED])
    more = len(moved) - 1 - _NAMED
    return f"{head} Also {others}{f' and {more} more' if more > 0 else ''}."


def has_changed(card: CardDiff) -> bool:
    """A card with anything to say: it came, went, uses another amount, or one of its rows did something."""
    from gpusnap.diff.delta import decides

    if card.card["status"] != "matched" or card.card["index_changed"]:
        return True
    return decides(card.card["changes"]) or any(row["status"] != "same" for row in card.rows)


def title(card: CardDiff) -> str:
    """`GPU 0  NVIDIA GeForce RTX 4080 SUPER`, as `ps` calls it; a partition behind its card."""
    from gpusnap.render.card import title as title_of_row

    # A lost card has no name any more; the other side knows it.
    own = title_of_row({**card.either, "model": card.either["model"] or card.card["model"]}).strip()
    return own if card.parent is None else f"{title_of_row(card.parent).strip()}, {own.removeprefix('└ ')}"


def short_name(card: CardDiff, *, alone: bool) -> str:
    """`RTX 4080 SUPER`; with its number where there are several; `GPU 0 (1g.5gb 3)` for a partition,
    `GPU 0` where nothing names the model.
    """
    row, parent = card.either, card.parent
    if parent is not None:
        from gpusnap.render.card import title as title_of_row

        return f"{_number(parent)} ({title_of_row(row).strip().removeprefix('└ ')})"
    model = row["model"] or card.card["model"]
    if not model:
        return row["id"] if row["index"] is None else _number(row)
    for word in _VENDOR_WORDS:
        model = model.removeprefix(word)
    return model if alone or row["index"] is None else f"{_number(row)} ({model})"


def _number(row: Adapter) -> str:
    return f"{'NPU' if row['kind'] == 'npu' else 'GPU'} {row['index']}"


def _sentence(result: Diff, card: CardDiff, *, alone: bool) -> str:
    name = short_name(card, alone=alone)
    status = card.card["status"]
    if status != "matched":
        return f"{name} {_fate(card)}."
    old, new = card.used
    if old is None and new is None:
        return f"{name}: changed{_when(result)}{_who(card, None)}."
    if card.delta is None:
        return f"{name}: used {format_pair_in_one_unit(old, new)}{_when(result)}{_who(card, None)}."
    if card.delta == 0:
        return f"{name}: used stays {format_bytes(new)}{_when(result)}{_who(card, None)}."
    unit, pair = pick_unit((card.delta,)), format_pair_in_one_unit(old, new)
    return f"{name}: {format_delta(card.delta, unit)}{_when(result)} ({pair}){_who(card, unit)}."


def _fate(card: CardDiff) -> str:
    status = card.card["status"]
    if status == "lost":
        return "is lost"
    here, there = ("before", "after") if status == "disappeared" else ("after", "before")
    if card.is_unread:
        return f"could not be read in the {there} snapshot"
    return f"is only in the {here} snapshot"


def _when(result: Diff) -> str:
    elapsed = result["elapsed_seconds"]
    if elapsed is not None:
        return f" in {format_duration(elapsed)}" if elapsed >= 0 else f", {format_duration(-elapsed)} earlier"
    codes = {warning["code"] for warning in result["warnings"]}
    if "other-boot" in codes:
        return " after a reboot"
    return f" on {result['after']['hostname']}" if "other-host" in codes else ""


def _who(card: CardDiff, unit: str | None) -> str:
    """`: llama-server took 9.0, firefox 0.1; python gave back 3.0`, or who left what behind."""
    rest = card.rest["delta_bytes"] if card.rest is not None else None
    left_behind = leftovers(card)
    blamed = {suspect["pid"] for suspect in card.rest["explained_by"]} if card.rest is not None else set()
    shares = _shares(card, blamed if left_behind else set())
    unit = unit or pick_unit((rest, *(share.delta for share in shares)))
    words = list(left_behind)
    for verb, sign in (("took", 1), ("gave back", -1)):
        named = _named([share for share in shares if share.delta * sign > 0], unit)
        words += [f"{name} {verb} {figure}" for name, figure in named[:1]]
        if named[1:]:
            words[-1] += "".join(f", {name} {figure}" for name, figure in named[1:])
    if rest is not None and rest != 0 and not left_behind and format_number(abs(rest), unit)[0] != "<":
        words.append(f"unattributed {'+' if rest > 0 else '-'}{format_number(abs(rest), unit)}")
    unknown = len({row["pid"] for row in card.rows if row["status"] == "unknown"})
    if unknown:
        words.append(f"{_count(unknown, 'process', 'es')} can't be told")
    return f": {'; '.join(words)}" if words else ""


def _named(shares: list[Share], unit: str) -> list[tuple[str, str]]:
    """The largest few by name, the others counted; traces are left to the table."""
    visible = [share for share in shares if format_number(abs(share.delta), unit)[0] != "<"] or shares[:1]
    found = []
    for share in visible[:_NAMED]:
        name = share.program if share.processes == 1 else f"{share.processes} × {share.program}"
        found.append((name, format_number(abs(share.delta), unit)))
    others = visible[_NAMED:]
    if others:
        rest = abs(sum(share.delta for share in others))
        found.append((_count(len(others), "other"), format_number(rest, unit)))
    return found


def _shares(card: CardDiff, without: set[int]) -> list[Share]:
    left_out = set(map(str, without))
    sums: dict[tuple[str, bool], Share] = {}
    for line in card.lines:
        delta = line.delta
        if delta and line.pid not in left_out:
            key = (line.program, delta > 0)
            old = sums.get(key, Share(line.program, 0, 0))
            sums[key] = Share(line.program, old.processes + 1, old.delta + delta)
    return sorted(sums.values(), key=lambda share: (-abs(share.delta), share.program))


def _short_change(card: CardDiff) -> str:
    name = short_name(card, alone=False)
    if card.card["status"] != "matched":
        return f"{name} {_fate(card)}"
    if card.delta is None:
        return f"{name} {'changed' if card.used == (None, None) else format_pair_in_one_unit(*card.used)}"
    return f"{name} {format_delta(card.delta)}" if card.delta else f"{name} (same size, other processes)"


def _unchanged(result: Diff, cards: Sequence[CardDiff]) -> str:
    rows = sum(len(card.rows) for card in cards)
    return f"Nothing changed{_when(result)}: {_count(len(cards), 'card')}, {_count(rows, 'process', 'es')}."


def _count(number: int, word: str, plural: str = "s") -> str:
    return f"{number} {word}{'' if number == 1 else plural}"


def _biggest_first(card: CardDiff) -> tuple[int, int]:
    delta = card.delta
    known = [figure for figure in card.used if figure is not None]
    return (0 if card.card["status"] == "lost" else 1), -(max(known, default=0) if delta is None else abs(delta))
