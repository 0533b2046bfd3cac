"""The lines that `ollama serve` writes itself (Go's logfmt), between those of its runners.

Its own engine (2024-11 on) logs sizes rounded to a tenth: `msg="kv cache" device=CUDA0 size="936.0 MiB"`.
`memory.required.*` is what its scheduler predicts before loading and is left alone: a projection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpusnap.llm.logs.load import number

if TYPE_CHECKING:
    from gpusnap.llm.logs.reader import Reader

_LINE = re.compile(r'time=\S{1,40} level=\w{1,8} (?:source=\S{1,64} )?msg="([^"]{1,128})"(.*)$')
_WHERE = re.compile(r" (?:device|buffer|buffer_type)=(\S{1,64})")
_SIZE = re.compile(r' size="?(\d{1,9}(?:\.\d{1,3})?) ?([KMGT]?i?B)"?')
_OFFLOADED = re.compile(r"offloaded (\d{1,6})/(\d{1,6}) layers to GPU$")
_PORT = re.compile(r"--port[ =](\d{1,5})\b")
_MODEL = re.compile(r"--model[ =](\S{1,1024})")
_PARTS = {"model weights": "weights", "kv cache": "kv", "compute graph": "compute"}
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def take(reader: Reader, text: str) -> None:
    found = _LINE.match(text)
    if found is None:
        return
    message, rest = found[1], found[2]
    if message.startswith("starting ") and "cmd=" in rest:
        port, model = _PORT.search(rest), _MODEL.search(rest)
        if model is not None:
            reader.runner(int(port[1]) if port else None, model[1])
    elif message in _PARTS:
        _take_size(reader, _PARTS[message], rest)
    else:
        offloaded = _OFFLOADED.match(message)
        if offloaded is not None:
            models = reader.load("").models
            if models:
                models[-1].offloaded = (int(offloaded[1]), int(offloaded[2]))


def _take_size(reader: Reader, part: str, rest: str) -> None:
    where, size = _WHERE.search(rest), _SIZE.search(rest)
    unit = _UNITS.get(size[2]) if size else None
    if where is None or size is None or unit is None:
        return
    nbytes = round(number(size[1]) * unit)
    if part == "weights":
        reader.weights("", where[1], nbytes)
    else:
        reader.buffer("", part, where[1], nbytes)
