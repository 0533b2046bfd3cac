"""`diff` of two snapshots with 10,000 process rows beside loading both with orjson."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from gpusnap.codec import dumps
from tests.bench.measure import Failed, environment, installed, output_of
from tests.builders import GIB, MIB, START, adapter, process, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Snapshot
    from tests.bench.report import Bench

ROWS, CARDS = 10_000, 8
# In every 100 rows: this many exit, as many appear, and this many hold more memory than before.
GONE, GROWN = 5, 10

IN_ONE_PROCESS = """
import json, sys, time
import orjson
from gpusnap.codec_read import Reader
from gpusnap.diff import diff
before, after = (open(path, "rb").read() for path in sys.argv[1:3])
def load():
    return orjson.loads(before), orjson.loads(after)
def compare():
    return diff(Reader("before").read(before), Reader("after").read(after))
def cost(work):
    start = time.process_time()
    work()
    return time.process_time() - start
compare(), load()
print(json.dumps([(cost(load), cost(compare)) for _ in range(int(sys.argv[3]))]))
"""
ONLY_LOADING = "import sys, orjson; kept = [orjson.loads(open(path, 'rb').read()) for path in sys.argv[1:]]"


def machine(later: bool) -> Snapshot:
    """Workers of many runs; in the later one some are gone, new or grown, half of them moved."""
    rows = []
    for number in range(ROWS):
        place = number % 100
        new_run = later and place < GONE
        grown = later and GONE <= place < GONE + GROWN
        words = [
            "/opt/venv/bin/python",
            "-m",
            "torch.distributed.run",
            "--config",
            f"/runs/{number:05}/train.yaml",
        ]
        rows.append(
            process(
                10_000 + number + (100_000 if new_run else 0),
                (number % 7 + 1) * MIB + (MIB if grown else 0),
                on=number % CARDS,
                start_ticks=400_000 + number,
                name="python",
                cmdline=words,
                busy=number % 100,
                leaves={"rss_bytes": number * 4096 + (8192 if later and number % 2 else 0), "spill_bytes": 0},
            )
        )
    cards = [adapter(number, total=80 * GIB, used=(60 + later) * GIB) for number in range(CARDS)]
    return snapshot(cards, rows, at=START + 600 * later, uptime=86_400.0 + 600 * later)


def bench_diff(bench: Bench) -> None:
    """two snapshots of 10,000 process rows on 8 cards"""
    environ = environment()
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("before.json", "after.json")]
        sizes = [
            Path(path).write_bytes(dumps(machine(later))) for path, later in zip(paths, (False, True), strict=True)
        ]
        bench.note(f"{sizes[0] / 1e6:.1f} and {sizes[1] / 1e6:.1f} MB of JSON")
        check([*installed("gpusnap"), "diff", *paths, "--json"], environ)
        argv = [sys.executable, "-c", IN_ONE_PROCESS, *paths, str(bench.rounds)]
        costs = json.loads(output_of(argv, environ))
        loading, comparing = (median(column) for column in zip(*costs, strict=True))
        bench.note(
            f"orjson loads both in {loading * 1e3:.0f} ms, reading strictly and comparing {comparing * 1e3:.0f} ms"
        )
        ratio = median(each / load for load, each in costs)
        bench.bound("CPU beside loading both, in one process", ratio, at_most=3, aim=2)
        commands = {
            "gpusnap diff --json": [*installed("gpusnap"), "diff", *paths, "--json"],
            "gpusnap diff": [*installed("gpusnap"), "diff", *paths],
            "orjson.loads of both": [sys.executable, "-c", ONLY_LOADING, *paths],
        }
        as_json, as_text, loaded = bench.side_by_side(commands, environ).values()
        memory = [one.peak_mib / loaded.peak_mib for one in (as_json, as_text)]
        bench.note(f"peak memory beside loading both: {memory[0]:.2f} × as JSON, {memory[1]:.2f} × as text")


def check(argv: list[str], environ: dict[str, str]) -> None:
    """What is measured must be the right answer."""
    counts: dict[str, int] = {}
    for row in json.loads(output_of(argv, environ))["processes"]:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    gone, grown = ROWS * GONE // 100, ROWS * GROWN // 100
    if counts != {"exited": gone, "appeared": gone, "changed": grown, "same": ROWS - gone - grown}:
        raise Failed(f"the difference is {counts}")
