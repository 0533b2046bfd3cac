"""Samples in a row, on an injected clock."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from gpusnap.record.loop import GivenUp, Recorder, record_beside, record_series
from gpusnap.record.writer import NotARecording
from tests.unit.record.fakes import FakeHost, ListSink, Log, Quiet, sampler


def dumps(doc: object) -> bytes:
    return json.dumps(doc, separators=(",", ":")).encode()


def series(
    host: FakeHost,
    sink: ListSink,
    every: float,
    *,
    costs: list[float] | None = None,
    signals: Quiet | None = None,
    log: Log | None = None,
    max_failures: int = 3,
    **until: Any,
) -> list[dict[str, Any]]:
    watchers = () if log is None else (log,)
    recorder = Recorder(sampler(host, costs), dumps, sink, watchers, max_failures)
    record_series(recorder, host.as_host(), (signals or Quiet()).as_signals(), every, **until)
    return [json.loads(line) for line in sink.lines]


def test_count_samples_are_numbered_from_1_and_bear_the_writers_pid() -> None:
    docs = series(FakeHost(), ListSink(), 10.0, count=3)
    assert [doc["recording"] for doc in docs] == [
        {"writer_pid": os.getpid(), "sequence": n, "missed_ticks": 0, "late_seconds": 0.0} for n in (1, 2, 3)
    ]
    assert [doc["uptime_seconds"] for doc in docs] == [1000.0, 1010.0, 1020.0]


class RunningHost(FakeHost):
    """A clock that goes on while it is read, as all do."""

    def uptime(self) -> float:
        self.boot += 0.0001
        return self.boot


def test_no_tick_is_missed_because_the_clock_goes_on_between_two_looks_at_it() -> None:
    docs = series(RunningHost(), ListSink(), 1.0, count=5)
    assert [doc["recording"]["missed_ticks"] for doc in docs] == [0] * 5
    assert docs[0]["uptime_seconds"] == pytest.approx(1000.0, abs=0.01)


def test_a_line_begins_as_the_contract_says() -> None:
    sink = ListSink()
    series(FakeHost(), sink, 10.0, count=1)
    assert sink.lines[0].startswith(b'{"schema":"gpusnap.snapshot/')
    assert b"\n" not in sink.lines[0]


def test_report_067_a_minute_at_one_second_is_61_samples_both_ends_included_without_drift() -> None:
    docs = series(FakeHost(), ListSink(), 1.0, costs=[0.3] * 100, duration=60.0)
    assert [doc["uptime_seconds"] for doc in docs] == [1000.0 + n for n in range(61)]


def test_a_duration_shorter_than_the_interval_is_one_sample() -> None:
    assert len(series(FakeHost(), ListSink(), 10.0, duration=9.0)) == 1


def test_report_085_a_driver_that_takes_three_intervals_is_sampled_less_and_says_so() -> None:
    docs = series(FakeHost(), ListSink(), 1.0, costs=[0.0, 3.2, 0.0, 0.0], count=4)
    assert [doc["uptime_seconds"] for doc in docs] == [1000.0, 1001.0, 1005.0, 1006.0]
    assert [doc["recording"]["missed_ticks"] for doc in docs] == [0, 0, 3, 0]


def test_after_a_suspend_one_sample_comes_at_once_and_counts_what_was_missed() -> None:
    host = FakeHost(suspends={1: 1265.0})
    docs = series(host, ListSink(), 10.0, count=4)
    assert [doc["uptime_seconds"] for doc in docs] == [1000.0, 1010.0, 2285.0, 2290.0]
    assert [doc["recording"]["missed_ticks"] for doc in docs] == [0, 0, 126, 0]
    assert [doc["recording"]["late_seconds"] for doc in docs] == [0.0, 0.0, 5.0, 0.0]


def test_an_hourly_sample_is_at_most_a_minute_late_after_a_suspend() -> None:
    host = FakeHost(suspends={10: 86_400.0})
    docs = series(host, ListSink(), 3600.0, count=2)
    assert max(host.slept) <= 60.0
    # Asleep from the 11th minute on for a day: due long ago when the nap ends.
    assert docs[1]["uptime_seconds"] == 1000.0 + 11 * 60 + 86_400.0
    assert docs[1]["recording"]["missed_ticks"] == 23


def test_a_sample_that_could_not_be_kept_counts_as_missed_and_takes_no_number() -> None:
    log = Log()
    docs = series(FakeHost(), ListSink(frozenset({2, 3})), 10.0, count=3, log=log)
    assert [doc["uptime_seconds"] for doc in docs] == [1000.0, 1030.0, 1040.0]
    assert [doc["recording"]["sequence"] for doc in docs] == [1, 2, 3]
    assert [doc["recording"]["missed_ticks"] for doc in docs] == [0, 2, 0]
    assert log.wrote_sequences == [1, 2, 3]
    assert log.failures == ["a.jsonl: No space left on device"] * 2


def test_failures_in_a_row_end_the_run_and_a_good_one_between_starts_the_count_anew() -> None:
    sink = ListSink(frozenset({2, 3, 5, 6, 7}))
    with pytest.raises(GivenUp, match="No space left"):
        series(FakeHost(), sink, 10.0)
    assert len(sink.lines) == 2
    assert sink.attempts == 7


def test_a_signal_ends_the_series_and_no_sample_begins_after_it() -> None:
    signals = Quiet(stop_after=2)
    assert len(series(FakeHost(), ListSink(), 10.0, signals=signals)) == 3


def test_a_signal_before_the_first_sample_ends_it_without_one() -> None:
    signals = Quiet()
    signals.received = 15
    assert series(FakeHost(), ListSink(), 10.0, signals=signals) == []


class FakeCommand:
    """Ends when the boot clock is at `end`."""

    def __init__(self, host: FakeHost, seconds: float, code: int = 0) -> None:
        self._host = host
        self._end = host.boot + seconds
        self._code = code
        self.signals: list[int] = []

    def exit_code(self) -> int | None:
        return self._code if self._host.boot >= self._end else None

    def forward(self, number: int) -> None:
        self.signals.append(number)


class WakesAtTheEnd(Quiet):
    """As SIGCHLD does: no sleep goes beyond the end of the command."""

    def __init__(self, host: FakeHost, end: float) -> None:
        super().__init__()
        self._host, self._end = host, end

    def sleep(self, seconds: float, sleep: Any) -> None:
        sleep(min(seconds, max(0.0, self._end - self._host.boot)))


def test_beside_a_command_stands_one_sample_before_samples_meanwhile_and_one_after() -> None:
    host, sink = FakeHost(), ListSink()
    signals = WakesAtTheEnd(host, 1025.0)
    recorder = Recorder(sampler(host), dumps, sink)
    started: list[float] = []

    def start() -> FakeCommand:
        started.append(host.boot)
        assert len(sink.lines) == 1
        return FakeCommand(host, 25.0, code=7)

    run = record_beside(recorder, host.as_host(), signals.as_signals(), 10.0, start)
    assert (run.exit_code, run.elapsed_seconds, run.kept) == (7, 25.0, True)
    assert started == [1000.0]
    docs = [json.loads(line) for line in sink.lines]
    assert [doc["uptime_seconds"] for doc in docs] == [1000.0, 1010.0, 1020.0, 1025.0]
    assert signals.forwarded_to is None  # a signal after the end is the recorder's own


def test_a_command_outlives_a_disk_that_is_full_and_its_record_goes_on_when_there_is_space() -> None:
    host, sink = FakeHost(), ListSink(frozenset(range(2, 7)))
    recorder = Recorder(sampler(host), dumps, sink)
    signals = WakesAtTheEnd(host, 1065.0)
    run = record_beside(
        recorder, host.as_host(), signals.as_signals(), 10.0, lambda: FakeCommand(host, 65.0, code=0)
    )
    assert (run.exit_code, run.kept) == (0, False)
    docs = [json.loads(line) for line in sink.lines]
    assert [doc["recording"]["missed_ticks"] for doc in docs] == [0, 5, 0]


class ForeignSink(ListSink):
    def append(self, line: bytes) -> int:
        raise NotARecording("a.jsonl: not a gpusnap recording, left alone")


def test_a_command_outlives_a_file_that_became_somebody_elses() -> None:
    host, log = FakeHost(), Log()
    recorder = Recorder(sampler(host), dumps, ForeignSink(), (log,))
    signals = WakesAtTheEnd(host, 1005.0)
    run = record_beside(recorder, host.as_host(), signals.as_signals(), 10.0, lambda: FakeCommand(host, 5.0))
    assert (run.exit_code, run.kept) == (0, False)
    assert log.failures == ["a.jsonl: not a gpusnap recording, left alone"] * 2


def test_a_fault_of_ours_is_raised_only_when_the_command_has_ended() -> None:
    """A batch job ends with its wrapper: a training run must not pay for a bug here."""
    host = FakeHost()
    good = sampler(host)
    taken: list[float] = []

    def sample() -> Any:
        taken.append(host.boot)
        if len(taken) == 2:
            raise ZeroDivisionError
        return good()

    signals = WakesAtTheEnd(host, 1065.0)
    recorder = Recorder(sample, dumps, ListSink())
    with pytest.raises(ZeroDivisionError):
        record_beside(recorder, host.as_host(), signals.as_signals(), 10.0, lambda: FakeCommand(host, 65.0))
    assert taken == [1000.0, 1010.0]
    assert host.boot == 1065.0


def test_a_signal_before_the_command_is_started_keeps_it_from_starting() -> None:
    host, signals = FakeHost(), Quiet()
    signals.received = 15
    recorder = Recorder(sampler(host), dumps, ListSink())

    def start() -> FakeCommand:
        raise AssertionError("started")

    run = record_beside(recorder, host.as_host(), signals.as_signals(), 10.0, start)
    assert run.exit_code is None
