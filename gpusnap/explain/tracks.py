"""What is remembered of one card and of one process while a recording streams by: bounded, whatever its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.load_split import LoadSplit
from gpusnap.explain.reservoir import Reservoir

if TYPE_CHECKING:
    from gpusnap.model import Adapter, Process

_RANGES = 256


class Series:
    """One figure over time: exact first, last, minimum and maximum, and a reservoir for its shape."""

    __slots__ = (
        "_load",
        "first",
        "first_time",
        "highest",
        "highest_time",
        "last",
        "last_time",
        "lowest",
        "reservoir",
        "samples",
        "split",
        "unknown",
        "unknown_ranges",
    )

    def __init__(self) -> None:
        self.samples = 0
        self.unknown = 0
        self.first: int | None = None
        self.last: int | None = None
        self.lowest: int | None = None
        self.highest: int | None = None
        self.first_time = self.last_time = self.highest_time = 0.0
        self.reservoir = Reservoir()
        self.split = LoadSplit()
        # [start, end, reason, samples]: runs of samples without a figure.
        self.unknown_ranges: list[tuple[float, float, str, int]] = []
        self._load: float | None = None

    def add(self, time: float, value: int, load: float | None, *, joined: bool) -> None:
        """`joined`: the sample before it was measured too, so the difference says something."""
        if self.last is not None and joined and self._was_known():
            both = None if load is None or self._load is None else max(load, self._load)
            self.split.add(value - self.last, time - self.last_time, both)
        if self.first is None or self.lowest is None or self.highest is None:
            self.first = self.lowest = self.highest = value
            self.first_time = self.highest_time = time
        if value > self.highest:
            self.highest, self.highest_time = value, time
        self.lowest = min(self.lowest, value)
        self.last, self.last_time, self._load = value, time, load
        self.samples += 1
        self.reservoir.add(time, value, load)

    def add_unknown(self, time: float, reason: str) -> None:
        self.unknown += 1
        ranges = self.unknown_ranges
        if ranges and ranges[-1][2] == reason and ranges[-1][1] >= self.last_time:
            start, _, _, count = ranges[-1]
            ranges[-1] = (start, time, reason, count + 1)
        elif len(ranges) < _RANGES:
            ranges.append((time, time, reason, 1))

    def _was_known(self) -> bool:
        return not self.unknown_ranges or self.unknown_ranges[-1][1] < self.last_time


class ProcessTrack:
    """One process on one card: the same boot, pid and start stamp."""

    __slots__ = (
        "adapter",
        "boot",
        "busiest",
        "figure",
        "first_row",
        "last_row",
        "loads",
        "sample",
        "seen_starting",
        "series",
    )

    def __init__(self, row: Process, boot: int) -> None:
        self.adapter = row["adapter"]
        self.boot = boot
        self.series = Series()
        self.first_row = self.last_row = row
        self.sample = 0
        # The recording has a sample of before it was there.
        self.seen_starting = False
        # Which leaf is followed: `vram_bytes`, or `spill_bytes` where memory is unified.
        self.figure = "vram_bytes"
        self.busiest: float | None = None
        self.loads = 0

    @property
    def pid(self) -> int:
        return self.last_row["pid"]

    @property
    def start_ticks(self) -> int | None:
        return self.last_row["start_ticks"]

    @property
    def peak(self) -> int:
        return -1 if self.series.highest is None else self.series.highest


class Spell(NamedTuple):
    """A stretch of time: the first sample of it, and the first one after it (None: it lasts)."""

    start: float
    end: float | None


class CardTrack:
    """One card over the whole recording."""

    __slots__ = (
        "busiest",
        "counters",
        "first_row",
        "full_idle",
        "held_first",
        "held_last",
        "id",
        "idle",
        "last_row",
        "loads",
        "lost",
        "lost_samples",
        "rest",
        "samples",
        "total",
        "unlisted_samples",
        "used",
    )

    def __init__(self, row: Adapter) -> None:
        self.id = row["id"]
        self.first_row = self.last_row = row
        # One series for each boot: after a reboot a card begins anew.
        self.used: dict[int, Series] = {}
        self.rest: dict[int, Series] = {}
        self.samples = 0
        self.total: int | None = None
        self.busiest: float | None = None
        self.loads = 0
        self.idle = 0
        self.full_idle = 0
        self.lost_samples = 0
        self.lost: list[Spell] = []
        self.unlisted_samples = 0
        # What listed processes held together in the first and in the last sample that tells.
        self.held_first: int | None = None
        self.held_last: int | None = None
        # ECC counters: leaf -> Counter
        self.counters: dict[str, Counter] = {}

    def note_health(self, time: float, health: str) -> None:
        is_lost, was_lost = health == "lost", bool(self.lost) and self.lost[-1].end is None
        self.lost_samples += is_lost
        if was_lost and not is_lost:
            self.lost[-1] = self.lost[-1]._replace(end=time)
        elif is_lost and not was_lost and len(self.lost) < _RANGES:
            self.lost.append(Spell(time, None))


class Counter:
    """A counter that only grows, except when the driver is loaded anew or the machine starts."""

    __slots__ = ("first", "grown", "growths", "last", "resets")

    def __init__(self, value: float) -> None:
        self.first = self.last = value
        self.grown: float = 0
        self.growths: list[tuple[float, float]] = []
        self.resets: list[float] = []

    def add(self, time: float, value: float) -> None:
        delta = value - self.last
        if delta < 0:
            if len(self.resets) < _RANGES:
                self.resets.append(time)
            # What it counted since its restart is new too.
            delta = value
        if delta > 0:
            self.grown += delta
            if len(self.growths) < _RANGES:
                self.growths.append((time, delta))
        self.last = value
