"""Ticks on the boot clock: the right values are hand arithmetic on start + n * every."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.record.schedule import Schedule


def test_report_067_sixty_samples_a_minute_stand_on_the_second_whatever_each_takes() -> None:
    schedule = Schedule(1.0, start=86_400.25)
    now, begun = 86_400.25, []
    for cost in [0.0, 0.01, 0.4, 0.99] * 15:
        now = max(now, schedule.due(now)) + 0.003  # a sleep ends a little late
        missed, late = schedule.take(now)
        assert missed == 0
        assert late == pytest.approx(0.003)
        begun.append(now)
        now += cost
    assert begun[-1] == pytest.approx(86_400.25 + 59 + 0.003)
    assert len(begun) == 60


def test_the_first_sample_is_due_at_once_though_the_clock_went_on() -> None:
    schedule = Schedule(10.0, start=100.0)
    assert schedule.due(100.00001) == 100.0
    missed, late = schedule.take(100.00001)
    assert missed == 0
    assert late == pytest.approx(0.00001)
    assert schedule.due(100.00002) == 110.0


def test_report_085_a_slow_driver_costs_ticks_and_never_makes_a_pile() -> None:
    schedule = Schedule(1.0, start=100.0)
    assert schedule.take(100.0) == (0, 0.0)
    # The sample took 3.2 s: ticks 101, 102 and 103 passed meanwhile.
    assert schedule.due(103.2) == 104.0
    assert schedule.take(104.0) == (3, 0.0)
    assert schedule.due(104.1) == 105.0


def test_a_suspend_is_one_late_sample_with_its_missed_ticks() -> None:
    """Asleep since 04:10:03; the sleep that waited for 04:10:10 ends at 04:31:47, six ticks a minute apart."""
    start = 50_000.0
    schedule = Schedule(10.0, start)
    assert schedule.take(start) == (0, 0.0)
    assert schedule.due(start + 3) == start + 10
    missed, late = schedule.take(start + 1307)  # 21 min 47 s
    assert missed == 129  # ticks 1 to 129; tick 130 is the one that is taken
    assert late == pytest.approx(7.0)
    assert schedule.due(start + 1308) == start + 1310


def test_report_010_a_wall_clock_step_moves_no_tick() -> None:
    """The schedule is built from the boot clock alone; nothing of it can see the wall clock's jump."""
    schedule = Schedule(5.0, start=1000.0)
    assert schedule.take(1000.0) == (0, 0.0)
    assert schedule.due(1000.1) == 1005.0
    assert schedule.take(1005.0) == (0, 0.0)


def test_a_sample_that_is_over_exactly_on_a_tick_takes_that_tick() -> None:
    schedule = Schedule(0.1, start=0.3)
    schedule.take(0.3)
    assert schedule.due(0.3 + 0.1) == pytest.approx(0.4)
    assert schedule.take(0.4)[0] == 0


def test_ticks_passed_are_counted_for_a_sample_that_is_off_the_grid() -> None:
    schedule = Schedule(10.0, start=0.0)
    schedule.take(0.0)
    assert schedule.passed(9.9) == 0
    assert schedule.passed(35.0) == 3


@given(
    every=st.sampled_from([0.05, 0.1, 0.7, 1.0, 10.0, 3600.0]),
    start=st.floats(0, 1e7),
    costs=st.lists(st.floats(0, 20), min_size=1, max_size=40),
)
@settings(deadline=None)
def test_every_tick_is_either_taken_or_counted_as_missed(every: float, start: float, costs: list[float]) -> None:
    schedule = Schedule(every, start)
    now, ticks = start, 0
    for cost in costs:
        due = schedule.due(now)
        assert due >= now - 1e-6
        now = max(now, due)
        missed, late = schedule.take(now)
        ticks += missed + 1
        assert missed >= 0
        assert 0 <= late < every
        # What was taken and what was missed fills the time since the start without a hole.
        assert start + (ticks - 1) * every == pytest.approx(now - late, abs=1e-6)
        now += cost * every
