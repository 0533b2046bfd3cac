"""Cleaning of system text: valid UTF-8, printable, bounded, and still distinguishable."""

from __future__ import annotations

import os

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.text import clean, printable, whole_number


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        (b"python", "python"),
        ("日本語".encode(), "日本語"),
        (b"sl\xffeep", "sl\\xffeep"),
        (b"a\nb\x1b[31m", "a\\x0ab\\x1b[31m"),
        (b"/d\xc3\xff.py", "/d\\xc3\\xff.py"),  # report 11: psutil#515
        ("\u202eevil", "\\u202eevil"),
        (b"C:\\users\\x", "C:\\users\\x"),
        (b"a\\xff", "a\\x5cxff"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_report_011_text_is_escaped_not_lost(raw: bytes | str, cleaned: str) -> None:
    assert clean(raw) == cleaned


def test_surrogates_of_the_file_system_are_the_bytes_they_stand_for() -> None:
    assert clean(os.fsdecode(b"--x=\xff")) == "--x=\\xff"


def test_a_literal_escape_and_an_escaped_byte_stay_apart() -> None:
    assert clean(b"a\\xff") != clean(b"a\xff")


def test_a_100_kb_argument_is_cut_and_says_how_much() -> None:
    assert clean(b"a" * 100_000) == "a" * 4096 + "…+95904"


@given(st.binary(max_size=200))
def test_any_bytes_become_strict_json_text(raw: bytes) -> None:
    text = clean(raw)
    assert text.isprintable()
    assert orjson.loads(orjson.dumps(text)) == text


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_two_texts_stay_two(one: bytes, other: bytes) -> None:
    if one != other:
        assert clean(one) != clean(other)


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_text_and_its_bytes_are_cleaned_alike(text: str) -> None:
    assert clean(text) == clean(text.encode())
    assert clean(text, 20) == clean(text.encode(), 20)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 19, 10**19 - 1),
        ("9" * 20, None),
        ("9" * 5000, None),  # int() refuses more than 4,300
        ("\u00b2", None),  # str.isdigit() says yes, int() says no
        ("\u0663", None),
        ("-1", None),
        ("+1", None),
        (" 1", None),
        ("1_0", None),
        ("", None),
    ],
)
def test_a_whole_number_is_a_few_ascii_digits(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_printable_keeps_what_is_escaped_already() -> None:
    assert printable("a\\x1b \x1b[31m \udcff é") == "a\\x1b \\x1b[31m \\udcff é"
