"""`gpusnap diff` as a user runs it: inputs, outputs, errors in one line, exit codes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import zstandard

from gpusnap import schema
from gpusnap.codec import dumps
from tests.builders import GIB, START, adapter, process, snapshot
from tests.snapping import run_gpusnap
from tests.surroundings import surroundings

if TYPE_CHECKING:
    from gpusnap.model import Snapshot

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")


def sample(used: int, minute: int = 0, **more: Any) -> Snapshot:
    """A card with so many GiB used, half a GiB of it unattributed."""
    rows = [process(1, (used * 2 - 1) * GIB // 2)]
    at = {"at": START + 60 * minute, "uptime": 86_400.0 + 60 * minute}
    return snapshot([adapter(0, used=used * GIB)], rows, **(at | more))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """a.json and b.json (1 and 3 GiB), rec.jsonl (1, 2, 3 GiB)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_bytes(dumps(sample(1)))
    (tmp_path / "b.json").write_bytes(dumps(sample(3, 5)))
    (tmp_path / "rec.jsonl").write_bytes(b"".join(dumps(sample(n, n)) + b"\n" for n in (1, 2, 3)))
    return tmp_path


def compare(*words: str, code: int = 0, stdin: bytes = b"", quiet: bool = True) -> str:
    done = run_gpusnap("diff", *words, stdin=stdin, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == code, (done.stdout + done.stderr).decode()
    assert not (quiet and done.stderr), done.stderr.decode()
    return done.stdout.decode()


def complaint(*words: str, code: int = 2, stdin: bytes = b"") -> str:
    """The one line on standard error; what goes to standard output is left to the caller."""
    done = run_gpusnap("diff", *words, stdin=stdin, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == code, (done.stdout + done.stderr).decode()
    (line,) = done.stderr.decode().splitlines()
    return line


def used_delta(text: str) -> int:
    delta: int = json.loads(text)["adapters"][0]["changes"]["memory.used_bytes"]["delta"]
    return delta


def test_two_files_as_text_markdown_and_json(files: Path) -> None:
    text = compare("a.json", "b.json")
    assert text.splitlines()[0] == "RTX 4080 SUPER: +2.0 GiB in 5 min 00 s (1.0 → 3.0 GiB): python took 2.0."
    assert compare("a.json", "b.json", "--format", "text") == text
    markdown = compare("a.json", "b.json", "--format", "markdown")
    assert "| changed" in markdown
    document = json.loads(compare("a.json", "b.json", "--json"))
    jsonschema.validate(document, json.loads(schema.text("diff")))
    assert (document["schema"], document["before"]["source"], document["after"]["source"]) == (
        "gpusnap.diff/1",
        "a.json",
        "b.json",
    )
    assert compare("a.json", "b.json", "--format", "json") == compare("a.json", "b.json", "--json")


def test_report_110_text_and_json_tell_the_same_rows(files: Path) -> None:
    text, document = compare("a.json", "b.json"), json.loads(compare("a.json", "b.json", "--json"))
    pids = [line.split()[1] for line in text.splitlines() if line.startswith("   changed")]
    assert pids == [str(row["pid"]) for row in document["processes"] if row["status"] == "changed"]


def test_lines_of_a_recording_and_a_recording_alone(files: Path) -> None:
    assert used_delta(compare("rec.jsonl@first", "rec.jsonl@2", "--json")) == GIB
    assert used_delta(compare("rec.jsonl", "--json")) == 2 * GIB
    assert used_delta(compare("a.json", "rec.jsonl@-1", "--json")) == 2 * GIB
    assert used_delta(compare("rec.jsonl@2026-11-30T12:02Z", "b.json", "--json")) == GIB


def test_compressed_files(files: Path) -> None:
    (files / "a.json.gz").write_bytes(gzip.compress((files / "a.json").read_bytes()))
    (files / "rec.jsonl.zst").write_bytes(zstandard.compress((files / "rec.jsonl").read_bytes()))
    assert used_delta(compare("a.json.gz", "rec.jsonl.zst@last", "--json")) == 2 * GIB
    assert used_delta(compare("rec.jsonl.zst", "--json")) == 2 * GIB


def test_standard_input_on_either_side(files: Path) -> None:
    assert used_delta(compare("-", "b.json", "--json", stdin=(files / "a.json").read_bytes())) == 2 * GIB
    assert used_delta(compare("a.json", "-", "--json", stdin=(files / "b.json").read_bytes())) == 2 * GIB
    assert "standard input can't be both" in complaint("-", "-")


def test_live_is_this_machine_or_the_one_that_is_replayed(files: Path) -> None:
    shot = run_gpusnap("snap", "--replay", EXAMPLE, env={"PYTHONPATH": str(ROOT)})
    (files / "shot.json").write_bytes(shot.stdout)
    text = compare("shot.json", "live", "--replay", EXAMPLE)
    assert text.startswith("Nothing changed")


def test_the_schema_needs_no_argument() -> None:
    assert json.loads(compare("--schema"))["title"] == "gpusnap.diff/1"


def test_an_error_is_one_line_with_file_place_and_expectation(files: Path) -> None:
    (files / "other.json").write_text('{"query_time": 1, "gpus": []}')
    assert complaint("other.json", "b.json") == (
        'gpusnap diff: other.json: not a gpusnap document (line 1: key "schema" is missing; '
        "looks like gpustat --json); taken with `gpusnap snap > other.json`?"
    )
    newer = (files / "a.json").read_bytes().replace(b"snapshot/1", b"snapshot/2")
    (files / "newer.json").write_bytes(newer)
    assert "gpusnap.snapshot/2 is newer" in complaint("a.json", "newer.json")
    (files / "cut.json").write_bytes((files / "a.json").read_bytes()[:700])
    assert complaint("cut.json", "b.json").startswith("gpusnap diff: cut.json: line 1: the JSON ends too early")
    wrong = (files / "rec.jsonl").read_bytes().replace(b'"pid":1,', b'"pid":"x",', 1)
    (files / "wrong.jsonl").write_bytes(wrong)
    assert complaint("wrong.jsonl@1", "b.json") == (
        "gpusnap diff: wrong.jsonl: line 1: processes[0].pid: expected int, got str"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "expected two snapshots"),
        (("a.json",), "one snapshot, expected two"),
        (("rec.jsonl", "rec.jsonl"), "rec.jsonl@last"),
        (("a.json", "none.json"), "none.json: no such file"),
        (("a.json", "rec.jsonl@9"), "the recording holds 3 whole samples"),
        (("a.json", "b.json", "--json", "--format", "text"), "contradict"),
        (("a.json", "b.json", "--format", "yaml"), "expected one of text, markdown, json"),
        (("a.json", "b.json", "--match", "name"), "expected one of identity, program"),
        (("a.json", "b.json", "--fail-above", "16G"), "is not a size"),
        (("a.json", "b.json", "--fail-above", "card:1GiB"), "expected SIZE or process:SIZE"),
        (("a.json", "b.json", "--replay", EXAMPLE), "--replay is what `live` means: neither side is that"),
        (("a.json", "b.json", "--color", "blue"), "expected one of auto, always, never"),
    ],
)
def test_wrong_usage_is_2_and_says_what_was_expected(files: Path, words: tuple[str, ...], expected: str) -> None:
    assert expected in complaint(*words)


def test_a_size_that_is_none_is_2_and_names_the_option(files: Path) -> None:
    done = run_gpusnap("diff", "a.json", "b.json", "--min", "16G", env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 2
    assert b"--min" in done.stderr


def test_torn_lines_are_counted_on_stderr_and_an_error_when_strict(files: Path) -> None:
    data = (files / "rec.jsonl").read_bytes()
    (files / "torn.jsonl").write_bytes(data[:300] + b"\n" + data)
    done = run_gpusnap("diff", "torn.jsonl", env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0
    assert done.stderr == b"gpusnap diff: torn.jsonl@first: skipped 1 line that is no whole sample (line 1)\n"
    assert complaint("torn.jsonl", "--strict-lines") == (
        "gpusnap diff: torn.jsonl: line 1: torn or foreign, expected a whole gpusnap.snapshot/1"
    )


def test_exit_code_1_only_when_asked_for(files: Path) -> None:
    compare("a.json", "b.json")
    compare("a.json", "b.json", "--exit-code", code=1)
    compare("a.json", "a.json", "--exit-code")
    compare("a.json", "b.json", "--exit-code", "--min", "3GiB")


def test_the_gate_for_cards_and_the_gate_for_processes(files: Path) -> None:
    compare("a.json", "b.json", "--fail-above", "2GiB")
    line = complaint("a.json", "b.json", "--fail-above", "1GiB", code=1)
    assert line.startswith(
        "gpusnap diff: --fail-above: GPU 0 (NVIDIA GeForce RTX 4080 SUPER): used grew by 2.0 GiB"
    )
    line = complaint("a.json", "b.json", "--fail-above", "8GiB", "--fail-above", "process:1GiB", code=1)
    assert "python 1: grew by 2.0 GiB" in line
    assert "used grew" not in line


def test_unknown_is_not_fine_for_a_gate(files: Path) -> None:
    (files / "blind.json").write_bytes(dumps(snapshot([adapter(0, used="null:timeout")], [])))
    assert "used was not measured after (no answer in time)" in complaint(
        "a.json", "blind.json", "--fail-above", "9GiB", code=1
    )
    (files / "empty.json").write_bytes(dumps(snapshot([], [])))
    assert "no card is in both snapshots" in complaint("empty.json", "empty.json", "--fail-above", "9GiB", code=1)


def test_a_difference_is_still_printed_when_a_gate_fails(files: Path) -> None:
    done = run_gpusnap("diff", "a.json", "b.json", "--fail-above", "0", env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    assert done.stdout.startswith(b"RTX 4080 SUPER: +2.0 GiB")


def test_colour_only_when_asked_or_on_a_terminal(files: Path) -> None:
    assert "\x1b" not in compare("a.json", "b.json")
    assert "\x1b" in compare("a.json", "b.json", "--color", "always")
    done = run_gpusnap("diff", "a.json", "b.json", env={"PYTHONPATH": str(ROOT), "FORCE_COLOR": "1"})
    assert b"\x1b" in done.stdout


def test_a_reader_that_leaves_ends_it_silently_with_141(files: Path) -> None:
    rows = [process(pid, GIB // 100) for pid in range(1, 4000)]
    (files / "many.json").write_bytes(dumps(snapshot([adapter(0, used=GIB)], rows)))
    gpusnap = f"{quote(sys.executable)} -m gpusnap"
    pipe = subprocess.run(
        ["bash", "-c", f"{gpusnap} diff a.json many.json --json | head -c 10; echo ${{PIPESTATUS[0]}}"],
        env=surroundings(),
        capture_output=True,
        check=False,
    )
    assert pipe.stdout.endswith(b"141\n")
    assert pipe.stderr == b""


def test_diff_loads_neither_the_driver_binding_nor_psutil(files: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpusnap", "diff", "a.json", "b.json", "--json"],
        env=surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "msgspec" in loaded
    assert not loaded & {"pynvml", "psutil", "gguf", "numpy", "tabulate", "jsonschema"}


@pytest.mark.parametrize("words", [["--replay", EXAMPLE], ["--timeout", "1s"]])
def test_how_to_take_a_snapshot_is_refused_where_none_is_live(words: list[str]) -> None:
    files = (str(ROOT / f"examples/{name}-load.json") for name in ("before", "after"))
    done = run_gpusnap("diff", *files, *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"gpusnap diff: {words[0]} is what `live` means: neither side is that\n"
