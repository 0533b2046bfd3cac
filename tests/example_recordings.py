"""The recordings under examples/, made from hand-set facts: `python -m tests.example_recordings` writes them.

TRUTH says what each one shows; a test holds `explain` to it and the files to this script.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.builders import GIB, MIB, START, adapter, process, recording, snapshot
from tests.builders import SOURCE as BUILT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.model import Snapshot

FOLDER = Path(__file__).resolve().parent.parent / "examples"
EVENING = START - 14 * 3600  # 2026-11-29T22:00:00Z

# 20 cycles of 24 minutes; each leaves 284 to 301 MiB behind; the machine slept from 04:10Z to 04:25Z.
TRUTH: dict[str, dict[str, Any]] = {
    "step-leak.jsonl.gz": {"verdict": "step-leak", "pid": 882, "cycles": 20, "gaps": 1, "unknown": 3},
    "sawtooth.jsonl.gz": {"verdict": "sawtooth", "pid": 6001, "cycles": 12, "gaps": 0, "unknown": 0},
    "idle-but-full.jsonl.gz": {"verdict": "plateau", "pid": 9811, "cycles": 0, "gaps": 0, "unknown": 0},
}


def step_leak() -> Iterator[Snapshot]:
    """ollama on one card, eight hours at a sample a minute: minima rise, peaks are level."""
    rng = random.Random(290)
    lost = [rng.randrange(284, 302) * MIB for _ in range(20)]
    for number, step in enumerate(step for step in range(480) if not 371 <= step < 385):
        cycle, phase = divmod(step, 24)
        loaded = 2 <= phase < 10
        done = cycle + (phase >= 10)
        held = 900 * MIB + sum(lost[:done])
        peak = 11_500 * MIB + rng.randrange(0, 8) * MIB
        ollama = peak if loaded else held
        desktop = 430 * MIB + rng.randrange(0, 6) * MIB
        used: int | str = ollama + desktop + 90 * MIB
        if step in (101, 102, 250):
            used = "null:device-busy NVML_ERROR_IN_USE"
        card = adapter(
            total=16 * GIB,
            used=used,
            busy=rng.randrange(88, 99) if loaded else 0,
            leaves={
                "load.memory_bandwidth_percent": rng.randrange(60, 75) if loaded else 0,
                "temperature.gpu_celsius": rng.randrange(66, 72) if loaded else rng.randrange(41, 45),
                "power.draw_watts": rng.randrange(240, 290) if loaded else rng.randrange(22, 27),
            },
        )
        rows = [
            process(
                882, ollama, name="ollama", user="ollama", uid=998, category="llm", systemd_unit="ollama.service"
            ),
            process(2210, desktop, name="kwin_wayland", category="desktop", type="graphics"),
        ]
        if 60 <= step < 66:
            rows.append(process(5150, 0, name="python3", user="alice", start_ticks=8_000_000))
        missed = 14 if step == 385 else 0
        yield snapshot(
            [card],
            rows,
            at=EVENING + 60 * step,
            uptime=90_000.0 + 60 * step,
            hostname="desk",
            recording=recording(number + 1, writer=700, missed=missed),
        )


def sawtooth() -> Iterator[Snapshot]:
    """ComfyUI, six hours at a sample each 90 seconds: twelve workflows, everything comes back."""
    rng = random.Random(12)
    for step in range(240):
        phase = step % 20
        working = 4 <= phase < 15
        held = 2600 * MIB + (rng.randrange(15_000, 15_400) * MIB if working else rng.randrange(0, 5) * MIB)
        card = adapter(
            total=24 * GIB,
            used=held + 300 * MIB,
            busy=rng.randrange(90, 100) if working else 0,
            model="NVIDIA GeForce RTX 3090",
            leaves={"temperature.gpu_celsius": 74 if working else 48},
        )
        row = process(
            6001,
            held,
            name="python3",
            category="ai",
            cmdline=["python3", "/srv/ComfyUI/main.py", "--listen"],
            cwd="/srv/ComfyUI",
            runtimes=["cuda", "pytorch"],
        )
        yield snapshot(
            [card],
            [row],
            at=START + 90 * step,
            uptime=500_000.0 + 90 * step,
            hostname="studio",
            recording=recording(step + 1, writer=811),
        )


def idle_but_full() -> Iterator[Snapshot]:
    """Two cards of a shared server, a day at a sample each five minutes: one works, one is held by orphans."""
    rng = random.Random(7)
    for step in range(288):
        busy_card = adapter(
            6,
            total=80 * GIB,
            used=61 * GIB + rng.randrange(0, 900) * MIB,
            busy=rng.randrange(70, 100),
            model="NVIDIA A100-SXM4-80GB",
        )
        idle_card = adapter(7, total=80 * GIB, used=73 * GIB, busy=0, model="NVIDIA A100-SXM4-80GB")
        rows = [process(31_000, 60 * GIB, on=6, name="python", user="alice", cmdline=["python", "train.py"])]
        rows += [
            process(
                pid,
                9290 * MIB,
                on=7,
                name="VLLM::Worker",
                user="bob",
                uid=1001,
                ppid=1,
                category="llm",
                cmdline=["VLLM::Worker"],
                start_ticks=1_152_000 + pid,
            )
            for pid in range(9811, 9819)
        ]
        yield snapshot(
            [busy_card, idle_card],
            rows,
            at=START + 300 * step,
            uptime=100_000.0 + 300 * step,
            hostname="node12",
            recording=recording(step + 1, writer=1200),
        )


RECORDINGS = {
    "step-leak.jsonl.gz": step_leak,
    "sawtooth.jsonl.gz": sawtooth,
    "idle-but-full.jsonl.gz": idle_but_full,
}


# What NVML says of these figures, so that the examples name sources as a real recording does.
SOURCES = {
    "memory.": "measured:nvml.MemoryInfo_v2",
    "load.": "measured:nvml.UtilizationRates",
    "temperature.": "measured:nvml.Temperature",
    "power.": "measured:nvml.PowerUsage",
    "vram_bytes": "measured:nvml.ComputeRunningProcesses",
}


def sourced(document: Snapshot) -> Snapshot:
    for entry in document["provenance"]:
        for leaf, source in entry.items():
            if source == BUILT:
                entry[leaf] = next((named for start, named in SOURCES.items() if leaf.startswith(start)), source)
    return document


def packed(documents: Iterator[Snapshot]) -> bytes:
    """The same bytes each time: no name and no time in the header."""
    lines = [json.dumps(sourced(document), separators=(",", ":"), ensure_ascii=False) for document in documents]
    return gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0)


def main() -> None:
    for name, make in RECORDINGS.items():
        (FOLDER / name).write_bytes(packed(make()))


if __name__ == "__main__":
    main()
