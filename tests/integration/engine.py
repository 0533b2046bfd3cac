"""A real llama.cpp on a real model: what it is told, and the log that it writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration.setup_real import ENGINE, ENGINE_READY, GEMMA, node

SCRIPT = Path(__file__).parent / "engine.mjs"
MODULE = ENGINE / "node_modules" / "node-llama-cpp" / "dist" / "index.js"


REFUSED = "=== refused"


class Logs(NamedTuple):
    """The lines of loading the model, and of each context; one that the engine refused ends in a line REFUSED."""

    model: list[str]
    contexts: list[list[str]]


def real_model() -> Path:
    return _there(GEMMA)


def run_engine(contexts: list[dict[str, Any]]) -> Logs:
    """One process: the model is loaded once. `contexts` are options of node-llama-cpp's createContext."""
    _there(ENGINE_READY)
    argv = [node(), str(SCRIPT), str(MODULE), str(real_model()), json.dumps(contexts)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    parts: list[list[str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("=== ") and not line.startswith(REFUSED):
            parts.append([])
        elif parts:
            parts[-1].append(line)
    assert done.stdout.rstrip().endswith("=== end"), done.stdout[-2000:] + done.stderr[-2000:]
    return Logs(parts[0], parts[1:-1])


def _there(path: Path) -> Path:
    """Never skipped: a test that needs a part fails without it."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: make integration fetches it")
    return path
