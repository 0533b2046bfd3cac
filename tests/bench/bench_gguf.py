"""The header of a real model beside `gguf.GGUFReader`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.bench.measure import Failed, environment, output_of
from tests.integration.setup_real import GEMMA

if TYPE_CHECKING:
    from tests.bench.report import Bench

OURS = """
import sys
from gpusnap.live import LiveTree
from gpusnap.llm.gguf_cursor import TreeSource
from gpusnap.llm.gguf_header import read_header
print(len(read_header(TreeSource(LiveTree("/"), sys.argv[1][1:])).tensors))
"""
THEIRS = "import sys, gguf; print(len(gguf.GGUFReader(sys.argv[1]).tensors))"
OURS_IMPORTED = "import gpusnap.live, gpusnap.llm.gguf_header"
THEIRS_IMPORTED = "import gguf"
ROUNDS = 3  # of a command that takes ten seconds and more


def bench_gguf_header(bench: Bench) -> None:
    """header of Gemma 3 270M: 262,144 tokens, 236 tensors"""
    if not GEMMA.exists():
        raise Failed(f"{GEMMA} is missing: python -m tests.integration.setup_real")
    environ = environment()
    commands = {
        "gpusnap.llm": [sys.executable, "-c", OURS, str(GEMMA)],
        "gguf.GGUFReader": [sys.executable, "-c", THEIRS, str(GEMMA)],
        "gpusnap.llm imported": [sys.executable, "-c", OURS_IMPORTED],
        "gguf imported": [sys.executable, "-c", THEIRS_IMPORTED],
    }
    counts = {output_of(commands[name], environ).strip() for name in ("gpusnap.llm", "gguf.GGUFReader")}
    if counts != {"236"}:
        raise Failed(f"the readers find {counts} tensors")
    ours, theirs, ours_start, theirs_start = bench.side_by_side(commands, environ, ROUNDS).values()
    bench.bound("peak memory, the interpreter included", ours.peak_mib, at_most=40, unit="MiB")
    whole = ours.cpu_ms / theirs.cpu_ms
    bench.bound("CPU of the whole process beside GGUFReader's", whole * 1000, at_most=10, unit="thousandths")
    reading = (ours.cpu_ms - ours_start.cpu_ms) / (theirs.cpu_ms - theirs_start.cpu_ms)
    bench.bound("CPU of the reading alone", reading * 1000, at_most=10, aim=5, unit="thousandths")
