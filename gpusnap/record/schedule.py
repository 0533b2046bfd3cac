"""When to sample: on the boot clock, without drift, without a pile-up.

Tick n stands at start + n * every, computed from the start, so that nothing adds up (atop#350 asks for samples
on the second). The clock counts suspend and no clock step touches it (helixscreen#1218: a wall clock that
jumped by 874 s faked a gap). A tick that passed while the machine slept or a driver was slow is skipped and
counted in the next sample, never made up for (netdata#10362).
"""

from __future__ import annotations


class Schedule:
    """Pure arithmetic on seconds since boot; whoever waits and reads the clock stands elsewhere."""

    __slots__ = ("every", "last", "start")

    def __init__(self, every: float, start: float) -> None:
        self.every = every
        self.start = start
        self.last = -1

    def due(self, now: float) -> float:
        """When the next sample is to begin: the first tick from `now` on that has not been taken.

        The first is due at once, however long after `start` the clock is read again.
        """
        if self.last < 0:
            return self.start
        return self._at(max(self.last + 1, self._first_from(now)))

    def take(self, now: float) -> tuple[int, float]:
        """Begin a sample at `now`, at or after `due`: (ticks missed since the last one, seconds late)."""
        tick = max(self.last + 1, self._latest(now))
        missed = tick - self.last - 1
        self.last = tick
        return missed, max(0.0, now - self._at(tick))

    def passed(self, now: float) -> int:
        """Ticks that went by without a sample, for a sample that is not on a tick."""
        return max(0, self._latest(now) - self.last)

    def _at(self, tick: int) -> float:
        return self.start + tick * self.every

    def _latest(self, now: float) -> int:
        """The last tick at or before `now`; division alone can be one off at the very tick."""
        tick = int((now - self.start) // self.every)
        while self._at(tick + 1) <= now:
            tick += 1
        while tick > 0 and self._at(tick) > now:
            tick -= 1
        return tick

    def _first_from(self, now: float) -> int:
        tick = self._latest(now)
        return tick if self._at(tick) >= now else tick + 1
