"""Words of the command line and the environment that nobody expects: one line on stderr, exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.snapping import run_gpusnap

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")
MANY_DIGITS = "9" * 5000  # more than int() takes
SUPERSCRIPT = "\u00b2"  # str.isdigit() says yes, int() says no


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--bogus",), "gpusnap: no such option: --bogus (--help shows what there is)"),
        (("bogus",), "gpusnap bogus: no such command 'bogus' (--help shows what there is)"),
        (("record",), "gpusnap record: missing argument 'FILE' (--help shows what there is)"),
        (("ps", "--top"), "gpusnap ps: option '--top' requires an argument (--help shows what there is)"),
        (
            ("ps", "--top", "x"),
            "gpusnap ps: invalid value for '--top': 'x' is not a valid int (--help shows what there is)",
        ),
        (
            ("ps", "--min-vram", "16G"),
            "gpusnap ps: invalid value for '--min-vram': '16G' is not a size: expected plain bytes or 256MiB, "
            "1.5GiB, 1GB (--help shows what there is)",
        ),
        (("snap", "--timeout", "0"), "gpusnap snap: --timeout: expected more than 0 seconds"),
        (("snap", "-o", ""), "gpusnap snap: an output file without a name (an empty variable?)"),
        (("record", ""), "gpusnap record: FILE: expected a name"),
        (("record", "r.jsonl", "--summary", ""), "gpusnap record: --summary '': expected the name of a file"),
        (
            ("record", "r.jsonl", "--summary", "/no/such/s.json", "--", "true"),
            "gpusnap record: --summary /no/such/s.json: there is no folder /no/such",
        ),
        (("snap", "--procfs", "/"), "gpusnap snap: --procfs /: no proc file system: uptime can't be read"),
    ],
)
def test_wrong_usage_is_one_line_and_2(words: tuple[str, ...], line: str, tmp_path: Path) -> None:
    done = run_gpusnap(*words, env={"PWD": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", line + "\n")


def test_no_word_at_all_shows_the_help_and_is_2() -> None:
    done = run_gpusnap()
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Usage: gpusnap [OPTIONS] COMMAND [ARGS]...\n")


@pytest.mark.parametrize("option", ["--window", "--timeout"])
def test_a_duration_that_no_clock_can_hold_is_too_large(option: str) -> None:
    for words in (("snap", option, "9000000000000"), ("record", "-", option, "101h" + "0" * 9)):
        done = run_gpusnap(*words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


def test_a_timeout_of_years_is_one() -> None:
    assert run_gpusnap("snap", "--timeout", "800000h").returncode == 0


@pytest.mark.parametrize("word", [SUPERSCRIPT, "\u0663", MANY_DIGITS, "", " "])
@pytest.mark.parametrize("command", ["snap", "ps"])
def test_a_word_that_is_nearly_a_number_or_empty_names_no_adapter(command: str, word: str) -> None:
    """An empty one in a script is a variable that is not set: it must not mean every card."""
    done = run_gpusnap(command, "--adapter", word, "--replay", EXAMPLE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(f"gpusnap {command}: no adapter is named ".encode())


@pytest.mark.parametrize("word", [SUPERSCRIPT, MANY_DIGITS])
@pytest.mark.parametrize("form", ["{}", "pid:{}", "gpu:{}", "--context={}", "--context={}k"])
def test_explain_takes_no_such_number_either(word: str, form: str) -> None:
    done = run_gpusnap("explain", form.format(word), "--replay", EXAMPLE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("word", ["", " ", "gpu:", "gpu: "])
def test_explain_takes_no_empty_word_for_the_only_card(word: str) -> None:
    assert run_gpusnap("explain", word, "--replay", EXAMPLE).returncode == 2


@pytest.mark.parametrize("columns", [SUPERSCRIPT, MANY_DIGITS, "-5", "0", "wide"])
def test_columns_that_are_no_number_cut_nothing(columns: str) -> None:
    plain = run_gpusnap("ps", "--replay", EXAMPLE).stdout
    assert run_gpusnap("ps", "--replay", EXAMPLE, env={"COLUMNS": columns}).stdout == plain


def test_one_column_loses_no_line() -> None:
    wide = run_gpusnap("ps", "--replay", EXAMPLE).stdout.decode()
    narrow = run_gpusnap("ps", "--replay", EXAMPLE, env={"COLUMNS": "1"}).stdout.decode()
    assert len(narrow.splitlines()) >= len(wide.splitlines())


def test_a_command_keeps_its_exit_code_where_the_summary_cannot_be_written(tmp_path: Path) -> None:
    """`--summary` was fine at the start; the disk is full at the end."""
    words = ("record", str(tmp_path / "r.jsonl"), "--summary", "/dev/full", "--")
    failed = run_gpusnap(*words, "sh", "-c", "exit 7")
    assert failed.returncode == 7
    assert b"gpusnap record: /dev/full: No space left on device" in failed.stderr.splitlines()
    assert run_gpusnap(*words, "true").returncode == 3


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("machine.json", "[]", "machine.json: expected an object"),
        ("machine.json", "{", "machine.json: Expecting property name"),
        ("machine.json", '{"wall_time": Infinity}', "machine.json: wall_time: expected seconds"),
        ("machine.json", '{"wall_time": NaN}', "machine.json: wall_time: expected seconds"),
        ("machine.json", '{"uptime": "long"}', "machine.json: uptime: 'long' is not what stands there"),
        ("machine.json", '{"uptime": true}', "machine.json: uptime: True is not what stands there"),
        ("machine.json", '{"own_pid": null}', "machine.json: own_pid: None is not what stands there"),
        ("machine.json", '{"users": []}', "machine.json: users: [] is not what stands there"),
        ("machine.json", '{"uname": {"os": 5}}', "machine.json: uname: expected texts"),
        ("machine.json", '{"platform": "dos"}', "machine.json: platform: expected one of linux"),
        ("machine.json", '{"clock_ticks": 0}', "machine.json: clock_ticks: expected at least 1"),
        ("tree.txt", "--- proc/1/stat !EWHAT\n", "proc/1/stat: no error is called 'EWHAT'"),
        ("tree.txt", "--- proc/1/stat what\n", "proc/1/stat: 'what' is no option of an entry"),
        ("nvml.json", "[1]", "nvml.json: expected an object"),
        ("nvml.json", '{"calls": []}', "nvml.json: calls: expected an object"),
        ("nvml.json", '{"calls": {"nvmlDeviceGetCount": {"error": "x"}}}', "nvml.json: nvmlDeviceGetCount: error"),
    ],
)
def test_a_kept_machine_that_was_edited_wrongly_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    done = run_gpusnap("snap", "--replay", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"gpusnap snap: --replay {tmp_path}: {words}")


def test_a_server_of_no_sequences_is_explained_all_the_same(tmp_path: Path) -> None:
    """`-np 0`, or a document that says so: nothing is divided by it."""
    document = json.loads(run_gpusnap("snap", "--replay", EXAMPLE).stdout)
    document["processes"][0]["llm"]["sequences"] = 0
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document))
    done = run_gpusnap("explain", "pid:4711", "--from", str(file))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"32,768 tokens" in done.stdout
    assert b"sequences of" not in done.stdout
