"""`gpusnap explain` of a process with a real model beside a bare `gpusnap snap` of the same machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Failed, environment, installed, output_of
from tests.integration.setup_real import GEMMA
from tests.standin import Card, Proc, Scenario

if TYPE_CHECKING:
    from tests.bench.report import Bench

GIB = 1 << 30


def bench_explain_model(bench: Bench) -> None:
    """explain of a llama-server with Gemma 3 270M (262,144 tokens), whole command"""
    if not GEMMA.exists():
        raise Failed(f"{GEMMA} is missing: python -m tests.integration.setup_real")
    # A stand-in for the server: its name and flags, no interface that could answer.
    argv = ["llama-server", "-c", "import time; time.sleep(900)", "-m", str(GEMMA), "-ngl", "99", "-c", "4096"]
    with (
        subprocess.Popen(argv, executable=sys.executable) as process,
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            card = Card(processes=[Proc(process.pid, GIB)], used=2 * GIB)
            environ = environment(Scenario([card]).environment(Path(folder)))
            explain = [*installed("gpusnap"), "explain", f"pid:{process.pid}"]
            figures = json.loads(output_of([*explain, "--json"], environ))["figures"]
            found = {figure["field"]: figure["value"] for figure in figures}
            if found.get("model.parameters") != 268_098_176:
                raise Failed(f"explain finds {found.get('model.parameters')} parameters")
            commands = {
                "gpusnap snap --no-models": [*installed("gpusnap"), "snap", "--no-models"],
                "explain": explain,
            }
            bare, explained = bench.side_by_side(commands, environ).values()
        finally:
            process.kill()
    bench.bound("CPU of explain beside a bare snap", explained.cpu_ms / bare.cpu_ms, at_most=2.0)
