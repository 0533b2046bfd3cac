"""Sizes and durations: what people write and what they read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.render.units import (
    format_age,
    format_bytes,
    format_delta,
    format_duration,
    format_number,
    format_of_total,
    format_pair_in_one_unit,
    parse_duration,
    parse_size,
    pick_unit,
)

MIB, GIB = 1048576, 1073741824


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("4096", 4096),
        ("1B", 1),
        ("1KiB", 1024),
        ("256MiB", 268435456),
        ("1.5GiB", 1610612736),
        ("1GB", 1000000000),
        ("1.5 GiB", 1610612736),
        ("2mib", 2097152),
        ("1TiB", 1099511627776),
        # 0.1 × 2^30 = 107374182.4
        ("0.1GiB", 107374182),
        # Floats would give 9007199254740992 for both neighbours.
        ("9007199254740991", 9007199254740991),
    ],
)
def test_sizes_as_people_write_them(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GiB",
        "16G",
        "1.5",
        "-1MiB",
        "1e9",
        "nan",
        "inf",
        "0x10",
        "1..5GiB",
        ".5GiB",
        "5.GiB",
        "1 Gi B",
        "1,5GiB",
        "٣MiB",
    ],
)
def test_what_is_no_size_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected plain bytes or 256MiB"):
        parse_size(text)


def test_a_size_beyond_the_documents_integers_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_size("9000TiB")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("50ms", 0.05),
        ("10s", 10.0),
        ("5m", 300.0),
        ("8h", 28800.0),
        ("2d", 172800.0),
        ("0.25", 0.25),
        ("90", 90.0),
    ],
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1w", "nan", "inf", "1h30m", "five"])
def test_what_is_no_duration_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected seconds or 50ms, 10s, 5m, 8h"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "-"),
        (0, "0 B"),
        (512, "512 B"),
        (4096, "4 KiB"),
        (197 * MIB, "197 MiB"),
        (16376 * MIB, "16.0 GiB"),
        (int(1023.9 * MIB), "1.0 GiB"),
        (9663676416, "9.0 GiB"),
        (1536 * GIB, "1,536.0 GiB"),
    ],
)
def test_bytes_for_people(count: int | None, shown: str) -> None:
    assert format_bytes(count) == shown


def test_what_is_not_zero_never_reads_zero() -> None:
    assert format_bytes(4096, "GiB") == "<0.1 GiB"
    assert format_delta(-4096, "GiB") == "-<0.1 GiB"
    assert format_number(1, "MiB") == "<1"


def test_signed_changes() -> None:
    assert format_delta(9 * GIB) == "+9.0 GiB"
    assert format_delta(-256 * MIB) == "-256 MiB"
    assert format_delta(0) == "0"
    assert format_delta(None) == "-"


def test_a_pair_shares_one_unit_and_an_unmeasured_side_is_unknown_not_zero() -> None:
    assert format_pair_in_one_unit(2560 * MIB, int(11.6 * GIB)) == "2.5 → 11.6 GiB"
    assert format_pair_in_one_unit(512 * MIB, 600 * MIB) == "512 → 600 MiB"
    assert format_pair_in_one_unit(700 * MIB, None) == "700 MiB → unknown"
    assert format_pair_in_one_unit(None, 0) == "unknown → 0 B"
    assert format_pair_in_one_unit(None, None) == "unknown"
    assert format_pair_in_one_unit(0, 9 * GIB) == "0 → 9.0 GiB"
    # 3.00 and 3.04 GiB
    assert format_pair_in_one_unit(3 * GIB, 3 * GIB + 40 * MIB) == "3,072 → 3,112 MiB"


def test_used_of_total_in_the_totals_unit() -> None:
    assert format_of_total(int(15.6 * GIB), 16 * GIB) == "15.6 of 16.0 GiB"
    assert format_of_total(None, 16 * GIB) == "- of 16.0 GiB"
    assert format_of_total(0, 16 * GIB) == "0 of 16.0 GiB"
    assert format_of_total(5 * GIB, None) == "5.0 GiB"


def test_the_unit_of_a_column_is_that_of_its_largest() -> None:
    assert pick_unit([None, 40 * MIB, 9 * GIB]) == "GiB"
    assert pick_unit([None, -40 * MIB, 3]) == "MiB"
    assert pick_unit([None]) == "B"


@pytest.mark.parametrize(
    ("seconds", "shown", "age"),
    [
        (None, "-", "-"),
        (0, "0 s", "0s"),
        (0.25, "0.25 s", "0s"),
        (250, "4 min 10 s", "4m"),
        (2472, "41 min 12 s", "41m"),
        (28800, "8 h 00 min", "8h00m"),
        (11520, "3 h 12 min", "3h12m"),
        (187200, "2 d 4 h", "2d04h"),
    ],
)
def test_durations_for_people(seconds: float | None, shown: str, age: str) -> None:
    assert format_duration(seconds) == shown
    assert format_age(seconds) == age


def test_time_that_went_backwards_keeps_its_sign() -> None:
    assert format_duration(-250) == "-4 min 10 s"
    assert format_age(-5) == "-"


@given(st.integers(0, 1 << 53))
def test_plain_bytes_come_back_exactly(count: int) -> None:
    assert parse_size(str(count)) == count


@given(st.integers(0, 4096), st.sampled_from([("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]))
def test_whole_units_come_back_exactly(number: int, unit: tuple[str, int]) -> None:
    assert parse_size(f"{number}{unit[0]}") == number * unit[1]


@given(st.integers(0, 1 << 53))
def test_text_is_within_half_a_step_of_the_figure(count: int) -> None:
    unit = pick_unit((count,))
    shown = format_bytes(count).removesuffix(f" {unit}").replace(",", "")
    divisor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    step = divisor / 10 if unit == "GiB" else divisor
    assert abs(float(shown) * divisor - count) <= step / 2 * 1.0000001
