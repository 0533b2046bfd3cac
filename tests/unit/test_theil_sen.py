"""The slope equals the textbook definition, computed here by brute force."""

from __future__ import annotations

import random
import statistics
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.explain.theil_sen import monotony, theil_sen


def by_definition(points: list[tuple[float, float]]) -> float | None:
    slopes = [
        (right[1] - left[1]) / (right[0] - left[0])
        for position, left in enumerate(points)
        for right in points[position + 1 :]
        if right[0] != left[0]
    ]
    return statistics.median(slopes) if slopes else None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-(2**40), 2**40)), max_size=40))
def test_small_sets_equal_the_definition(points: list[tuple[float, float]]) -> None:
    assert theil_sen(points) == by_definition(points)


@pytest.mark.parametrize("noise", [0.0, 5e6, 5e8])
def test_two_thousand_points_equal_the_definition(noise: float) -> None:
    rng = random.Random(7)
    points = [(10.0 * step, 1e9 + 2e5 * step + rng.gauss(0, noise)) for step in range(2000)]
    started = time.process_time()
    slope = theil_sen(points)
    assert time.process_time() - started < 10
    assert slope == pytest.approx(by_definition(points), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("values", [[5.0], [5.0, 6.0], [5.0, 5.0, 9.0]])
def test_many_equal_slopes_take_no_memory(values: list[float]) -> None:
    points = [(float(step), values[step % len(values)]) for step in range(2000)]
    tracemalloc.start()
    slope = theil_sen(points)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert slope == pytest.approx(by_definition(points), abs=1e-12)
    assert peak < 4e6


def test_a_stretch_of_wild_values_does_not_move_the_slope() -> None:
    points = [(float(hour), 100.0 * hour) for hour in range(100)]
    points[40:60] = [(float(hour), 1e9) for hour in range(40, 60)]
    assert theil_sen(points) == pytest.approx(100.0, rel=0.2)


@pytest.mark.parametrize(
    ("values", "gamma"),
    # Hand count: (up - down) / (up + down) over all pairs; ties count for neither.
    [
        ([1, 2, 3, 4], 1.0),
        ([4, 3, 2, 1], -1.0),
        ([1, 1, 1], 0.0),
        ([1, 3, 2], 1 / 3),
        ([1, 1, 2, 2, 0], 0 / 8),
        ([5], 0.0),
        ([], 0.0),
    ],
)
def test_monotony_by_hand(values: list[float], gamma: float) -> None:
    assert monotony(values) == pytest.approx(gamma)
