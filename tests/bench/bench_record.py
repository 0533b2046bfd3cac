"""One more sample of `gpusnap record --every` beside the bare reading of stat files, and beside `snap`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.bench_snap import machine
from tests.bench.measure import Crowd, Failed, environment, installed

if TYPE_CHECKING:
    from tests.bench.report import Bench

CARDS, PROCESSES = 8, 200
FEW, MANY = 1, 61
# What no recorder can do without: each process's stat file, as cheaply as Python reads it, at the same pace (a
# processor that slept in between has forgotten some of it).
BARE_STAT = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    time.sleep(0.02)
    for pid in sys.argv[2:]:
        stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        os.read(stat, 4096)
        os.close(stat)
"""


def bench_record_every(bench: Bench) -> None:
    """one more sample of `record --every`, 8 cards and 200 processes, models off, written with fsync"""
    with Crowd(PROCESSES) as pids, tempfile.TemporaryDirectory() as folder:
        environ = environment(machine(CARDS, pids).environment(Path(folder)))
        recording = Path(folder) / "rec.jsonl"
        gpusnap = installed("gpusnap")
        record = [*gpusnap, "record", str(recording), "--every", "20ms", "--no-models", "--count"]
        bare = [sys.executable, "-c", BARE_STAT]
        commands = {
            "gpusnap snap": [*gpusnap, "snap"],
            f"record, {FEW} sample": [*record, str(FEW)],
            f"record, {MANY} samples": [*record, str(MANY)],
            f"stat files, {FEW} time": [*bare, str(FEW), *map(str, pids)],
            f"stat files, {MANY} times": [*bare, str(MANY), *map(str, pids)],
        }
        snap, few, many, bare_few, bare_many = bench.side_by_side(commands, environ).values()
        lines = recording.read_bytes().splitlines()
    if len(lines) != (bench.rounds + 1) * (FEW + MANY) or lines[-1].count(b'"start_ticks"') != PROCESSES:
        raise Failed(f"{len(lines)} lines, the last with {lines[-1].count(b'start_ticks')} processes")
    sample = (many.cpu_ms - few.cpu_ms) / (MANY - FEW)
    stat_files = (bare_many.cpu_ms - bare_few.cpu_ms) / (MANY - FEW)
    bench.note(f"one sample {sample:.2f} ms, the stat files {stat_files:.2f} ms")
    bench.bound("CPU beside reading the stat files", sample / stat_files, at_most=4, aim=2)
    bench.bound("CPU beside one snap", sample / snap.cpu_ms, at_most=0.1)
