"""Processes that went, and what became of the memory that they held.

What came free is told by the part that nobody holds, not by `used`: the next job may take the same memory in the
same moment. The driver may need a moment to free it, so a few samples are waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.findings import thresholds as at

if TYPE_CHECKING:
    from gpusnap.model import Process

_MOST = 500


class Exit(NamedTuple):
    """A process that left memory behind: `kept` of the `held` bytes belong to nobody since."""

    time: float
    adapter: str
    pid: int
    name: str | None
    user: str | None
    held: int
    kept: int
    used_before: int
    used_after: int

    @property
    def freed(self) -> int:
        return max(0, self.held - self.kept)


class Books(NamedTuple):
    """A card's use and unattributed rest in one sample; None: not measured."""

    used: int | None
    rest: int | None


class _Leaving:
    __slots__ = ("before", "least_rest", "least_used", "row", "time", "waited")

    def __init__(self, time: float, row: Process, before: Books) -> None:
        self.time = time
        self.row = row
        self.before = before
        self.least_used: int | None = None
        self.least_rest: int | None = None
        self.waited = 0

    def see(self, now: Books) -> None:
        self.waited += 1
        if now.used is not None and (self.least_used is None or now.used < self.least_used):
            self.least_used = now.used
        if now.rest is not None and (self.least_rest is None or now.rest < self.least_rest):
            self.least_rest = now.rest


class Departures:
    """Tell it of each exit and each sample; `left_behind` has those whose memory did not come free."""

    def __init__(self) -> None:
        self.left_behind: list[Exit] = []
        self._leaving: list[_Leaving] = []

    def note(self, time: float, row: Process, before: Books) -> None:
        held = row["vram_bytes"]
        if held is not None and held >= at.RESIDUAL_BYTES and before.used is not None and before.rest is not None:
            self._leaving.append(_Leaving(time, row, before))

    def see(self, adapter: str, now: Books) -> None:
        for leaving in [leaving for leaving in self._leaving if leaving.row["adapter"] == adapter]:
            leaving.see(now)
            if leaving.waited > at.RESIDUAL_WAIT_SAMPLES:
                self._leaving.remove(leaving)
                self._settle(leaving)

    def forget(self) -> None:
        """A reboot: nothing is compared with what was before it."""
        self._leaving.clear()

    def _settle(self, leaving: _Leaving) -> None:
        row, before = leaving.row, leaving.before
        held, rest, used = row["vram_bytes"], leaving.least_rest, leaving.least_used
        if held is None or rest is None or used is None or before.rest is None or before.used is None:
            return
        kept = min(held, rest - before.rest)
        if kept >= max(at.RESIDUAL_BYTES, at.RESIDUAL_SHARE * held) and len(self.left_behind) < _MOST:
            name, user = row["name"], row["user"]
            self.left_behind.append(
                Exit(leaving.time, row["adapter"], row["pid"], name, user, held, kept, before.used, used)
            )
