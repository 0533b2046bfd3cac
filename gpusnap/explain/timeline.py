"""The times of a recording's samples: gaps, clock steps and reboots told apart.

Order and elapsed time come from the boot clock (`uptime_seconds`) within one `boot_id`; the wall clock only
places a boot in the day. So a wall clock that jumped by fourteen minutes is a clock step and no gap
(helixscreen#1218), and a pause is a gap whatever the wall clock says. Nothing is interpolated over any of them.
"""

from __future__ import annotations

from heapq import heappushpop
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.words import count_of
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from gpusnap.model import Snapshot

# Bounds for a recording that consists of nothing but pauses.
_MOST = 1000
_INTERVALS = 4096


class Pause(NamedTuple):
    """Two neighbouring samples and why there may be none between them."""

    seconds: float
    start: float
    end: float
    reason: str


class Step(NamedTuple):
    """The wall clock moved by `seconds` more (or less) than the boot clock between two samples."""

    time: float
    seconds: float


class Reboot(NamedTuple):
    """`start` is the last sample of one boot, `end` the first of the next."""

    start: float
    end: float


class Tick(NamedTuple):
    """One sample's place: seconds since 1970 by the boot clock, and what lies between it and the one before."""

    time: float
    elapsed: float | None
    boot: int


class Timeline:
    """Fed with each sample in order of the file."""

    __slots__ = (
        "_anchor",
        "_intervals",
        "_last",
        "_last_wall",
        "_pauses",
        "_stride",
        "_usual",
        "boot",
        "count",
        "first",
        "last",
        "reboots",
        "steps",
    )

    def __init__(self) -> None:
        self.count = 0
        self.boot = 0
        self.first: float | None = None
        self.last: float | None = None
        self.steps: list[Step] = []
        self.reboots: list[Reboot] = []
        self._anchor = 0.0
        self._last: Snapshot | None = None
        self._last_wall = 0.0
        self._pauses: list[Pause] = []
        self._intervals: list[float] = []
        self._stride = 1
        self._usual = (0, float("inf"))

    def add(self, document: Snapshot) -> Tick:
        wall = parse_rfc3339(document["taken_at"])
        uptime = document["uptime_seconds"]
        before, last = self._last, self.last
        elapsed: float | None = None
        if before is None or last is None or not _same_boot(before, document):
            time = self._new_boot(wall, uptime, rebooted=before is not None)
        elif uptime is not None and before["uptime_seconds"] is not None:
            time = self._anchor + uptime
            elapsed = time - last
            self._compare_clocks(time, elapsed, wall - self._last_wall)
        else:
            time = wall
            elapsed = time - last
        if elapsed is not None and elapsed < 0:
            # Two recorders write one file: each line is in time, their order need not be.
            return Tick(time, elapsed, self.boot)
        if elapsed is not None and last is not None and before is not None:
            self._note_interval(elapsed)
            self._note_pause(Pause(elapsed, last, time, _pause_reason(before, document)))
        self.count += 1
        self.first = time if self.first is None else self.first
        self.last, self._last, self._last_wall = time, document, wall
        return Tick(time, elapsed, self.boot)

    def interval(self) -> float | None:
        """The usual time between two samples of one boot."""
        return median(self._intervals) if self._intervals else None

    def widest_usual(self) -> float:
        """A pause that is longer is a gap, as far as known by now; worked out anew now and then."""
        known_at, usual = self._usual
        if self.count >= known_at + 1 + min(known_at, 256) // 4:
            usual = self._widest_usual()
            self._usual = self.count, usual
        return usual

    def _widest_usual(self) -> float:
        interval = self.interval()
        if interval is None:
            return float("inf")
        return max(at.GAP_INTERVALS * interval, interval + at.GAP_LEAST_SECONDS)

    def gaps(self) -> list[Pause]:
        """In order of time."""
        limit = self._widest_usual()
        return sorted((pause for pause in self._pauses if pause.seconds > limit), key=lambda pause: pause.start)

    def _new_boot(self, wall: float, uptime: float | None, *, rebooted: bool) -> float:
        if rebooted and self.last is not None:
            self.boot += 1
            if len(self.reboots) < _MOST:
                self.reboots.append(Reboot(self.last, wall))
        self._anchor = wall - uptime if uptime is not None else 0.0
        return wall

    def _compare_clocks(self, time: float, elapsed: float, by_wall: float) -> None:
        drift = by_wall - elapsed
        if abs(drift) >= at.CLOCK_STEP_SECONDS and len(self.steps) < _MOST:
            self.steps.append(Step(time, drift))

    def _note_interval(self, elapsed: float) -> None:
        """A thinned sample of all intervals, for their median."""
        if self.count % self._stride == 0:
            self._intervals.append(elapsed)
        if len(self._intervals) > _INTERVALS:
            self._intervals = self._intervals[::2]
            self._stride *= 2

    def _note_pause(self, pause: Pause) -> None:
        """The longest ones are kept until the usual interval is known."""
        if len(self._pauses) < _MOST:
            self._pauses.append(pause)
            if len(self._pauses) == _MOST:
                self._pauses.sort()
        else:
            heappushpop(self._pauses, pause)


def _same_boot(before: Snapshot, after: Snapshot) -> bool:
    if before["boot_id"] is not None and after["boot_id"] is not None:
        return before["boot_id"] == after["boot_id"]
    early, late = before["uptime_seconds"], after["uptime_seconds"]
    return early is None or late is None or late >= early


def _pause_reason(before: Snapshot, after: Snapshot) -> str:
    left, right = before["recording"], after["recording"]
    if left is None or right is None:
        return "nothing was recorded"
    if left["writer_pid"] != right["writer_pid"]:
        return "the recorder was not running"
    if right["missed_ticks"] > 0:
        return f"the machine slept or was busy: {count_of(right['missed_ticks'], 'tick')} missed"
    if right["sequence"] > left["sequence"] + 1:
        return count_of(right["sequence"] - left["sequence"] - 1, "line is lost", "lines are lost")
    return "the machine slept or was busy"
