"""A recording of any size for measuring: `python -m tests.large_recording OUT MEGABYTES [CARDS ROWS]`.

Figures change from line to line, processes come and go, one of them leaks; lines are made by filling in a
template, so that a gigabyte takes a few seconds.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from gpusnap.timefmt import rfc3339
from tests.builders import GIB, MIB, START, adapter, process, snapshot


def write(path: Path, megabytes: float, *, cards: int = 1, rows: int = 4) -> int:
    """Samples each ten seconds until the file is large enough; returns how many."""
    rng = random.Random(1)
    per_card = rows // cards
    template: Any = snapshot(
        [adapter(index, total=80 * GIB, used=0) for index in range(cards)],
        [process(0, 0, on=index, name="worker") for index in range(cards) for _ in range(per_card)],
    )
    size, step, goal = 0, 0, megabytes * 1_000_000
    with path.open("w", encoding="utf-8") as stream:
        while size < goal:
            template["taken_at"] = rfc3339(START + 10 * step)
            template["uptime_seconds"] = 1000.0 + 10 * step
            template["recording"] = {"writer_pid": 7, "sequence": step + 1, "missed_ticks": 0, "late_seconds": 0.0}
            held = [0] * cards
            for number, row in enumerate(template["processes"]):
                index = number // per_card
                generation = step // 500 if number % per_card else 0
                row["pid"] = 1000 + number + 10_000 * (generation % 50)
                row["start_ticks"] = 100 * generation
                row["vram_bytes"] = GIB // per_card + rng.randrange(64) * MIB
                if number == 0:
                    row["vram_bytes"] = GIB + min(60 * GIB, step * MIB // 4)
                held[index] += row["vram_bytes"]
            for index, card in enumerate(template["adapters"]):
                card["memory"]["used_bytes"] = held[index] + 300 * MIB
                card["memory"]["free_bytes"] = 80 * GIB - held[index] - 300 * MIB
                card["accounting"]["attributed_bytes"] = held[index]
                card["accounting"]["unattributed_bytes"] = 300 * MIB
                card["load"]["gpu_percent"] = rng.choice((0, 0, 40, 90))
            line = json.dumps(template, separators=(",", ":"))
            stream.write(line + "\n")
            size += len(line) + 1
            step += 1
    return step


if __name__ == "__main__":
    shape = [int(word) for word in sys.argv[3:5]] or [1, 4]
    count = write(Path(sys.argv[1]), float(sys.argv[2]), cards=shape[0], rows=shape[1])
    sys.stdout.write(f"{count} samples\n")
