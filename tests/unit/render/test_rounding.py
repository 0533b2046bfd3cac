"""Rounded columns add up, no part moves by a whole step, and no change gets the wrong sign."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpusnap.render.rounding import STEP, round_two_columns, show_steps, steps, to_steps

GIB = 1 << 30
counts = st.lists(st.integers(0, 1 << 40), max_size=12)
units = st.sampled_from(["GiB", "MiB"])


def test_thirds_of_a_gibibyte_add_up_to_it() -> None:
    third = GIB // 3
    assert to_steps([third, third, GIB - 2 * third], 10, "GiB") == [3, 3, 4]


def test_what_did_not_change_reads_the_same_in_both_columns() -> None:
    """0.34 + 0.33 = 0.67 -> 0.7, and 0.34 + 9.04 = 9.38 -> 9.4: the 0.34 is 0.3 or 0.4, but in both."""
    same, small, large = int(0.34 * GIB), int(0.33 * GIB), int(9.04 * GIB)
    old, new = round_two_columns([same, small], [same, large], (same + small, same + large), "GiB")
    assert old[0] == new[0]
    assert (sum(old), sum(new)) == (7, 94)


def test_parts_that_are_not_the_whole_are_rounded_by_themselves() -> None:
    assert round_two_columns([GIB // 3], [GIB], (GIB, GIB), "GiB") == ([3], [10])


def test_shown_as_people_read_it() -> None:
    assert [show_steps(number, "GiB") for number in (90, 0, -1, 12345)] == ["9.0", "0", "-0.1", "1,234.5"]
    assert show_steps(9257, "MiB") == "9,257"


@given(counts, units)
def test_sums_hold_and_every_part_is_within_a_step(parts: list[int], unit: str) -> None:
    shown = to_steps(parts, steps(sum(parts), unit), unit)
    assert sum(shown) == steps(sum(parts), unit)
    for part, count in zip(shown, parts, strict=True):
        assert abs(part - count / STEP[unit]) <= 1
        assert count != 0 or part == 0


@given(st.lists(st.tuples(st.integers(0, 1 << 36), st.integers(0, 1 << 36)), max_size=8), units)
def test_no_change_is_shown_with_the_wrong_sign(pairs: list[tuple[int, int]], unit: str) -> None:
    before, after = [one for one, _ in pairs], [other for _, other in pairs]
    old, new = round_two_columns(before, after, (sum(before), sum(after)), unit)
    for place, (was, now) in enumerate(pairs):
        assert (new[place] - old[place]) * (now - was) >= 0
        assert was != now or old[place] == new[place]
        assert abs(old[place] - was / STEP[unit]) <= 1
        assert abs(new[place] - now / STEP[unit]) <= 2
