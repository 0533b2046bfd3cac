"""A pass over samples: clocks, unknown samples, identities. Expected values are counted by hand."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.explain.history import History
from gpusnap.explain.reservoir import CAPACITY, Reservoir
from tests.builders import BOOT, GIB, MIB, START, adapter, backend, process, recording, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Snapshot


def sample(step: int, **more: Any) -> Snapshot:
    """Every ten seconds, one card, one process that holds 2 GiB."""
    more.setdefault("at", START + 10 * step)
    more.setdefault("uptime", 86_400.0 + 10 * step)
    cards = more.pop("cards", [adapter(used=3 * GIB)])
    rows = more.pop("rows", [process(7, 2 * GIB)])
    return snapshot(cards, rows, **more)


def history(documents: list[Snapshot]) -> History:
    return History().feed(documents)


def test_report_010_a_wall_clock_that_jumps_is_a_clock_step_and_no_gap() -> None:
    # helixscreen#1218: two samples 5 s apart by the boot clock, 879 s by the wall clock.
    before = [sample(0, at=START + 5 * step, uptime=100.0 + 5 * step) for step in range(6)]
    after = [sample(0, at=START + 904 + 5 * step, uptime=130.0 + 5 * step) for step in range(6)]
    seen = history(before + after).timeline
    assert [round(step.seconds) for step in seen.steps] == [874]
    assert seen.gaps() == []
    assert seen.last is not None
    assert seen.first is not None
    assert seen.last - seen.first == pytest.approx(55)


def test_a_pause_is_a_gap_and_says_why() -> None:
    documents = [sample(step, recording=recording(step + 1)) for step in range(20)]
    documents += [
        sample(step, recording=recording(step - 99, missed=80 if step == 120 else 0)) for step in range(120, 140)
    ]
    gaps = history(documents).timeline.gaps()
    assert [(gap.seconds, gap.reason) for gap in gaps] == [
        (1010.0, "the machine slept or was busy: 80 ticks missed")
    ]


def test_another_writer_and_lost_lines_are_told_apart() -> None:
    documents = [sample(step, recording=recording(step + 1)) for step in range(10)]
    documents += [sample(step, recording=recording(1 + step - 100, writer=9)) for step in range(100, 110)]
    documents += [sample(step, recording=recording(1 + step - 100, writer=9)) for step in range(200, 210)]
    reasons = [gap.reason for gap in history(documents).timeline.gaps()]
    assert reasons == ["the recorder was not running", "90 lines are lost"]


def test_a_reboot_starts_every_series_anew_and_nobody_exits() -> None:
    documents = [sample(step) for step in range(5)]
    documents += [
        sample(step, boot="11111111-2222-4333-8444-555555555555", uptime=30.0 + 10 * step) for step in range(5, 9)
    ]
    seen = history(documents)
    assert len(seen.timeline.reboots) == 1
    assert sorted(seen.cards[adapter()["id"]].used) == [0, 1]
    assert [event.kind for event in seen.events] == []
    assert len(seen.processes) == 2


@pytest.mark.parametrize(
    "cards",
    [
        [adapter(used="null:device-lost", listed="null:device-lost", leaves={"health": "lost"})],
        [adapter(used=3 * GIB, listed="null:failed")],
        [adapter(used=3 * GIB, listed="partial")],
        [],
    ],
)
def test_a_lost_card_or_a_failed_list_is_not_everything_exited(cards: list[dict[str, Any]]) -> None:
    failed = [backend(status="failed", detail="NVML_ERROR_GPU_IS_LOST")]
    documents = [sample(step) for step in range(4)]
    documents += [sample(step, cards=cards, rows=[], backends=failed) for step in range(4, 7)]
    documents += [sample(step) for step in range(7, 10)]
    seen = history(documents)
    assert seen.events == []
    assert len(seen.processes) == 1
    (track,) = seen.processes.values()
    assert track.series.samples == 7


def test_report_083_a_reused_pid_is_another_process() -> None:
    # collectd#3773: pid 4711 started at 1000 holds 8 GiB; pid 4711 started at 9000 holds 1 GiB.
    documents = [sample(step, rows=[process(4711, 8 * GIB, start_ticks=1000)]) for step in range(3)]
    documents += [sample(step, rows=[process(4711, GIB, start_ticks=9000)]) for step in range(3, 6)]
    seen = history(documents)
    assert [(event.kind, event.bytes) for event in seen.events] == [("start", None), ("exit", 8 * GIB)]
    assert sorted(track.series.last or 0 for track in seen.processes.values()) == [GIB, 8 * GIB]


def test_an_exit_that_frees_nothing_is_kept_with_its_figures() -> None:
    documents = [
        sample(step, cards=[adapter(used=21 * GIB, total=24 * GIB)], rows=[process(9021, 20 * GIB)])
        for step in range(5)
    ]
    documents += [sample(step, cards=[adapter(used=21 * GIB, total=24 * GIB)], rows=[]) for step in range(5, 15)]
    (left,) = history(documents).departures.left_behind
    assert (left.pid, left.held, left.freed) == (9021, 20 * GIB, 0)


def test_a_next_job_that_takes_the_same_memory_is_not_a_residue() -> None:
    full = [adapter(used=15 * GIB)]
    documents = [sample(step, cards=full, rows=[process(9021, 14 * GIB)]) for step in range(5)]
    documents += [sample(step, cards=full, rows=[process(9022, 14 * GIB, start_ticks=5)]) for step in range(5, 20)]
    seen = history(documents)
    assert [event.kind for event in seen.events] == ["start", "exit"]
    assert seen.departures.left_behind == []


def test_memory_that_comes_free_three_samples_late_is_not_a_residue() -> None:
    documents = [sample(step, cards=[adapter(used=15 * GIB)], rows=[process(9021, 14 * GIB)]) for step in range(5)]
    documents += [sample(step, cards=[adapter(used=15 * GIB)], rows=[]) for step in range(5, 8)]
    documents += [sample(step, cards=[adapter(used=GIB)], rows=[]) for step in range(8, 20)]
    assert history(documents).departures.left_behind == []


def test_unknown_samples_are_counted_with_their_reason_and_never_filled_in() -> None:
    documents = [
        sample(step, cards=[adapter(used="null:device-busy" if 3 <= step < 6 else 3 * GIB)]) for step in range(10)
    ]
    series = history(documents).cards[adapter()["id"]].used[0]
    assert (series.samples, series.unknown) == (7, 3)
    assert [(reason, count) for _, _, reason, count in series.unknown_ranges] == [("the device was busy", 3)]
    assert len(series.reservoir.points()) == 7


def test_ecc_counters_grow_and_reset() -> None:
    counts = [3, 3, 5, 5, 1, 2]
    documents = [
        sample(step, cards=[adapter(leaves={"ecc.corrected_volatile": count})])
        for step, count in enumerate(counts)
    ]
    counter = history(documents).cards[adapter()["id"]].counters["corrected_volatile"]
    assert (counter.first, counter.last, counter.grown, len(counter.resets)) == (3, 2, 4, 1)


def test_two_thousand_samples_are_held_exactly_and_more_keep_their_extremes() -> None:
    reservoir = Reservoir()
    for step in range(CAPACITY):
        reservoir.add(float(step), float(step % 7))
    assert [(point.time, point.low) for point in reservoir.points()] == [
        (float(step), float(step % 7)) for step in range(CAPACITY)
    ]
    for step in range(CAPACITY, 100_000):
        reservoir.add(float(step), -5.0 if step == 77_777 else 99.0 if step == 55_555 else float(step % 7))
    points = reservoir.points()
    assert len(points) <= CAPACITY
    assert sum(point.samples for point in points) == 100_000
    assert min((point.low, point.time) for point in points) == (-5.0, 77_777.0)
    assert max(point.high for point in points) == 99.0


def test_a_recorders_samples_of_another_host_are_not_mixed_in() -> None:
    seen = history([sample(0), sample(1, hostname="other"), sample(2)])
    assert (seen.timeline.count, seen.foreign) == (2, 1)


def test_memory_stays_bounded_however_many_processes_come_and_go() -> None:
    tracemalloc.start()
    seen = History()
    for step in range(3000):
        rows = [process(step * 4 + number + 10, 100 * MIB, start_ticks=step + 1) for number in range(4)]
        seen.add(sample(step, rows=rows))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.forgotten + len(seen.processes) == 12_000
    assert seen.forgotten > 11_000
    assert held < 12e6
    assert seen.first is not None
    assert seen.first["boot_id"] == BOOT
