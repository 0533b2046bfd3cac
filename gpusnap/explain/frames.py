"""The columns of a picture, gathered while a recording streams by: down-sampled by minimum and maximum.

A column stands for one sample, or for a run of neighbours of one kind: the sample with the lowest and the one
with the highest use are kept whole, so each stack that is drawn was really measured. A sample without a figure
never merges with one that has one, nor do columns across a gap or a reboot.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.rows import entry_of, reason_word

if TYPE_CHECKING:
    from gpusnap.explain.timeline import Tick
    from gpusnap.model import Adapter, Process, Snapshot

MOST_COLUMNS = 1024  # of one card; a plot is narrower than that
MOST_COLUMNS_TOGETHER = 3072
MOST_PARTS = 8

_NOT_THERE = "the card is not there"
MEMORY = "memory"
# A lane and the figure that says why it has none.
LANES = {
    "load": "load.gpu_percent",
    "bandwidth": "load.memory_bandwidth_percent",
    "temperature": "temperature.gpu_celsius",
    "power": "power.draw_watts",
    "ecc": "ecc.corrected_volatile",
}


class Part(NamedTuple):
    """One process's share of one sample."""

    pid: int
    start_ticks: int | None
    name: str | None
    user: str | None
    category: str
    bytes: int


class Stack(NamedTuple):
    """One sample of one card, to the byte. `parts` are the largest; `others` what the smaller ones hold."""

    time: float
    used: int
    total: int | None
    unattributed: int | None
    reserved: int
    shared: int
    parts: tuple[Part, ...]
    others: int
    categories: dict[str, int]


class Column(NamedTuple):
    """`unknown` says why nothing of the memory was measured; `holes` the same of a lane, or of a part of it.

    Of a column that stands for both kinds of samples, `holes` has the memory's reason too.
    """

    start: float
    end: float
    boot: int
    low: Stack | None
    high: Stack | None
    unknown: str | None
    lanes: dict[str, tuple[float, float]]
    holes: dict[str, str]


class Frames:
    """Columns for each card, in the order in which the cards were seen first."""

    def __init__(self, most: int = MOST_COLUMNS) -> None:
        self.most = most
        self.cards: dict[str, list[Column]] = {}
        self.rows: dict[str, Adapter] = {}

    def add(self, tick: Tick, document: Snapshot, by_card: dict[str, list[Process]]) -> None:
        here = set()
        for card in document["adapters"]:
            here.add(card["id"])
            self.rows[card["id"]] = card
            stack = _stack(tick.time, card, by_card.get(card["id"], []))
            entry = entry_of(document, card)
            why = None if stack is not None else reason_word(entry, "memory.used_bytes")
            lanes = _lanes(card)
            holes = {lane: reason_word(entry, leaf) for lane, leaf in LANES.items() if lane not in lanes}
            self._append(card["id"], Column(tick.time, tick.time, tick.boot, stack, stack, why, lanes, holes))
        for where in self.cards.keys() - here:
            holes = dict.fromkeys(LANES, _NOT_THERE)
            self._append(where, Column(tick.time, tick.time, tick.boot, None, None, _NOT_THERE, {}, holes))

    def _append(self, where: str, column: Column) -> None:
        columns = self.cards.setdefault(where, [])
        columns.append(column)
        most = min(self.most, max(64, MOST_COLUMNS_TOGETHER // len(self.cards)))
        if len(columns) > most:
            usual = _usual_pause(columns)
            self.cards[where] = merged = _halve(columns, usual)
            if len(merged) > most * 3 // 4:
                self.cards[where] = merged = _halve(merged, float("inf"))
            if len(merged) > most * 3 // 4:
                # Every other sample is unknown (a driver that is busy now and then): both kinds share a column.
                self.cards[where] = _halve(merged, float("inf"), mixed=True)


def _stack(time: float, card: Adapter, rows: list[Process]) -> Stack | None:
    used = card["memory"]["used_bytes"]
    if used is None:
        return None
    account = card["accounting"]
    parts = sorted(
        (
            Part(row["pid"], row["start_ticks"], row["name"], row["user"], row["category"], row["vram_bytes"])
            for row in rows
            if row["vram_bytes"] is not None and row["vram_bytes"] > 0 and not row["self"]
        ),
        key=lambda part: -part.bytes,
    )
    categories: dict[str, int] = {}
    for part in parts:
        categories[part.category] = categories.get(part.category, 0) + part.bytes
    reserved, shared = account["reserved_bytes"], account["shared_bytes"]
    return Stack(
        time,
        used,
        card["memory"]["total_bytes"],
        account["unattributed_bytes"],
        0 if reserved is None else reserved,
        0 if shared is None else shared,
        tuple(parts[:MOST_PARTS]),
        sum(part.bytes for part in parts[MOST_PARTS:]),
        categories,
    )


def _lanes(card: Adapter) -> dict[str, tuple[float, float]]:
    errors = [card["ecc"]["corrected_volatile"], card["ecc"]["uncorrected_volatile"]]
    known = [count for count in errors if count is not None]
    values = {
        "load": card["load"]["gpu_percent"],
        "bandwidth": card["load"]["memory_bandwidth_percent"],
        "temperature": card["temperature"]["gpu_celsius"],
        "power": card["power"]["draw_watts"],
        "ecc": sum(known) if known else None,
    }
    return {lane: (float(value), float(value)) for lane, value in values.items() if value is not None}


def _usual_pause(columns: list[Column]) -> float:
    """Three times the median step; longer ones are gaps, and no column may hide one."""
    steps = sorted(right.start - left.end for left, right in pairwise(columns))
    return 3 * steps[len(steps) // 2]


def _halve(columns: list[Column], usual: float, *, mixed: bool = False) -> list[Column]:
    merged: list[Column] = []
    index = 0
    while index < len(columns):
        left = columns[index]
        right = columns[index + 1] if index + 1 < len(columns) else None
        if right is not None and _alike(left, right, mixed=mixed) and right.start - left.end <= usual:
            merged.append(_merge(left, right))
            index += 2
        else:
            merged.append(left)
            index += 1
    return merged


def _alike(left: Column, right: Column, *, mixed: bool) -> bool:
    return left.boot == right.boot and (mixed or left.unknown == right.unknown)


def _merge(left: Column, right: Column) -> Column:
    low = right.low if left.low is None else left.low
    high = right.high if left.high is None else left.high
    if low is not None and right.low is not None and right.low.used < low.used:
        low = right.low
    if high is not None and right.high is not None and right.high.used > high.used:
        high = right.high
    lanes = dict(left.lanes)
    for lane, (least, most) in right.lanes.items():
        held = lanes.get(lane, (least, most))
        lanes[lane] = (min(held[0], least), max(held[1], most))
    holes = {**right.holes, **left.holes}
    why = left.unknown if left.unknown is not None else right.unknown
    if low is not None and why is not None:
        holes[MEMORY], why = why, None
    return Column(left.start, right.end, left.boot, low, high, why, lanes, holes)
