"""Model files of 73 architectures, and what a real llama.cpp (ggml 0.25.3, CPU) allocated for each.

`tests/data/llm_architectures.jsonl`: the first line holds the six settings (A to F) and the keys that most
files share, each other line one file: the keys in which it differs, its tensors (all F32), and the sizes in MiB
that the engine logged for KV cache, recurrent state and model buffer. The files come from llama.cpp's own test
program: their dimensions are tiny, the rules are those of the real models.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

from gpusnap.llm.gguf_header import BytesSource, Header, read_header
from tests.unit.llm.gguf_files import write_with_package

DATA = Path(__file__).parents[2] / "data" / "llm_architectures.jsonl"
MIB = 1 << 20


class Load(NamedTuple):
    """One start of the engine: its settings, and what it logged, in MiB."""

    settings: dict[str, Any]
    kv: float
    state: float
    model: float


class Model(NamedTuple):
    name: str
    architecture: str
    values: dict[str, Any]
    tensors: list[tuple[str, list[int], int]]
    tensor_bytes: int
    loads: dict[str, Load]


@functools.cache
def models() -> dict[str, Model]:
    lines = DATA.read_text().splitlines()
    shared = json.loads(lines[0])
    return {model.name: model for model in map(_model, lines[1:], [shared] * len(lines))}


def _model(line: str, shared: dict[str, Any]) -> Model:
    entry = json.loads(line)
    values = shared["common"] | entry["header"]
    architecture = entry["architecture"]
    return Model(
        entry["name"],
        architecture,
        {key.replace("{arch}", architecture): value for key, value in values.items()},
        [(name, [int(size) for size in dims.split("x")], 0) for name, dims in map(str.split, entry["tensors"])],
        entry["tensor_bytes"],
        {letter: Load(shared["settings"][letter], *sizes) for letter, sizes in entry["loads"].items()},
    )


@functools.cache
def header_of(name: str, folder: Path) -> Header:
    """The header as our reader finds it in a file that the `gguf` package wrote."""
    model = models()[name]
    path = folder / f"{name}.gguf"
    write_with_package(path, model.architecture, model.values, model.tensors)
    return read_header(BytesSource(path.read_bytes()))


def loads() -> list[tuple[str, str]]:
    return [(model.name, letter) for model in models().values() for letter in model.loads]
