"""Public logs and what they state, by id (`tests/data/llm`): layouts of 2024 to 2026, eight kinds of devices."""

from __future__ import annotations

import csv
from pathlib import Path

from gpusnap.llm.logs.lines import Line, memory_lines

_FOLDER = Path(__file__).parents[2] / "data" / "llm"


def log(name: str) -> bytes:
    for part in ("\n" + (_FOLDER / "logs.txt").read_text(encoding="utf-8")).split("\n=== ")[1:]:
        title, _, body = part.partition("\n")
        if title == name:
            return body.encode()
    raise KeyError(name)


def names() -> list[str]:
    text = (_FOLDER / "logs.txt").read_text(encoding="utf-8")
    return [line[4:] for line in text.splitlines() if line.startswith("=== ")]


def lines(name: str) -> list[Line]:
    return memory_lines(log(name))


def values() -> list[dict[str, str]]:
    with (_FOLDER / "log-values.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
