"""`gpusnap record` as a person or cron runs it: what is in the file, what is said, the exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from tests.cli.recorder import GPUSNAP, REPLAY, ROOT, end, environment, record, samples, start, wait_for_samples
from tests.namespaces import needs_host_pids


def test_a_plain_record_appends_one_sample_and_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for number in (1, 2):
        done = record(str(path), *REPLAY)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert len(samples(path)) == number
    assert [doc["recording"]["sequence"] for doc in samples(path)] == [1, 1]
    assert len({doc["recording"]["writer_pid"] for doc in samples(path)}) == 2


def test_each_line_is_compact_and_begins_as_the_contract_says(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(str(path), *REPLAY, "--count", "2")
    for line in path.read_bytes().splitlines():
        assert line.startswith(b'{"schema":"gpusnap.snapshot/1",')
        assert json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False).encode() == line


def test_the_form_that_cron_runs_imports_neither_typer_nor_the_readers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpusnap", "record", str(tmp_path / "a.jsonl")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    imported = set(re.findall(r"\|\s+(\S+)$", done.stderr, re.M))
    assert "gpusnap.record.writer" in imported
    unwanted = {"typer", "click", "orjson", "psutil", "tabulate", "gguf", "numpy", "msgspec"}
    assert imported & (unwanted | {"gpusnap.model", "gpusnap.record.child", "gpusnap.diff", "zstandard"}) == set()
    assert len(samples(tmp_path / "a.jsonl")) == 1


def test_report_085_a_long_recording_starts_no_process(tmp_path: Path) -> None:
    """Python's own audit events tell: netdata forked nvidia-smi for each sample."""
    from tests.standin import Card, Proc, Scenario

    machine = Scenario([Card(processes=[Proc(os.getpid(), 1 << 30)]) for _ in range(8)])
    watch = tmp_path / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(
        "import sys\n"
        "def hook(event, args):\n"
        "    if event.startswith(('subprocess.', 'os.fork', 'os.posix_spawn', 'os.exec', 'os.system')):\n"
        f"        open({str(tmp_path / 'started')!r}, 'a').write(event + '\\n')\n"
        "sys.addaudithook(hook)\n"
    )
    more = {**machine.environment(tmp_path), "PYTHONPATH": f"{watch}{os.pathsep}{ROOT}"}
    done = record(str(tmp_path / "a.jsonl"), "--every", "20ms", "--count", "5", more=more)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(samples(tmp_path / "a.jsonl")) == 5
    assert not (tmp_path / "started").exists()
    # The hook would have seen it.
    assert record(str(tmp_path / "b.jsonl"), "--", "true", more=more).returncode == 0
    assert "subprocess.Popen" in (tmp_path / "started").read_text()


def test_acknowledged_samples_are_named_by_pid_and_sequence(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    done = record(str(path), *REPLAY, "--count", "3", "-v")
    acks = re.findall(r"^gpusnap record: pid (\d+) sequence (\d+): (\d+) bytes$", done.stderr, re.M)
    lines = path.read_bytes().splitlines(keepends=True)
    written = [json.loads(line)["recording"] for line in lines]
    assert [(int(pid), int(number)) for pid, number, _ in acks] == [
        (row["writer_pid"], row["sequence"]) for row in written
    ]
    assert [int(count) for _, _, count in acks] == [len(line) for line in lines]
    assert done.stderr.startswith("nvml: ok\n")


def test_standard_output_gets_whole_lines_as_they_come() -> None:
    process = start("-", *REPLAY, "--every", "1h")
    assert process.stdout is not None
    first = process.stdout.readline()
    assert json.loads(first)["recording"]["sequence"] == 1
    process.stdout.close()
    assert process.wait(30) == -signal.SIGPIPE  # what a shell calls 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_a_standard_output_that_is_full_is_one_line_and_exit_3() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*GPUSNAP, "record", "-", *REPLAY, "--every", "1s"],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "gpusnap record: standard output: No space left on device\n"


USAGE = [
    (["{file}", "python", "train.py"], "unexpected 'python': a command stands behind `--`"),
    (["{file}", "--"], "no command after `--`"),
    (["-", "--", "true"], "`-` is the command's standard output too: name a file"),
    (["{file}", "--count", "3", "--", "true"], "--count and --for do not go with it"),
    (["{file}", "--for", "3s", "--", "true"], "--count and --for do not go with it"),
    (["{file}", *REPLAY, "--", "true"], "--replay has a clock of its own"),
    (["{file}", "--every", "0"], "--every: expected more than 0 seconds"),
    (["{file}", "--count", "0"], "--count: expected at least 1"),
    (["{file}", "--for", "0s"], "--for: expected more than 0 seconds"),
    (["{file}", "--max-failures", "0"], "--max-failures: expected at least 1"),
    (["{file}", "--every", "soon"], "'soon' is not a duration"),
    (["{file}", "--adapter", "voodoo", *REPLAY], "no adapter is named 'voodoo'"),
    (["{file}", "--cmdline", "some"], "expected one of redacted, none, full"),
    (["{file}", "--no-such-option"], "--no-such-option"),
    ([], "FILE"),
    (["--", "true"], "FILE"),
    (["{file}/below.jsonl"], "there is no folder"),
    (["/"], "Is a directory"),
    (["/dev/null"], "not a regular file"),
    (["{file}.gz"], "a recording grows as plain lines"),
    (["{file}.zst", "--every", "1s"], "compress it later"),
    (["-", "--summary", "-", "--count", "1"], "--summary -: that is the recording itself"),
]


@pytest.mark.parametrize(("words", "says"), USAGE)
def test_wrong_usage_is_exit_2_with_a_reason_and_no_file(tmp_path: Path, words: list[str], says: str) -> None:
    path = tmp_path / "a.jsonl"
    done = record(*(word.replace("{file}", str(path)) for word in words))
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [(), ("--every", "1s"), ("--", "touch", "{folder}/ran")])
def test_a_file_that_is_not_ours_is_exit_2_and_left_alone_and_no_command_runs(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work\n")
    done = record(str(path), *(word.replace("{folder}", str(tmp_path)) for word in words))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "thesis.txt: not a gpusnap recording, left alone" in done.stderr
    assert path.read_text() == "years of work\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_becomes_somebody_elses_mid_run_ends_the_recording_with_2(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    process = start(str(path), "--every", "50ms")
    wait_for_samples(path, 2)
    fresh = tmp_path / "fresh"
    fresh.write_text("years of work\n")
    fresh.rename(path)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert err.count("\n") == 1
    assert "not a gpusnap recording, left alone" in err
    assert path.read_text() == "years of work\n"


def test_a_folder_that_vanishes_and_comes_back_costs_the_samples_between(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    folder.mkdir()
    path = folder / "a.jsonl"
    process = start(str(path), "--every", "20ms", "--max-failures", "100000")
    wait_for_samples(path, 2)
    folder.rename(tmp_path / "away")
    assert process.stderr is not None
    assert process.stderr.readline() == f"gpusnap record: {path}: there is no folder {folder}\n"
    folder.mkdir()
    wait_for_samples(path, 1)
    code, _, err = end(process)
    assert code == 0
    assert re.fullmatch(r"gpusnap record: recording again, \d+ samples? lost\n", err)
    before, after = samples(tmp_path / "away" / "a.jsonl")[-1], samples(path)[0]
    assert after["recording"]["sequence"] == before["recording"]["sequence"] + 1
    assert after["recording"]["missed_ticks"] >= 1


def test_samples_that_cannot_be_kept_end_it_with_3_after_max_failures(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    folder.mkdir()
    path = folder / "a.jsonl"
    process = start(str(path), "--every", "30ms", "--max-failures", "2")
    wait_for_samples(path, 1)
    path.unlink()
    folder.rmdir()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert err == f"gpusnap record: {path}: there is no folder {folder}\n"


def test_a_one_shot_that_cannot_be_kept_is_exit_3_at_once(tmp_path: Path) -> None:
    """RLIMIT_FSIZE 0 refuses every byte, as a full disk does."""
    script = f"ulimit -f 0; exec {quote(sys.executable)} -m gpusnap record {tmp_path}/a.jsonl"
    done = subprocess.run(["sh", "-c", script], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == f"gpusnap record: {tmp_path}/a.jsonl: File too large\n"
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_labels_stand_in_every_sample(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(str(path), *REPLAY, "--count", "2", "--label", "job=17", "--label", "role=trainer")
    assert [doc["labels"] for doc in samples(path)] == [{"job": "17", "role": "trainer"}] * 2


def test_report_121_cmdline_none_keeps_only_the_program(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record(str(path), *REPLAY, "--cmdline", "none")
    (doc,) = samples(path)
    assert all(len(row["cmdline"] or []) <= 1 for row in doc["processes"])


@needs_host_pids
def test_report_103_command_lines_are_redacted_by_default(tmp_path: Path) -> None:
    """A real process of this machine: NVML lists it, its argv holds a key."""
    from tests.standin import Card, Proc, Scenario

    key = "sk-AAAAbbbbCCCCdddd1111"
    argv = ["sh", "-c", "sleep 60", "vllm", "--api-key", key, f"--hf-token={key}"]
    with subprocess.Popen(argv) as process:
        machine = Scenario([Card(processes=[Proc(process.pid, 1 << 30)])])
        path = tmp_path / "a.jsonl"
        done = record(str(path), more=machine.environment(tmp_path))
        process.kill()
    assert done.returncode == 0
    (row,) = samples(path)[0]["processes"]
    assert row["cmdline"][-3:] == ["--api-key", "***", "--hf-token=***"]
    assert key.encode() not in path.read_bytes()


def test_a_new_file_is_private_to_owner_and_group(tmp_path: Path) -> None:
    record(str(tmp_path / "a.jsonl"))
    assert (tmp_path / "a.jsonl").stat().st_mode & 0o777 == 0o640 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_crons_environment_is_enough(tmp_path: Path) -> None:
    """No PATH, no HOME, no LD_LIBRARY_PATH, no locale, no terminal, a working directory of /."""
    program = tmp_path / "gpusnap"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gpusnap.__main__ import main; main()"
    program.write_text(f'#!/bin/sh\nexec {quote(sys.executable)} -c {quote(code)} "$@"\n')
    program.chmod(0o755)
    path = tmp_path / "a.jsonl"
    for words in ([str(path)], [str(path), "--every", "20ms", "--count", "2", "--label", "source=cron"]):
        done = subprocess.run(
            [str(program), "record", *words],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    docs = samples(path)
    assert len(docs) == 3
    assert all(doc["host"]["hostname"] == os.uname().nodename for doc in docs)


def test_progress_is_for_a_terminal_alone(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    path = tmp_path / "a.jsonl"
    process = start(str(path), *REPLAY, "--every", "10s", "--count", "3", stderr=terminal, more={"TERM": "xterm"})
    os.close(terminal)
    process.wait(30)
    said = b""
    while True:
        try:
            said += os.read(controller, 65536)
        except OSError:
            break
    os.close(controller)
    assert process.returncode == 0
    assert b"\r3 samples, " in said
    assert b"GPU 0 15.5 of 16.0 GiB" in said
    assert said.count(b"\n") == 1
    quiet = record(str(path), *REPLAY, "--count", "3")
    assert quiet.stderr == ""
