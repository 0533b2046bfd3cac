"""Kills recorders that share a file, again and again, and holds the file to what they had acknowledged."""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

import orjson

from gpusnap.record.writer import MAGIC
from tests.cli.recorder import GPUSNAP, environment
from tests.standin import Card, Proc, Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ACK = re.compile(r"^gpusnap record: pid (\d+) sequence (\d+): \d+ bytes\n", re.M)
# Dead pids make long lines: many pages, between which a killed write stops.
ROWS = 150


class Outcome(NamedTuple):
    acknowledged: set[tuple[int, int]]
    whole: list[tuple[int, int]]
    torn: list[bytes]
    kills: int


class Writers:
    """`count` recorders on one file; each incarnation's acknowledgements go to a file of its own."""

    def __init__(self, folder: Path, count: int) -> None:
        self.file = folder / "shared.jsonl"
        self._acks = folder / "acks"
        self._acks.mkdir()
        processes = [Proc(4_000_000 + number, 1 << 28) for number in range(ROWS)]
        self._more: Mapping[str, str] = Scenario([Card(processes=processes)]).environment(folder)
        self._started = 0
        self._latest: dict[int, Path] = {}
        self.running = [self._start(number) for number in range(count)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        self._started += 1
        self._latest[number] = self._acks / str(self._started)
        words = [*GPUSNAP, "record", str(self.file), "--every", "1ms", "-v"]
        with self._latest[number].open("wb") as said:
            return subprocess.Popen(words, env=environment(self._more), stderr=said)

    def kill(self, number: int) -> None:
        self.running[number].kill()
        self.running[number].wait()
        self.running[number] = self._start(number)

    def stop(self) -> list[int]:
        """Once each has acknowledged a sample: a process that still loads Python has no handler yet."""
        until = time.monotonic() + 60
        while time.monotonic() < until and not all(ACK.search(said.read_text()) for said in self._latest.values()):
            time.sleep(0.05)
        for process in self.running:
            process.terminate()
        return [process.wait(60) for process in self.running]

    def acknowledged(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for path in self._acks.iterdir():
            found |= {(int(pid), int(number)) for pid, number in ACK.findall(path.read_text())}
        return found


def torture(folder: Path, rounds: int, *, writers: int = 4, seed: int = 0) -> Outcome:
    """Half of the kills come at any moment (also while a writer starts), half right after the file has grown."""
    moments = random.Random(seed)
    group = Writers(folder, writers)
    try:
        for number in range(rounds):
            time.sleep(moments.uniform(0.0, 0.4))
            if number % 2:
                _await_growth(group.file)
            group.kill(moments.randrange(writers))
    finally:
        codes = group.stop()
    assert codes == [0] * writers, codes
    whole, torn = read_back(group.file.read_bytes())
    return Outcome(group.acknowledged(), whole, torn, rounds)


def _await_growth(path: Path) -> None:
    size = path.stat().st_size if path.exists() else 0
    until = time.monotonic() + 2
    while time.monotonic() < until:
        if path.exists() and os.stat(path).st_size > size:
            return


def read_back(raw: bytes) -> tuple[list[tuple[int, int]], list[bytes]]:
    """(writer pid, sequence) of every whole line in file order, and the lines that are none."""
    whole: list[tuple[int, int]] = []
    torn: list[bytes] = []
    for line in raw.split(b"\n")[:-1]:
        try:
            row = orjson.loads(line)["recording"]
        except ValueError:
            torn.append(line)
        else:
            whole.append((row["writer_pid"], row["sequence"]))
    return whole, torn


def check(outcome: Outcome, raw: bytes) -> None:
    assert raw.endswith(b"\n")
    lost = outcome.acknowledged - set(outcome.whole)
    assert lost == set()
    assert len(outcome.whole) == len(set(outcome.whole))
    # A kill tears at most the line that was being written, and nothing was ever appended onto it.
    assert len(outcome.torn) <= outcome.kills
    for line in outcome.torn:
        assert line.startswith(MAGIC[: len(line)])
        assert line.count(MAGIC) <= 1
    # At most one line a kill is whole and not acknowledged: written, and killed before the word.
    assert len(set(outcome.whole) - outcome.acknowledged) <= outcome.kills
    by_writer: dict[int, list[int]] = {}
    for pid, number in outcome.whole:
        by_writer.setdefault(pid, []).append(number)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in by_writer.values())
