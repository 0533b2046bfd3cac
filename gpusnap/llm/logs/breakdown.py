"""llama.cpp's memory breakdown tables, three wordings (`llama_print_memory_breakdown`, `llama_memory_...`,
`common_memory_...`): total = free + (self = model + context + compute) + unaccounted, whole MiB.

`--fit` prints them before anything is allocated, otherwise they come when the process ends: never a figure of a
running process, at best an estimate beside it. With `--log-jsonl` the same comes as an object, and at the default
verbosity it is all that a log says of sizes. `unaccounted` holds everything else on the card, other programs
too, and wraps in older builds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpusnap.llm.logs.load import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.llm.logs.lines import Line

_ROW = re.compile(
    r"(?:\w{1,64}: +)?\|? *- (?P<name>[\w-]{1,64})(?: \((?P<model>[^|]{0,128}?)\))? *[|:] *"
    r"(?:(?P<total>\d{1,9}) *= *(?P<free>\d{1,9}) *\+ *\( *(?P<self>\d{1,9}) *= *"
    r"|(?:\d{1,9} +)?(?P<host>\d{1,9}) *= *)"
    r"(?P<weights>\d{1,9}) *\+ *(?P<context>\d{1,9}) *\+ *(?P<compute>\d{1,9})"
    r"(?:\) *\+ *(?P<unaccounted>-?\d{1,20}))? *\|?$"
)


class Row(NamedTuple):
    device: str
    weights: int
    context: int
    compute: int
    total: int | None
    projected: bool
    """More is planned than is in use: nothing of it was allocated when the table was printed."""


def read(lines: Iterable[Line]) -> list[Row]:
    rows = []
    for line in lines:
        if line.text.startswith("{"):
            rows += _objects(line.text)
            continue
        found = _ROW.match(line.text)
        if found is not None:
            total = int(found["total"]) if found["total"] else None
            rest = int(found["unaccounted"]) if found["unaccounted"] else 0
            projected = rest < 0 or (total is not None and rest > total)
            weights, context, compute = (int(found[name]) * MIB for name in ("weights", "context", "compute"))
            total_bytes = total * MIB if total is not None else None
            rows.append(Row(found["name"], weights, context, compute, total_bytes, projected))
    return rows


def _objects(text: str) -> list[Row]:
    """`{"type":"fit_memory_breakdown","data":{"unit":"MiB","rows":[..]}}`; an odd row is left out."""
    import json

    try:
        data = json.loads(text).get("data")
    except (ValueError, AttributeError, RecursionError):
        return []
    found = data.get("rows") if isinstance(data, dict) and data.get("unit") == "MiB" else None
    rows = []
    for one in found if isinstance(found, list) else []:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        sizes = [one.get(key) for key in ("model", "context", "compute")]
        if all(type(size) is int and 0 <= size < 1 << 32 for size in sizes):
            weights, context, compute = (size * MIB for size in sizes if isinstance(size, int))
            rows.append(Row(one["name"], weights, context, compute, None, projected=True))
    return rows
