"""Text where the terminal has no `→`, `█` or `日`: ASCII that says the same, aligned and within the width."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpusnap.render.screen import Screen
from gpusnap.render.signs import in_signs_of
from tests.snapping import run_gpusnap
from tests.surroundings import surroundings

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")
ASCII = {"PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("utf-8", "2.5 → 11.6 GiB · 61 °C", "2.5 → 11.6 GiB · 61 °C"),
        ("ascii", "2.5 → 11.6 GiB · 61 °C · 8 × x", "2.5 -> 11.6 GiB | 61 C | 8 x x"),
        ("ascii", "████▓▒░··", "####%=-.."),
        ("ascii", "▁▂▃▄▅▆▇█·", "_,-~=+*#."),
        ("ascii", "≤ 5 ‼ llama-serv…", "<= 5 !! llama-serv~"),
        ("ascii", "  · kv-dominates", "  * kv-dominates"),
        # Latin-1 has the dot, the degree and the times sign, but no arrow and no block.
        ("iso-8859-1", "1 → 2 · 61 °C · 8 × ██", "1 -> 2 · 61 °C · 8 × ##"),
        # A console of DOS has some blocks: a curve of both kinds would say nothing.
        ("cp437", "▁▂▃▄▅▆▇█ ██▓▒░", "_,-~=+*# ##%=-"),
        ("gb18030", "1 → 2 日本", "1 → 2 日本"),
        # Two names that differ stay different.
        ("ascii", "日本", "\\u65e5\\u672c"),
        ("no-such-encoding", "1 → 2", "1 -> 2"),
    ],
)
def test_signs_of_an_encoding(encoding: str, text: str, shown: str) -> None:
    assert in_signs_of(encoding, text) == shown


def test_a_table_stays_aligned_and_within_its_width() -> None:
    rows = [["10 → 2000", "日本", "1.0 GiB"], ["7", "x", "11.0 GiB"]]
    lines = Screen(40, encoding="ascii").table(["PID", "NAME", "HOLDS"], rows, "rlr", flex=[1])
    assert lines == [
        "       PID  NAME             HOLDS",
        "10 -> 2000  \\u65e5\\u672c   1.0 GiB",
        "         7  x             11.0 GiB",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("ps", "--replay", EXAMPLE),
        ("explain", "4711", "--replay", EXAMPLE),
        ("explain", str(ROOT / "examples/step-leak.jsonl.gz")),
        ("explain", str(ROOT / "examples/idle-but-full.jsonl.gz")),
        ("diff", str(ROOT / "examples/before-load.json"), str(ROOT / "examples/after-load.json")),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("columns", ["44", "100"])
def test_every_command_for_people_says_all_in_ascii(words: tuple[str, ...], columns: str) -> None:
    done = run_gpusnap(*words, env={**ASCII, "COLUMNS": columns})
    lines = done.stdout.decode("ascii").splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "?" not in "".join(lines)
    assert "\\u" not in "".join(lines)
    assert max(map(len, lines)) <= int(columns)
    if words[0] != "diff" and columns == "100":
        assert "#" in "".join(lines), "bars and curves of letters"


def test_json_is_utf_8_whatever_the_terminal_is() -> None:
    words = ("explain", "4711", "--replay", EXAMPLE, "--json")
    assert run_gpusnap(*words, env=ASCII).stdout == run_gpusnap(*words).stdout


def test_messages_on_standard_error_are_ascii_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from gpusnap.cli.io import say; say('1 \\u2192 2 \\u00b7 61 \\u00b0C')"]
    done = subprocess.run(command, env=surroundings(ASCII), capture_output=True, check=True)
    assert done.stderr == b"1 -> 2 | 61 C\n"
