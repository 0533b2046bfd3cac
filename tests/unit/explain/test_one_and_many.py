"""One of a thing is told in the singular."""

from __future__ import annotations

import pytest

from gpusnap.diff import diff
from gpusnap.explain.findings.ecc_growth import counters
from gpusnap.explain.history import History
from gpusnap.explain.reservoir import Point, Reservoir
from gpusnap.explain.verdict import judge
from gpusnap.render.diff_text import diff_lines
from gpusnap.render.screen import Screen
from tests.builders import GIB, START, adapter, process, snapshot


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, ["0 rows remapped: repaired for good", "0 pages retired"]),
        (1, ["1 row remapped: repaired for good", "1 page retired"]),
        (2, ["2 rows remapped: repaired for good", "2 pages retired"]),
    ],
)
def test_rows_and_pages_of_a_failing_memory(number: int, told: list[str]) -> None:
    card = adapter(leaves={"ecc.remapped_rows": number, "ecc.retired_pages": number})
    assert counters(card)[-2:] == told  # type: ignore[arg-type]


def points(values: list[int]) -> list[Point]:
    reservoir = Reservoir()
    for step, value in enumerate(values):
        reservoir.add(60.0 * step, value, None)
    return reservoir.points()


def test_what_a_verdict_lacks() -> None:
    low, high = 2 * GIB, 9 * GIB
    assert judge(points([low] * 2)).why == "2 samples; 12 are needed"
    assert judge(points([low])).why == "1 sample; 12 are needed"
    assert judge(points([low] * 8 + [high] * 8 + [low + GIB] * 8)).why == "1 cycle; 4 are needed"


def test_the_last_of_a_verdict_of_four() -> None:
    rows = [process(pid, pid * GIB, name=f"p{pid}") for pid in (1, 2, 3, 4)]
    before, after = snapshot([adapter(used=0)], []), snapshot([adapter(used=10 * GIB)], rows, at=START + 9)
    line = diff_lines(diff(before, after), before, after, Screen())[0]
    assert line.endswith("p4 took 4.0, p3 3.0, p2 2.0, 1 other 1.0.")


def test_a_tick_that_was_missed() -> None:
    history = History()
    for step, missed in [*((step, 0) for step in range(20)), (60, 1)]:
        document = snapshot([adapter(used=GIB)], [], at=START + 10 * step, uptime=9000 + 10 * step)
        document["recording"] = {"writer_pid": 1, "sequence": step, "missed_ticks": missed, "late_seconds": 0}
        history.add(document)
    assert [gap.reason for gap in history.timeline.gaps()] == ["the machine slept or was busy: 1 tick missed"]
