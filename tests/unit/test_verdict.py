"""The labelled set: no false leak, at least 95 % of the leaks found."""

from __future__ import annotations

import pytest

from gpusnap.explain.reservoir import Reservoir
from gpusnap.explain.verdict import LEAKS, LoadSplit, Verdict, judge
from tests.labelled_series import LEAK, Labelled, labelled

SEEDS = (20261130, 1, 2, 3)


def verdict_of(series: Labelled) -> Verdict:
    reservoir, split = Reservoir(), LoadSplit()
    last: tuple[float, float, float | None] | None = None
    for time, value, load in series.samples:
        if value is None:
            continue
        if last is not None:
            both = None if load is None or last[2] is None else max(load, last[2])
            split.add(value - last[1], time - last[0], both)
        reservoir.add(time, value, load)
        last = time, value, load
    return judge(reservoir.points(), split)


def test_the_set_is_large_enough() -> None:
    assert len(labelled()) >= 60


@pytest.mark.parametrize("seed", SEEDS)
def test_there_is_no_false_leak_and_19_of_20_leaks_are_found(seed: int) -> None:
    wrong, missed, leaks = [], [], 0
    for series in labelled(seed):
        verdict = verdict_of(series)
        if series.truth == LEAK:
            leaks += 1
            if verdict.word not in LEAKS:
                missed.append(f"{series.name}: {verdict.word} ({verdict.why})")
        elif verdict.word in LEAKS:
            wrong.append(f"{series.name}: {verdict.word} ({verdict.why})")
    assert wrong == []
    assert len(missed) <= 0.05 * leaks, missed
