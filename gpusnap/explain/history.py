"""One pass over a recording: what every card and process did, in memory that does not grow with the file.

A card that is lost or a list that failed says nothing about its processes: they are unknown, not exited. A
process is one (boot, pid, start stamp) on one card; another start stamp is another process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.exits import Books, Departures
from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.frames import Frames
from gpusnap.explain.rows import entry_of, reason_word
from gpusnap.explain.timeline import Timeline
from gpusnap.explain.tracks import CardTrack, Counter, ProcessTrack, Series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.explain.timeline import Tick
    from gpusnap.model import Adapter, Process, Snapshot

# Processes that are followed at once or remembered; beyond it the smallest ones that ended are let go.
MOST_PROCESSES = 256
MOST_EVENTS = 2000
COUNTERS = frozenset(
    {
        "corrected_volatile",
        "uncorrected_volatile",
        "corrected_aggregate",
        "uncorrected_aggregate",
        "energy_joules",
    }
)

Key = tuple[int, str, int, "int | None"]


class Event(NamedTuple):
    """Something that happened between two samples; `time` is the later one."""

    time: float
    kind: str  # start | exit
    adapter: str
    pid: int | None
    name: str | None
    user: str | None
    bytes: int | None


class History:
    """Feed it every sample; then read `cards`, `processes`, `events`, `departures` and `timeline`."""

    def __init__(self, *, pictures: bool = False, source: str | None = None) -> None:
        # The file as it was named, for advice that a person can copy.
        self.source = source or "-"
        self.timeline = Timeline()
        self.cards: dict[str, CardTrack] = {}
        self.processes: dict[Key, ProcessTrack] = {}
        self.forgotten = 0
        self.events: list[Event] = []
        # Beyond `MOST_EVENTS`, by card.
        self.events_left_out: dict[str, int] = {}
        self.departures = Departures()
        self.first: Snapshot | None = None
        self.last: Snapshot | None = None
        self.foreign = 0
        self.frames = Frames() if pictures else None
        self._present: dict[str, dict[Key, Process]] = {}
        self._listed: dict[str, bool] = {}
        self._books: dict[str, Books] = {}

    def feed(self, documents: Iterable[Snapshot]) -> History:
        for document in documents:
            self.add(document)
        return self

    def add(self, document: Snapshot) -> None:
        if self.first is not None and document["host"]["hostname"] != self.first["host"]["hostname"]:
            self.foreign += 1
            return
        tick = self.timeline.add(document)
        if tick.elapsed is not None and tick.elapsed < 0:
            return
        if self.first is None:
            self.first = document
        by_card: dict[str, list[Process]] = {}
        for row in document["processes"] or ():
            by_card.setdefault(row["adapter"], []).append(row)
        if self.last is not None and tick.elapsed is None:
            self._forget_the_boot()
        for card in document["adapters"]:
            self._add_card(document, tick, card, by_card.get(card["id"], []))
        self._note_absent_cards(document, tick)
        self.last = document
        if self.frames is not None:
            self.frames.add(tick, document, by_card)

    def _add_card(self, document: Snapshot, tick: Tick, card: Adapter, rows: list[Process]) -> None:
        track = self.cards.get(card["id"])
        if track is None:
            track = self.cards[card["id"]] = CardTrack(card)
        usual = self.timeline.widest_usual()
        joined = tick.elapsed is not None and tick.elapsed <= usual
        load = card["load"]["gpu_percent"]
        track.last_row = card
        track.samples += 1
        if card["memory"]["total_bytes"] is not None:
            track.total = card["memory"]["total_bytes"]
        track.note_health(tick.time, card["health"])
        held = card["accounting"]["attributed_bytes"]
        if held is not None:
            track.held_first = held if track.held_first is None else track.held_first
            track.held_last = held
        self._note_load(track, card, load)
        why = reason_word(entry_of(document, card), "memory.used_bytes")
        _extend(track.used, tick, card["memory"]["used_bytes"], load, joined, why, usual)
        why = reason_word(entry_of(document, card), "accounting.unattributed_bytes")
        _extend(track.rest, tick, card["accounting"]["unattributed_bytes"], load, joined, why, usual)
        for leaf, value in (*card["ecc"].items(), ("energy_joules", card["power"]["energy_joules"])):
            if leaf in COUNTERS and isinstance(value, int | float):
                counter = track.counters.get(leaf)
                if counter is None:
                    track.counters[leaf] = Counter(value)
                else:
                    counter.add(tick.time, value)
        self._add_processes(document, tick, card, rows, joined=joined)

    def _note_load(self, track: CardTrack, card: Adapter, load: float | None) -> None:
        if load is None:
            return
        track.loads += 1
        track.busiest = load if track.busiest is None else max(track.busiest, load)
        if load == 0:
            track.idle += 1
            used, total = card["memory"]["used_bytes"], card["memory"]["total_bytes"]
            if used is not None and total is not None and used >= at.FULL_SHARE * total:
                track.full_idle += 1

    def _add_processes(
        self, document: Snapshot, tick: Tick, card: Adapter, rows: list[Process], *, joined: bool
    ) -> None:
        where = card["id"]
        complete = card["processes_listed"] == "complete" and card["health"] != "lost"
        if not complete:
            self.cards[where].unlisted_samples += 1
        now: dict[Key, Process] = {}
        for row in rows:
            if not row["self"]:
                now[(tick.boot, where, row["pid"], row["start_ticks"])] = row
        before = self._present.get(where, {})
        known = self._listed.get(where, False)
        for key, row in now.items():
            track = self.processes.get(key)
            if track is None:
                track = self.processes[key] = ProcessTrack(row, tick.boot)
                track.seen_starting = known and self.timeline.count > 1
                if track.seen_starting:
                    self._note(Event(tick.time, "start", where, row["pid"], row["name"], row["user"], None))
            self._extend_process(document, tick, card, row, track, joined=joined and key in before)
        books = Books(card["memory"]["used_bytes"], card["accounting"]["unattributed_bytes"])
        if complete:
            for key, row in before.items():
                if key not in now:
                    self._note_exit(tick, row, self._books.get(where, Books(None, None)))
            self._present[where] = now
        else:
            # What can't be seen now may still be there.
            self._present[where] = {**before, **now}
        self._listed[where] = complete
        self.departures.see(where, books)
        self._books[where] = books
        if len(self.processes) > MOST_PROCESSES:
            self._let_go()

    def _extend_process(
        self,
        document: Snapshot,
        tick: Tick,
        card: Adapter,
        row: Process,
        track: ProcessTrack,
        *,
        joined: bool,
    ) -> None:
        load = row["gpu_percent"]
        if load is not None:
            track.loads += 1
            track.busiest = load if track.busiest is None else max(track.busiest, load)
        if row["vram_bytes"] is None and row["spill_bytes"] is not None and card["memory"]["kind"] == "unified":
            track.figure = "spill_bytes"
        value = row["spill_bytes"] if track.figure == "spill_bytes" else row["vram_bytes"]
        track.last_row, track.sample = row, self.timeline.count
        if value is None:
            track.series.add_unknown(tick.time, reason_word(entry_of(document, row), track.figure))
            return
        track.series.reservoir.widest = self.timeline.widest_usual()
        track.series.add(
            tick.time, value, load if load is not None else card["load"]["gpu_percent"], joined=joined
        )

    def _note_exit(self, tick: Tick, row: Process, before: Books) -> None:
        held = row["vram_bytes"]
        self._note(Event(tick.time, "exit", row["adapter"], row["pid"], row["name"], row["user"], held))
        self.departures.note(tick.time, row, before)

    def _note_absent_cards(self, document: Snapshot, tick: Tick) -> None:
        """A card that is not in the sample at all: its backend failed. Nothing is known of it, then."""
        here = {card["id"] for card in document["adapters"]}
        for where, track in self.cards.items():
            if where in here:
                continue
            why = next(
                (row["status"] for row in document["backends"] if row["status"] not in ("ok", "absent")), None
            )
            for series in (track.used, track.rest):
                if tick.boot in series:
                    series[tick.boot].add_unknown(tick.time, f"backend {why}" if why else "the card is not there")
            self._listed[where] = False

    def _forget_the_boot(self) -> None:
        """After a reboot nothing is compared with what was before it."""
        self._present.clear()
        self._listed.clear()
        self._books.clear()
        self.departures.forget()

    def _note(self, event: Event) -> None:
        if len(self.events) < MOST_EVENTS:
            self.events.append(event)
        else:
            self.events_left_out[event.adapter] = self.events_left_out.get(event.adapter, 0) + 1

    def _let_go(self) -> None:
        """Forget the smaller half of the processes that are not there any more."""
        now = self.timeline.count
        gone = [key for key, track in self.processes.items() if track.sample < now - 1]
        gone.sort(key=lambda key: self.processes[key].peak)
        for key in gone[: (len(gone) + 1) // 2]:
            del self.processes[key]
            self.forgotten += 1


def _extend(
    series_by_boot: dict[int, Series],
    tick: Tick,
    value: int | None,
    load: float | None,
    joined: bool,
    why: str,
    usual: float,
) -> None:
    series = series_by_boot.setdefault(tick.boot, Series())
    if value is None:
        series.add_unknown(tick.time, why)
    else:
        series.reservoir.widest = usual
        series.add(tick.time, value, load, joined=joined)
