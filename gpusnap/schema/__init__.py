"""The JSON Schema of each document, as shipped: what `--schema` prints.

The files beside this one are generated from `model.py` (`python -m gpusnap.schema.generate`) and checked in, so
that printing one imports nothing; a test holds them to the types.
"""

from __future__ import annotations

import os

NAMES = ("snapshot", "diff", "explanation", "summary")


def path(name: str) -> str:
    """Where the schema of `snapshot`, `diff`, `explanation` or `summary` stands."""
    if name not in NAMES:
        raise ValueError(f"no schema is called {name!r}, expected one of {', '.join(NAMES)}")
    return os.path.join(os.path.dirname(__file__), name + ".json")


def text(name: str) -> str:
    with open(path(name), encoding="utf-8") as stream:
        return stream.read()
