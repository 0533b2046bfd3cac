"""`gpusnap explain` as a user runs it: subjects, files, formats, exit codes."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpusnap.model import Explanation
from tests.builders import GIB, START, adapter, process, snapshot
from tests.snapping import run_gpusnap

if TYPE_CHECKING:
    import subprocess

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")
LEAK = str(ROOT / "examples/step-leak.jsonl.gz")


def explain(*words: str, code: int = 0, stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
    done = run_gpusnap("explain", *words, stdin=stdin, env=env)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


def refused(*words: str) -> str:
    done: subprocess.CompletedProcess[bytes] = run_gpusnap("explain", *words)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    return line


def written(path: Path, *documents: Any) -> str:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return str(path)


def two_cards() -> Any:
    cards = [adapter(0, used=8 * GIB), adapter(1, used=GIB, model="NVIDIA RTX A2000")]
    return snapshot(cards, [process(1, GIB, on=1), process(4711, 8 * GIB)])


def test_the_machine_of_the_example_in_one_sentence_that_adds_up() -> None:
    first = explain("--replay", EXAMPLE).splitlines()[0]
    assert first.startswith("15.5 of 16.0 GiB used: ")
    parts = [float(number) for number in re.findall(r"\d+\.\d", first.partition(": ")[2])]
    assert round(sum(parts), 1) == 15.5


def test_a_dash_is_a_snapshot_on_standard_input() -> None:
    said = explain("-", stdin=json.dumps(two_cards()).encode())
    assert said.startswith("2 adapters: 9.0 of 32.0 GiB used")


def test_a_card_by_a_word_of_its_model() -> None:
    document = json.loads(explain("geforce", "--replay", EXAMPLE, "--json"))
    assert document["subject"]["kind"] == "adapter"
    assert document["subject"]["adapter"] == "GPU-3f7c0d5e-91a4-4c1b-8d27-5b0e6a9c2f11"


def test_a_process_by_its_pid() -> None:
    text = explain("4711", "--replay", EXAMPLE)
    assert text.startswith("llama-server (pid 4711, alice, up 3 h 12 min) holds 13.8 GiB of GPU 0")
    document = json.loads(explain("pid:4711", "--replay", EXAMPLE, "--json"))
    assert (document["subject"]["kind"], document["subject"]["pid"]) == ("process", 4711)


@pytest.mark.parametrize(("what", "said"), [("77", "say pid:N or gpu:N"), ("./nothing.json", "nothing.json")])
def test_what_fits_nothing_is_exit_2_and_one_line(what: str, said: str) -> None:
    assert said in refused(what, "--replay", EXAMPLE)


def test_an_existing_file_is_a_file_whatever_its_name(tmp_path: Path) -> None:
    path = written(tmp_path / "0", two_cards())
    assert json.loads(explain(path, "--json"))["subject"]["source"] == path
    assert "one file at a time" in refused(path, "--from", path)


def test_a_file_that_is_no_snapshot_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert "x.json" in refused(str(tmp_path / "x.json"))


def test_a_snapshot_from_standard_input() -> None:
    text = explain("--from", "-", stdin=json.dumps(two_cards()).encode())
    assert "GPU 0" in text
    assert "NVIDIA RTX A2000" in text


def test_a_recording_says_the_leak_first() -> None:
    text = explain(LEAK)
    assert text.startswith("GPU 0 loses about 293 MiB with each of 20 load cycles: a step leak in ollama (pid")
    assert "466 samples, 3 unknown" in text
    assert "1 gap (2026-11-30 04:10Z to 04:25Z: the machine slept or was busy: 14 ticks missed)" in text
    assert "used   ▁" in text


def test_one_sample_of_a_recording_is_a_snapshot() -> None:
    document = json.loads(explain(f"{LEAK}@last", "--json"))
    assert document["series"] == []
    assert "leak" not in document["answer"]


def test_a_process_of_a_recording() -> None:
    document = json.loads(explain("pid:882", "--from", LEAK, "--json"))
    assert document["subject"]["kind"] == "recording"
    assert [row["verdict"] for row in document["series"] if row["pid"] is not None] == ["step-leak"]


@pytest.mark.parametrize(
    "words", [("--replay", EXAMPLE), ("4711", "--replay", EXAMPLE), (LEAK,), ("gpu:0", "--from", LEAK)]
)
def test_json_keeps_the_contract(words: tuple[str, ...]) -> None:
    document = json.loads(explain(*words, "--json"))
    assert msgspec.convert(document, Explanation, strict=True) == document
    assert json.loads(explain(*words, "--format", "json")) == document


def test_json_and_another_format_contradict_each_other() -> None:
    assert "contradict" in refused("--json", "--format", "svg")


def test_the_schema_is_printed() -> None:
    assert json.loads(explain("--schema"))["$defs"]


def test_sources_name_six_layers_in_order() -> None:
    text = explain("--replay", EXAMPLE, "--sources")
    numbers = re.findall(r"^  (\d)  (\w+ \w+)", text, re.MULTILINE)
    assert [number for number, _ in numbers] == ["1", "2", "3", "4", "5", "6"]
    used = next(line for line in text.splitlines() if "memory.used_bytes" in line)
    assert "15.5 GiB" in used
    assert "NVML" in used


def test_text_fits_a_narrow_terminal() -> None:
    for line in explain(LEAK, env={"COLUMNS": "90"}).splitlines():
        assert len(line) <= 90 or line.startswith("Where each number")


def test_a_machine_without_a_card_is_a_valid_answer() -> None:
    assert explain().startswith("This machine has no GPU that gpusnap can see.")


def test_torn_lines_are_counted_and_strict_lines_refuses_them(tmp_path: Path) -> None:
    lines = gzip.decompress(Path(LEAK).read_bytes()).splitlines(keepends=True)[:40]
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b"".join(lines[:20]) + lines[20][:100] + b"\n" + b"".join(lines[21:]))
    done = run_gpusnap("explain", str(path))
    assert done.returncode == 0
    assert b"39 samples" in done.stdout
    assert b"line 21" in done.stderr
    assert run_gpusnap("explain", str(path), "--strict-lines").returncode == 2


def test_openmetrics_of_a_recording_ends_in_eof() -> None:
    text = explain(LEAK, "--format", "openmetrics")
    assert text.endswith("# EOF\n")
    used = [line for line in text.splitlines() if line.startswith("gpusnap_adapter_memory_used_bytes")]
    assert len(used) == 463, "466 samples, 3 of them unknown"


def test_what_openmetrics_can_not_hold_is_said(tmp_path: Path) -> None:
    """The same recording twice: its second half is earlier than the end of its first."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.decompress(Path(LEAK).read_bytes()) * 2)
    done = run_gpusnap("explain", str(path), "--format", "openmetrics")
    assert done.returncode == 0
    assert done.stdout.endswith(b"# EOF\n")
    assert done.stderr.decode().startswith("gpusnap explain: 466 samples left out: not later than one before")


@pytest.mark.parametrize("form", ["svg", "html"])
def test_pictures_of_a_recording_and_of_one_snapshot(form: str) -> None:
    for words in ((LEAK,), ("--replay", EXAMPLE)):
        picture = explain(*words, "--format", form)
        assert picture.count('<g class="card"') == (2 if form == "html" else 1)
        assert "<script" not in picture


def test_prometheus_text_goes_whole_into_a_file_that_its_reader_may_open(tmp_path: Path) -> None:
    path = tmp_path / "gpusnap.prom"
    old_umask = os.umask(0o022)
    try:
        done = run_gpusnap("snap", "--replay", EXAMPLE, "--format", "prometheus", "--per-pid", "-o", str(path))
    finally:
        os.umask(old_umask)
    assert (done.returncode, done.stdout) == (0, b"")
    assert path.stat().st_mode & 0o777 == 0o644
    text = path.read_text()
    assert re.search(r'^gpusnap_process_memory_used_bytes\{adapter="GPU-3f7c0d5e[^"]*",pid="4711"', text, re.M)
    assert list(tmp_path.iterdir()) == [path]


def test_per_pid_without_prometheus_is_a_usage_error() -> None:
    done = run_gpusnap("snap", "--replay", EXAMPLE, "--per-pid")
    assert done.returncode == 2
    assert b"--per-pid is for --format prometheus" in done.stderr


def test_the_reader_of_a_file_of_another_host_is_not_taken_for_its_owner(tmp_path: Path) -> None:
    row = process(8, 8 * GIB, ppid=1, user="root", uid=0)
    document = snapshot([adapter(used=9 * GIB)], [row], hostname="elsewhere", at=START)
    assert "As their owner or root" in explain(written(tmp_path / "a.json", document))


def test_context_of_what_has_no_model_is_said_not_ignored() -> None:
    example = str(Path(__file__).parents[2] / "examples/machines/rtx4080-desktop")
    done = run_gpusnap("explain", "pid:3120", "--context", "8k", "--replay", example)
    assert done.returncode == 0
    assert done.stderr == b"gpusnap explain: --context: the cache of this process can't be computed\n"
    with_model = run_gpusnap("explain", "pid:4711", "--context", "8k", "--replay", example)
    assert with_model.stderr == b""
    assert b"8k 1.2 GiB" in with_model.stdout


def test_context_is_counted_in_units_of_1024() -> None:
    """160 KiB a token: 1.25 GiB for 8k, 160 GiB for a million."""
    words = ("explain", "pid:4711", "--context", "8K,1M,1000", "--json", "--replay", EXAMPLE)
    found = json.loads(run_gpusnap(*words).stdout)["context"]
    assert [(row["tokens"], row["kv_cache_bytes"] // (160 * 1024)) for row in found] == [
        (1000, 1024),  # cells come in blocks of 256
        (8192, 8192),
        (1 << 20, 1 << 20),
    ]


@pytest.mark.parametrize("what", [(), ("gpu:0",)])
def test_context_without_a_process_names_those_it_can_be_asked_of(what: tuple[str, ...]) -> None:
    done = run_gpusnap("explain", *what, "--context", "8k", "--replay", EXAMPLE)
    assert done.returncode == 0
    assert done.stderr == b"gpusnap explain: --context: say which process is meant: pid:4711\n"


def test_context_of_a_recording_says_what_can_be_asked() -> None:
    done = run_gpusnap("explain", LEAK, "--context", "8k")
    assert b"ask one sample of it for a process, FILE@last" in done.stderr


def test_a_file_name_that_is_no_utf8_stands_in_json_escaped(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.json")
    written(path, two_cards())
    found = json.loads(explain("--from", str(path), "--json"))
    assert found["subject"]["source"] == f"{tmp_path}/bad\\xff.json"


@pytest.mark.parametrize("words", [("--from", LEAK), (LEAK,)])
def test_a_file_and_a_replayed_machine_are_not_both_explained(words: tuple[str, ...]) -> None:
    assert "--replay contradict each other" in refused(*words, "--replay", EXAMPLE)


@pytest.mark.parametrize("option", [("--window", "1s"), ("--cmdline", "none"), ("--probe",), ("--timeout", "5s")])
def test_how_to_look_at_a_machine_is_not_asked_of_a_file(option: tuple[str, ...]) -> None:
    assert f"{LEAK} and {option[0]} contradict each other" in refused(LEAK, *option)


def test_not_to_ask_anybody_is_no_contradiction_to_a_file() -> None:
    assert "a step leak in ollama" in explain(LEAK, "--no-probe")


def test_the_command_for_the_sources_can_be_copied_and_means_the_same() -> None:
    last = explain("gpu:4080 super", "--replay", EXAMPLE).splitlines()[-1]
    program, command, *words = shlex.split(last.partition(": ")[2])
    assert (program, command, words[-1]) == ("gpusnap", "explain", "--sources")
    assert explain(*words).startswith("15.5 of 16.0 GiB used: ")


def test_the_number_of_a_model_names_its_card() -> None:
    assert explain("gpu:4080", "--replay", EXAMPLE).startswith("15.5 of 16.0 GiB used: ")
    assert "no adapter '408'" in refused("gpu:408", "--replay", EXAMPLE)
