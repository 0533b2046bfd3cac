"""The shipped examples are run: the words of cron's and systemd's lines, and the Slurm scripts without a PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from tests.cli.recorder import ROOT, record, samples
from tests.standin import Card, Proc, Scenario

EXAMPLES = ROOT / "examples"
PROGRAM = "/usr/local/bin/gpusnap"
RECORDING = "/var/log/gpusnap/gpus.jsonl"
GIB = 1 << 30


def commands(path: Path) -> list[list[str]]:
    """The words behind the program in every line that starts it."""
    lines = [line for line in path.read_text().splitlines() if PROGRAM in line and not line.startswith("#")]
    return [line.partition(PROGRAM)[2].split() for line in lines]


def test_crons_line_has_five_times_a_user_and_a_full_path_and_its_command_works(tmp_path: Path) -> None:
    lines = (EXAMPLES / "cron" / "gpusnap").read_text().splitlines()
    jobs = [line for line in lines if line and not line.startswith("#") and "=" not in line.split(" ")[0]]
    (fields,) = [line.split() for line in jobs]
    assert fields[:5] == ["*"] * 5
    assert fields[5:7] == ["root", PROGRAM]
    run_example(EXAMPLES / "cron" / "gpusnap", tmp_path)


@pytest.mark.parametrize("name", ["gpusnap-record.service", "gpusnap-sample.service"])
def test_the_services_commands_work(tmp_path: Path, name: str) -> None:
    run_example(EXAMPLES / "systemd" / name, tmp_path)


def run_example(example: Path, folder: Path) -> None:
    (words,) = commands(example)
    assert words[:2] == ["record", RECORDING]
    rest = [word.replace("%p", "gpusnap-record") for word in words[2:]]
    path = folder / "gpus.jsonl"
    once = ["--count", "1"] if "--every" in rest else []
    done = record(str(path), *rest, *once)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (doc,) = samples(path)
    assert list(doc["labels"]) == ["source"]


class Node:
    """A compute node: one card, and the scripts as Slurm runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.more = Scenario([Card(used=GIB)]).environment(folder)
        self.program = folder / "gpusnap"
        found = {**self.more, "PYTHONPATH": str(ROOT)}
        variables = " ".join(f"{name}={quote(value)}" for name, value in found.items())
        self.program.write_text(f'#!/bin/sh\n{variables} exec {quote(sys.executable)} -m gpusnap "$@"\n')
        self.program.chmod(0o755)

    def holds(self, used: int, *processes: Proc) -> None:
        Scenario([Card(used=used, processes=processes)]).write(Path(self.more["GPUSNAP_TEST_NVML"]))

    def run(self, script: str, **more: str) -> tuple[int, str]:
        """No PATH at all; what goes to the log comes back."""
        environ = {
            "SLURM_JOB_ID": "17",
            "SLURM_JOB_USER": "bob",
            "GPUSNAP": str(self.program),
            "GPUSNAP_JOBS": str(self.folder / "jobs"),
            "LOGGER": "/bin/echo",
            **more,
        }
        done = subprocess.run(
            [EXAMPLES / "slurm" / script], env=environ, capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    def kept(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "jobs").iterdir())


def test_a_job_that_leaves_nothing_behind_leaves_no_trace(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.run("prolog.sh") == (0, "")
    assert node.kept() == ["17.before.json"]
    node.holds(12 * GIB)
    node.holds(GIB)
    assert node.run("epilog.sh") == (0, "")
    assert node.kept() == []


@pytest.mark.parametrize(("drain", "code"), [("", 0), ("1", 1)])
def test_a_job_that_leaves_memory_behind_is_said_and_drains_the_node_if_asked(
    tmp_path: Path, drain: str, code: int
) -> None:
    node = Node(tmp_path)
    node.run("prolog.sh")
    node.holds(3 * GIB, Proc(os.getpid(), 2 * GIB))
    ended, said = node.run("epilog.sh", GPUSNAP_DRAIN=drain)
    assert ended == code
    assert said == f"job 17 of bob left GPU memory behind, or nobody can tell: see {tmp_path}/jobs/17.diff.txt\n"
    assert node.kept() == ["17.after.json", "17.before.json", "17.diff.txt"]
    report = (tmp_path / "jobs" / "17.diff.txt").read_text()
    assert str(os.getpid()) in report
    assert "2.0 GiB" in report


def test_the_limit_is_the_sites(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.run("prolog.sh")
    node.holds(3 * GIB)
    assert node.run("epilog.sh", GPUSNAP_LIMIT="2GiB") == (0, "")


def test_a_card_that_cannot_be_measured_afterwards_is_not_fine(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.run("prolog.sh")
    lost = Card()
    lost.lose()
    Scenario([lost]).write(Path(node.more["GPUSNAP_TEST_NVML"]))
    code, said = node.run("epilog.sh", GPUSNAP_DRAIN="1")
    assert code == 1
    assert said.startswith("job 17 of bob left GPU memory behind, or nobody can tell")


def test_without_a_job_or_its_first_snapshot_nothing_happens(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.run("prolog.sh", SLURM_JOB_ID="") == (0, "")
    assert node.run("epilog.sh") == (0, "")
    assert not (tmp_path / "jobs").exists()
