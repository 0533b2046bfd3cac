"""Document -> bytes: one compact line of strict JSON, the same from either encoder.

A single small snapshot is written by Python's own `json`, because importing orjson costs more than it saves
there (measured: 40 ms of import); many or large documents are written by orjson. A test holds both to the
same bytes. NaN is refused by either; that no integer passes 2^53, which jq and JavaScript would change silently,
is seen to where numbers are read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# From about this many rows on, orjson's speed pays for its import.
_MANY_ROWS = 2000


def dumps(document: Mapping[str, object], *, indent: bool = False) -> bytes:
    """One JSON object as UTF-8, compact (or indented by two for a terminal), without a final newline."""
    processes = document.get("processes")
    many = isinstance(processes, list) and len(processes) >= _MANY_ROWS
    if "orjson" in sys.modules or many:
        import orjson

        option = orjson.OPT_STRICT_INTEGER | (orjson.OPT_INDENT_2 if indent else 0)
        return orjson.dumps(document, option=option)
    import json

    text = json.dumps(
        document,
        ensure_ascii=False,
        allow_nan=False,
        check_circular=False,
        separators=(",", ": ") if indent else (",", ":"),
        indent=2 if indent else None,
    )
    return text.encode()
