"""`gpusnap snap` as a user runs it: output, files, options, exit codes."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import pytest

from tests.contract import check_contract
from tests.namespaces import needs_host_pids
from tests.snapping import run_gpusnap, snap
from tests.standin import Card, Proc, Scenario
from tests.surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")
MISMATCH = str(ROOT / "tests/machines/nvidia-version-mismatch")
LOST = str(ROOT / "tests/machines/nvidia-lost-card")
NO_PERMISSION = 4


def test_a_machine_without_a_gpu_is_a_valid_empty_answer() -> None:
    done = run_gpusnap("snap")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert document["adapters"] == []
    assert document["processes"] == []
    assert done.stdout.endswith(b"}\n")
    assert done.stdout.count(b"\n") == 1


def test_output_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    old_umask = os.umask(0o022)
    try:
        done = run_gpusnap("snap", "--replay", EXAMPLE, "-o", str(target))
    finally:
        os.umask(old_umask)
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads(target.read_bytes())["schema"] == "gpusnap.snapshot/1"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_output_file_is_not_truncated_before_success(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text("precious")
    done = run_gpusnap("snap", "--adapter", "no such card", "--replay", EXAMPLE, "-o", str(target))
    assert done.returncode == 2
    assert target.read_text() == "precious"


def test_what_a_killed_run_left_behind_blocks_nobody(tmp_path: Path) -> None:
    """In a container each run has the same pid: a temporary file that is named by it would be there for ever."""
    target = tmp_path / ("a" * 245 + ".json")  # a name as long as file systems allow: nothing fits behind it
    program = (
        "import os, sys; from gpusnap.cli import io\n"
        "real = os.replace\n"
        "os.replace = lambda *_: os._exit(9)\n"
        "if os.fork() == 0: io.write_out(b'torn', sys.argv[1])\n"
        "os.wait(); os.replace = real; io.write_out(b'whole', sys.argv[1])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(target)], check=True, cwd=ROOT)
    assert target.read_bytes() == b"whole"


@pytest.mark.parametrize("output", ["/no/such/folder/a.json", "/dev/full"])
def test_output_that_cannot_be_written_is_one_line_and_3(output: str) -> None:
    done = run_gpusnap("snap", "-o", output)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert output.encode() in done.stderr


def test_full_standard_output_is_one_line_and_3() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "gpusnap", "snap"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [b"gpusnap snap: standard output: No space left on device"]


def test_broken_pipe_is_silent_141() -> None:
    # A pipe holds 64 KiB: enough labels to overrun it.
    many = " ".join(f"--label k{number}={'y' * 4000}" for number in range(25))
    words = (
        f"{quote(sys.executable)} -m gpusnap snap --replay {quote(EXAMPLE)} {many} | true; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", words], env=surroundings(), capture_output=True, check=False)
    assert done.stdout.split() == [b"141"]
    assert done.stderr == b""


@pytest.mark.parametrize(
    "words",
    [
        ["snap", "--window", "fast"],
        ["snap", "--cmdline", "some"],
        ["snap", "--label", "novalue"],
        ["snap", "--replay", "/no/such/machine"],
        ["snap", "--procfs", "/no/such/folder"],
        ["snap", "--adapter", "7"],
        ["snap", "stray"],
        ["snap", "--save-raw", ""],
        ["snap", "-o", "/tmp/never-written.json.gz"],
        ["snap", "--no-such-option"],
        ["nonsense"],
        ["ps", "--sort", "size"],
        ["ps", "--group-by", "moon"],
        ["ps", "--category", "games"],
        ["ps", "--state", "bored"],
        ["ps", "--top", "0"],
        ["ps", "--min-vram", "16G"],
        ["ps", "--json", "--format", "text"],
        ["ps", "--format", "xml"],
        ["ps", "--color", "red"],
        ["snap", "--color", "red"],
        ["record", "r.jsonl", "--color", "red"],
        ["ps", "--from", "/no/such/file.json"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_without_a_traceback(words: list[str]) -> None:
    done = run_gpusnap(*words)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("snap",), ("record", "-")])
def test_color_is_taken_everywhere_and_json_has_none(command: tuple[str, ...]) -> None:
    done = run_gpusnap(*command, "--color", "always", "--replay", EXAMPLE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    check_contract(json.loads(done.stdout))


def test_a_broken_driver_is_3_and_still_a_document() -> None:
    done = run_gpusnap("snap", "--replay", MISMATCH)
    assert done.returncode == 3
    assert json.loads(done.stdout)["processes"] is None
    assert len(done.stderr.splitlines()) == 1


def test_a_lost_card_is_a_row_not_a_failure() -> None:
    assert run_gpusnap("snap", "--replay", LOST).returncode == 0


def test_require_gpu_is_3_where_there_is_none() -> None:
    assert run_gpusnap("snap", "--require-gpu").returncode == 3
    assert run_gpusnap("snap", "--require-gpu", "--replay", EXAMPLE).returncode == 0


def test_strict_names_what_could_be_mended(tmp_path: Path) -> None:
    healthy = Scenario(cards=[Card()])
    assert run_gpusnap("snap", "--strict", machine=healthy, folder=tmp_path).returncode == 0
    card = Card()
    card.fail("nvmlDeviceGetTemperature", NO_PERMISSION)
    done = run_gpusnap("snap", "--strict", machine=Scenario(cards=[card]), folder=tmp_path)
    assert done.returncode == 4
    assert b"temperature.gpu_celsius: no-permission" in done.stderr
    assert json.loads(done.stdout)["adapters"][0]["temperature"]["gpu_celsius"] is None


def test_an_internal_error_is_70_and_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "gpusnap_broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import gpusnap.cli.snapping as s\ndef snap(request): raise RuntimeError('boom')\ns.snap = snap\n"
    )
    path = os.pathsep.join([str(broken), str(ROOT)])
    done = run_gpusnap("snap", env={"PYTHONPATH": path})
    assert done.returncode == 70
    (line,) = done.stderr.decode().splitlines()
    assert "internal error: RuntimeError: boom" in line


def test_labels_stand_in_the_document() -> None:
    document = json.loads(run_gpusnap("snap", "--label", "job=42", "--label", "note=a=b").stdout)
    assert document["labels"] == {"job": "42", "note": "a=b"}


def test_plain_snap_and_snap_with_options_are_the_same_document(tmp_path: Path) -> None:
    """The form that starts without typer against the one that goes through it."""
    machine = Scenario(cards=[Card(processes=[Proc(os.getpid(), 1 << 30)])])
    plain, through_typer = snap(machine, tmp_path), snap(machine, tmp_path, "--timeout", "10s")
    for document in (plain, through_typer):
        for key in ("taken_at", "uptime_seconds", "duration_seconds"):
            document.pop(key)
        for row in document["processes"]:
            row.pop("rss_bytes")
            row.pop("state")
    assert plain == through_typer


@pytest.mark.parametrize("word", ["0", "GPU-3f7c", "3f7c0d5e", "0000:01:00.0", "01:00.0", "rtx 4080", "4080"])
def test_adapter_is_named_by_any_of_its_names(word: str) -> None:
    document = json.loads(run_gpusnap("snap", "--replay", EXAMPLE, "--adapter", word).stdout)
    assert [row["index"] for row in document["adapters"]] == [0]
    assert len(document["processes"]) == 5


def test_no_processes_is_null_not_empty() -> None:
    document = json.loads(run_gpusnap("snap", "--replay", EXAMPLE, "--no-processes").stdout)
    assert document["processes"] is None
    row = document["adapters"][0]
    assert document["provenance"][row["provenance"]]["processes_listed"].startswith("null:not-requested")


@pytest.mark.parametrize(
    ("how", "shown"), [("none", None), ("full", "sk-local-4f9a8b7c6d5e"), ("redacted", "***")]
)
def test_report_121_command_lines_as_asked(how: str, shown: str | None) -> None:
    done = run_gpusnap("snap", "--replay", EXAMPLE, "--cmdline", how)
    row = next(row for row in json.loads(done.stdout)["processes"] if row["pid"] == 4711)
    if shown is None:
        assert row["cmdline"] is None or row["cmdline"] == []
    else:
        assert row["cmdline"][-1] == shown
    assert row["name"] == "llama-server"
    assert (b"sk-local-4f9a8b7c6d5e" in done.stdout) is (how == "full")


def test_version_and_module_form() -> None:
    assert run_gpusnap("--version").stdout.startswith(b"gpusnap 0.")
    assert run_gpusnap("--help").returncode == 0
    assert b"snap" in run_gpusnap("-h").stdout


def test_plain_snap_loads_neither_typer_nor_anything_heavy(tmp_path: Path) -> None:
    loaded = modules_of_plain_snap(tmp_path)
    assert "pynvml" in loaded
    heavy = {"typer", "orjson", "psutil", "tabulate", "gguf", "numpy", "msgspec", "pydantic", "gpusnap.model"}
    assert not loaded & heavy
    # Of the standard library: what costs a millisecond or more and that pynvml does not load anyway.
    slow = {"dataclasses", "inspect", "logging", "argparse", "pathlib", "datetime", "ast", "email", "asyncio"}
    if sys.version_info >= (3, 14):
        slow -= {"ast"}  # a NamedTuple takes it there, through annotationlib
    assert not loaded & (slow | {"importlib.metadata", "http.client", "urllib.request", "multiprocessing"})


@needs_host_pids
def test_plain_snap_loads_nothing_for_cards_and_programs_that_are_not_there(tmp_path: Path) -> None:
    """An NVIDIA card and a Python process: no backend of another vendor, no server, no log, no model file."""
    loaded = modules_of_plain_snap(tmp_path)
    backends = {name.rpartition(".")[2] for name in loaded if name.startswith("gpusnap.collect.backends.")}
    assert backends == {"drm", "nvml", "pci"}  # of `drm` only the look for cards
    foreign = ("amdgpu", "intel", "kfd", "npu", "drm_fdinfo", "drm_walk", "drm_clients", "hwmon")
    assert [name for name in loaded if name.startswith(tuple(f"gpusnap.collect.{word}" for word in foreign))] == []
    llm = {name.removeprefix("gpusnap.llm.") for name in loaded if name.startswith("gpusnap.llm.")}
    assert llm == {"describe", "gpu_row", "runtimes", "servers"}


def test_without_nvidias_library_its_binding_is_not_imported(tmp_path: Path) -> None:
    nowhere = "from gpusnap import live_nvml; live_nvml._SONAME = 'libnvidia-ml.so.nowhere'; "
    loaded = modules_of_plain_snap(tmp_path, before=nowhere)
    assert "gpusnap.collect.backends.nvml" in loaded
    assert "pynvml" not in loaded


def modules_of_plain_snap(folder: Path, *, before: str = "") -> set[str]:
    """What `gpusnap snap` imports on a machine with one NVIDIA card that a Python process holds.

    The process is started for it under a plain name: pytest's own command line holds the path of the checkout.
    """
    python = subprocess.Popen(["python3", "-c", "input()"], executable=sys.executable, stdin=subprocess.PIPE)
    with python:
        try:
            machine = Scenario([Card(processes=[Proc(python.pid, 1 << 30)])])
            return _modules_of_plain_snap(machine.environment(folder), before)
        finally:
            python.kill()


def _modules_of_plain_snap(environment: dict[str, str], before: str) -> set[str]:
    code = f"{before}from gpusnap.__main__ import main; main()"
    command = [sys.executable, "-v", "-c", code, "snap"]
    done = subprocess.run(command, env=surroundings(environment), capture_output=True, check=True)
    lines = done.stderr.decode().splitlines()
    return {line.split("'")[1] for line in lines if line.startswith("import '")}


def test_procfs_and_sysfs_by_option_and_by_variable(tmp_path: Path) -> None:
    """A container that mounts the host's /proc elsewhere: uptime and boot id come from there."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "uptime").write_text("12345.67 99.0\n")
    (tmp_path / "sys/kernel/random/boot_id").write_text("00000000-aaaa-4bbb-8ccc-dddddddddddd\n")
    by_option = json.loads(run_gpusnap("snap", "--procfs", str(tmp_path)).stdout)
    by_variable = json.loads(run_gpusnap("snap", env={"GPUSNAP_PROCFS": str(tmp_path)}).stdout)
    for document in (by_option, by_variable):
        assert document["uptime_seconds"] == 12345.67
        assert document["boot_id"] == "00000000-aaaa-4bbb-8ccc-dddddddddddd"


def test_the_schema_goes_where_output_says(tmp_path: Path) -> None:
    target = tmp_path / "schema.json"
    done = run_gpusnap("snap", "--schema", "-o", str(target))
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads(target.read_bytes())["title"] == "gpusnap.snapshot/1"


def test_report_077_keys_are_plain_words_with_their_unit_and_the_schema_has_a_version(tmp_path: Path) -> None:
    """gpustat#10: `utilization.gpu` needs quoting in jq and JavaScript, and nothing told what a file was."""
    (tmp_path / "a.json").write_bytes(run_gpusnap("snap", "--replay", EXAMPLE).stdout)
    words = ["jq", "-c", "[.schema, .adapters[0].load.gpu_percent, .adapters[0].memory.used_bytes]"]
    assert subprocess.check_output([*words, tmp_path / "a.json"]) == b'["gpusnap.snapshot/1",41,16666066944]\n'
    document = json.loads((tmp_path / "a.json").read_bytes())
    del document["provenance"]  # its keys name leaves: they are dotted paths by right
    keys = set(_keys(document))
    assert [key for key in keys if not re.fullmatch("[a-z][a-z0-9_]*", key)] == []
    assert {
        "gpu_percent",
        "gpu_celsius",
        "draw_watts",
        "graphics_mhz",
        "energy_joules",
        "duration_seconds",
    } <= keys


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(item)
