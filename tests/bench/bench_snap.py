"""`gpusnap snap` beside `gpustat --json` and `nvitop -1` on the stand-in NVML, with real processes."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Crowd, Failed, built, dealt, environment, installed, output_of
from tests.standin import Card, Proc, Sample, Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.measure import Cost
    from tests.bench.report import Bench

GIB = 1 << 30
# `gpusnap snap` as `cli/start.py` runs it, with models or without: the option itself would load typer.
PLAIN_SNAP = """
import gc, sys
from gpusnap.cli.io import leave
from gpusnap.cli.snapping import SnapRequest, snap
from gpusnap.collect.options import CollectOptions
gc.disable()
leave(snap(SnapRequest(CollectOptions(models=sys.argv[1] == "on"))))
"""
# What the kernel alone takes to write the mappings of these processes as text, which is read once a process.
BARE_MAPS = """
import os, sys
for pid in sys.argv[1:]:
    maps = os.open(f"/proc/{pid}/maps", os.O_RDONLY)
    while os.read(maps, 1 << 18):
        pass
    os.close(maps)
"""


def machine(cards: int, pids: Sequence[int]) -> Scenario:
    """Every card holds its share of the processes, 512 MiB each, some of them busy."""
    found = []
    for hand in dealt(pids, cards):
        card = Card(processes=[Proc(pid, GIB // 2) for pid in hand], used=max(1, len(hand)) * GIB // 2 + GIB)
        card.samples = [Sample(pid, sm=10) for pid in hand[:4]]
        found.append(card)
    return Scenario(found)


def check(argv: Sequence[str], environ: Mapping[str, str], cards: int, processes: int) -> None:
    """What is measured must be the right answer."""
    document = json.loads(output_of(argv, environ))
    rows, adapters = document["processes"], document["adapters"]
    if len(rows) != processes or len(adapters) != cards:
        raise Failed(
            f"{len(adapters)} cards and {len(rows)} processes in the document, not {cards} and {processes}"
        )


def beside_peers(bench: Bench, cards: int, processes: int) -> dict[str, Cost]:
    with Crowd(processes) as pids, tempfile.TemporaryDirectory() as folder:
        environ = environment(machine(cards, pids).environment(Path(folder)))
        snap = [*installed("gpusnap"), "snap"]
        check(snap, environ, cards, processes)
        commands = {
            "gpusnap snap": snap,
            "gpustat --json": [*installed("gpustat"), "--json"],
            "nvitop -1": [*installed("nvitop"), "-1"],
        }
        return bench.side_by_side(commands, environ)


def bench_snap_1_card(bench: Bench) -> None:
    """1 card, 4 processes"""
    snap, gpustat, nvitop = beside_peers(bench, 1, 4).values()
    bench.bound("CPU beside gpustat", snap.cpu_ms / gpustat.cpu_ms, at_most=0.75, aim=0.35)
    bench.bound("CPU beside nvitop", snap.cpu_ms / nvitop.cpu_ms, at_most=0.95, aim=0.45)


def bench_snap_8_cards(bench: Bench) -> None:
    """8 cards, 200 processes"""
    snap, gpustat, nvitop = beside_peers(bench, 8, 200).values()
    bench.bound("CPU beside gpustat", snap.cpu_ms / gpustat.cpu_ms, at_most=0.65, aim=0.35)
    bench.bound("CPU beside nvitop", snap.cpu_ms / nvitop.cpu_ms, at_most=0.75, aim=0.4)
    bench.bound("wall beside gpustat", snap.wall_ms / gpustat.wall_ms, at_most=0.25, aim=0.15)


def bench_snap_models(bench: Bench) -> None:
    """8 cards, 200 processes of which 20 have 4,000 mappings: models on and off"""
    large = Crowd(20, (built("mappings"), "4000"), announced=True)
    with Crowd(180) as small, large as mapped, tempfile.TemporaryDirectory() as folder:
        pids = [*small, *mapped]
        environ = environment(machine(8, pids).environment(Path(folder)))
        snap = [sys.executable, "-c", PLAIN_SNAP]
        check([*snap, "on"], environ, 8, 200)
        commands = {
            "models on": [*snap, "on"],
            "models off": [*snap, "off"],
            "their maps, read": [sys.executable, "-c", BARE_MAPS, *map(str, pids)],
            "python": [sys.executable, "-c", "pass"],
        }
        on, off, maps, python = bench.side_by_side(commands, environ).values()
    kernel = maps.cpu_ms - python.cpu_ms
    bench.bound("CPU with models", on.cpu_ms / off.cpu_ms, at_most=1.5)
    bench.bound("the same, without what the maps take to read", (on.cpu_ms - kernel) / off.cpu_ms, at_most=1.25)
