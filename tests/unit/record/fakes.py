"""A clock that obeys, a sink that can fail, and signals that never come: what the loop needs around it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from gpusnap.record.writer import WriteFailed
from tests.builders import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Host
    from gpusnap.model import Snapshot
    from gpusnap.record.signals import Signals


class FakeHost:
    """`costs` are the seconds that the samples take, `suspends` maps the n-th sleep to a suspend in it."""

    def __init__(self, suspends: dict[int, float] | None = None) -> None:
        self.boot = 1000.0
        self.slept: list[float] = []
        self._suspends = suspends or {}

    def uptime(self) -> float:
        return self.boot

    def sleep(self, seconds: float) -> None:
        """CLOCK_MONOTONIC stands still in a suspend: a sleep is as long as ever, the boot clock is further."""
        self.boot += seconds + self._suspends.get(len(self.slept), 0.0)
        self.slept.append(seconds)

    def as_host(self) -> Host:
        return cast("Host", self)


class Quiet:
    """Signals that pass sleeps on; `stop_after` makes one come with that many sleeps done."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.received: int | None = None
        self.forwarded_to: Callable[[int], None] | None = None
        self._left = stop_after

    def sleep(self, seconds: float, sleep: Callable[[float], None]) -> None:
        if self._left == 0:
            self.received = 15
            return
        if self._left is not None:
            self._left -= 1
        sleep(seconds)

    def forward_to(self, send: Callable[[int], None]) -> None:
        self.forwarded_to = send

    def stop_forwarding(self) -> None:
        self.forwarded_to = None

    def as_signals(self) -> Signals:
        return cast("Signals", self)


class ListSink:
    """Keeps lines; refuses the attempts whose numbers (from 1) are in `failing`."""

    def __init__(self, failing: frozenset[int] = frozenset()) -> None:
        self.lines: list[bytes] = []
        self.attempts = 0
        self._failing = failing

    def append(self, line: bytes) -> int:
        self.attempts += 1
        if self.attempts in self._failing:
            raise WriteFailed("a.jsonl: No space left on device")
        self.lines.append(line)
        return len(line) + 1


class Log:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.wrote_sequences: list[int] = []
        self.failures: list[str] = []

    def sampled(self, doc: Snapshot) -> None:
        assert doc["recording"] is None

    def wrote(self, doc: Snapshot, count: int) -> None:
        recording = doc["recording"]
        assert recording is not None
        assert count > 0
        self.wrote_sequences.append(recording["sequence"])

    def failed(self, message: str) -> None:
        self.failures.append(message)


def sampler(host: FakeHost, costs: list[float] | None = None) -> Callable[[], Snapshot]:
    """Documents without a card; the n-th sample takes costs[n] seconds of the boot clock."""
    left = list(costs or [])

    def sample() -> Snapshot:
        doc = cast("Snapshot", copy.deepcopy(_EMPTY))
        doc["uptime_seconds"] = host.boot
        host.boot += left.pop(0) if left else 0.0
        return doc

    return sample


_EMPTY: Any = snapshot([], [])
