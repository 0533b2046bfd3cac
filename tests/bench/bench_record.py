"""One more sample of `gpusnap record --every`: beside bare reading, beside `snap`, beside the peers; its size."""

from __future__ import annotations

import gzip
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.bench_snap import machine
from tests.bench.measure import Crowd, Failed, environment, installed, output_of

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


# The peers' own classes, as their users' recorders call them.
GPUSTAT = """
import sys
import gpustat
for _ in range(int(sys.argv[1])):
    gpustat.new_query().jsonify()
"""
NVITOP = """
import sys
from nvitop import Device, take_snapshots
devices = Device.all()
for _ in range(int(sys.argv[1])):
    take_snapshots(devices)
"""


def bench_record_peers(bench: Bench) -> None:
    """one more sample, 8 cards and 200 processes, beside the classes of gpustat and nvitop in a loop"""
    few, many = 1, 11
    with Crowd(PROCESSES) as pids, tempfile.TemporaryDirectory() as folder:
        environ = environment(machine(CARDS, pids).environment(Path(folder)))
        record = [
            *installed("gpusnap"),
            "record",
            f"{folder}/rec.jsonl",
            "--every",
            "20ms",
            "--no-models",
            "--count",
        ]
        loops = {
            "gpusnap record": record,
            "gpustat loop": [sys.executable, "-c", GPUSTAT],
            "nvitop loop": [sys.executable, "-c", NVITOP],
        }
        commands = {
            f"{name}, {count}": [*argv, str(count)] for name, argv in loops.items() for count in (few, many)
        }
        costs = bench.side_by_side(commands, environ)
    sample, gpustat, nvitop = (
        (costs[f"{name}, {many}"].cpu_ms - costs[f"{name}, {few}"].cpu_ms) / (many - few) for name in loops
    )
    bench.note(f"one sample {sample:.2f} ms, gpustat {gpustat:.2f} ms, nvitop {nvitop:.2f} ms")
    bench.bound("CPU beside gpustat's loop", sample / gpustat, at_most=1)
    bench.bound("CPU beside nvitop's loop", sample / nvitop, at_most=1)


# A row is as large as its command line: those of a shared server, twenty processes each.
PROGRAMS = [
    f"python -m {module} --model /srv/models/{model} --port {8000 + number} --seed {number * 7919}"
    for number, (module, model) in enumerate(
        (module, model)
        for module in ("vllm.entrypoints.openai.api_server", "sglang.launch_server")
        for model in (
            "Qwen3-32B-AWQ",
            "Llama-3.3-70B-Instruct",
            "gemma-3-27b-it",
            "Mistral-Small-24B",
            "gpt-oss-120b",
        )
    )
]


def bench_record_size(bench: Bench) -> None:
    """bytes a process row, 8 cards and 200 processes of 10 programs: as it is, gzipped alone, .zst of 20 lines"""
    import zstandard

    lines = 20
    with ExitStack() as stack:
        pids: list[int] = []
        for program in PROGRAMS:
            argv = ("bash", "-c", f"exec -a '{program}' sleep 3600")
            pids += stack.enter_context(Crowd(PROCESSES // len(PROGRAMS), argv))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        environ = environment(machine(CARDS, pids).environment(Path(folder)))
        path = Path(folder) / "rec.jsonl"
        output_of([*installed("gpusnap"), "record", str(path), "--every", "20ms", "--count", str(lines)], environ)
        recording = path.read_bytes()
    last = recording.splitlines(keepends=True)[-1]
    if recording.count(b"\n") != lines or last.count(b'"start_ticks"') != PROCESSES or last.count(b"--seed") < 180:
        raise Failed(f"{len(recording)} bytes, not {lines} lines of {PROCESSES} processes")
    bench.bound("a row", len(last) / PROCESSES, at_most=1300, unit="bytes")
    bench.bound("a row, gzipped", len(gzip.compress(last)) / PROCESSES, at_most=110, unit="bytes")
    packed = zstandard.compress(recording)
    bench.bound("a row in the .zst", len(packed) / PROCESSES / lines, at_most=30, unit="bytes")
