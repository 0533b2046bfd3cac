"""What a whole process costs: CPU, wall clock and peak memory, by wait4(2)."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SWITCHES = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONWARNINGS")


class Cost(NamedTuple):
    cpu_ms: float
    wall_ms: float
    peak_mib: float


class Failed(Exception):
    """A command that does not work is not measured."""


def built(source: str) -> str:
    """A small C program of this folder, compiled when it is older than its source."""
    program = Path(tempfile.gettempdir()) / f"gpusnap-bench-{os.getuid()}" / source
    text = HERE / f"{source}.c"
    if not program.exists() or program.stat().st_mtime < text.stat().st_mtime:
        program.parent.mkdir(exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-o", str(program), str(text)], check=True)
    return str(program)


def installed(program: str) -> list[str]:
    """A console script of the environment that runs the bench; gpusnap also from a checkout."""
    script = Path(sysconfig.get_path("scripts")) / program
    if script.exists():
        return [str(script)]
    if program == "gpusnap":
        return [sys.executable, "-m", "gpusnap"]
    raise Failed(f"{program} is not installed: pip install -e '.[dev]'")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Without the caller's interpreter switches: bytecode, above all, is kept as an installer keeps it."""
    kept = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    return kept | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"} | dict(more or {})


def once(argv: Sequence[str], environ: Mapping[str, str]) -> Cost:
    done = subprocess.run(
        [built("launch"), *argv], env=dict(environ), capture_output=True, text=True, check=True, cwd=ROOT
    )
    code, cpu, wall, peak = map(int, done.stdout.split())
    if code != 0:
        raise Failed(f"exit code {code}: {' '.join(argv)}")
    return Cost(cpu / 1e3, wall / 1e3, peak / 1024)


def interleaved(
    commands: Mapping[str, Sequence[str]], environ: Mapping[str, str], rounds: int
) -> dict[str, list[Cost]]:
    """Each command once a round, in turn, so that a busy machine is busy for all; one round before warms up."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(-1, rounds):
        for name, argv in commands.items():
            cost = once(argv, environ)
            if number >= 0:
                costs[name].append(cost)
    return costs


def medians(costs: Sequence[Cost]) -> Cost:
    return Cost(*(median(column) for column in zip(*costs, strict=True)))


def output_of(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    done = subprocess.run(argv, env=dict(environ), capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise Failed(f"exit code {done.returncode}: {' '.join(argv)}: {last}")
    return done.stdout


class Crowd:
    """Real processes for a machine to hold: `with Crowd(200) as pids`."""

    def __init__(self, count: int, argv: Sequence[str] = ("sleep", "3600"), *, announced: bool = False) -> None:
        self.count = count
        self.argv = argv
        self.announced = announced
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> list[int]:
        for _ in range(self.count):
            self.running.append(subprocess.Popen(self.argv, stdout=subprocess.PIPE))
        for one in self.running:
            if self.announced and one.stdout is not None:
                one.stdout.read(1)
        return [one.pid for one in self.running]

    def __exit__(self, *problem: object) -> None:
        for one in self.running:
            one.kill()
        for one in self.running:
            one.communicate()


def dealt(pids: Sequence[int], hands: int) -> Iterator[list[int]]:
    """The pids, spread evenly."""
    for first in range(hands):
        yield list(pids[first::hands])
