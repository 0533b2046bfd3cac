"""Writes `examples/before-load.json` and `after-load.json`: the example desktop around the load of a model.

    python -m tests.example_snapshots

After is the example machine, its server started a minute ago; before is the same machine without that server and
with a smaller firefox. Both are taken by gpusnap itself. `make golden` writes them anew.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions

ROOT = Path(__file__).parents[1]
MACHINE = ROOT / "examples/machines/rtx4080-desktop"
FILES = {"before": ROOT / "examples/before-load.json", "after": ROOT / "examples/after-load.json"}

SERVER, FIREFOX = 4711, 3120
# 0.69 GiB; the machine's own figure is 0.79.
FIREFOX_BEFORE = 744_488_960
BETWEEN_SECONDS = 250
# So long before the second snapshot the server was started.
SERVER_AGE_SECONDS = 60
LISTS = ("nvmlDeviceGetComputeRunningProcesses_v3 0", "nvmlDeviceGetGraphicsRunningProcesses_v3 0")
SAMPLES = "nvmlDeviceGetProcessUtilization 0"
MEMORY = "nvmlDeviceGetMemoryInfo_v2 0"


def documents() -> dict[str, bytes]:
    """The text of both files."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: _taken(name, Path(folder)) for name in FILES}


def _taken(name: str, folder: Path) -> bytes:
    machine = json.loads((MACHINE / "machine.json").read_text())
    nvml = json.loads((MACHINE / "nvml.json").read_text())
    tree = _with_young_server((MACHINE / "tree.txt").read_text(), machine["uptime"])
    if name == "before":
        machine["wall_time"] -= BETWEEN_SECONDS
        machine["uptime"] -= BETWEEN_SECONDS
        tree = re.sub(rf"(?ms)^--- proc/{SERVER}/.*?(?=^--- (?!proc/{SERVER}/))", "", tree)
        _before_load(nvml["calls"], int(machine["wall_time"] * 1e6))
    for file, text in (("machine.json", machine), ("nvml.json", nvml)):
        (folder / file).write_text(json.dumps(text))
    (folder / "tree.txt").write_text(tree)
    options = CollectOptions(window=0.0, labels={"step": f"{name}-load"})
    document = collect(CapturedHost(folder), options)
    # How long it took is the one thing that differs from run to run.
    document["duration_seconds"] = 0.0
    return dumps(document, indent=True) + b"\n"


def _with_young_server(tree: str, uptime: float) -> str:
    """Field 22 of its stat is the start, in ticks of 1/100 s."""
    started = round((uptime - SERVER_AGE_SECONDS) * 100)
    pattern = rf"(?m)^({SERVER} \(llama-server\) (?:\S+ ){{19}})\d+"
    young, count = re.subn(pattern, rf"\g<1>{started}", tree)
    assert count == 1
    return young


def _before_load(calls: dict[str, Any], now: int) -> None:
    """Without the server and with a smaller firefox; used and free follow."""
    freed = 0
    for name in LISTS:
        for row in calls[name]:
            if row["pid"] == SERVER:
                freed += row["usedGpuMemory"]
            elif row["pid"] == FIREFOX:
                freed += row["usedGpuMemory"] - FIREFOX_BEFORE
                row["usedGpuMemory"] = FIREFOX_BEFORE
        calls[name] = [row for row in calls[name] if row["pid"] != SERVER]
    calls[MEMORY]["used"] -= freed
    calls[MEMORY]["free"] += freed
    calls[SAMPLES] = [row | {"timeStamp": now - 400_000} for row in calls[SAMPLES] if row["pid"] != SERVER]
    calls["nvmlDeviceGetUtilizationRates 0"] = {"gpu": 3, "memory": 2}
    calls["nvmlDeviceGetPowerUsage 0"] = 31_870
    calls["nvmlDeviceGetTemperature 0 0"] = 44
    calls["nvmlDeviceGetTotalEnergyConsumption 0"] -= 45_000_000


def main() -> None:
    for name, data in documents().items():
        FILES[name].write_bytes(data)


if __name__ == "__main__":
    main()
