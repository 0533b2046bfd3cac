"""The same program again: what an exited and an appeared row have in common when no pid can tell.

Weaker than identity on purpose, so it is only used where it was asked for (`--match program`) and to put two
command lines side by side (ggml-org/llama.cpp#23446: the same server with other cache types).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gpusnap.render.program import program_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.model import Process

    # A program and whose it is.
    Key = tuple[str, str | int]


def pair_programs(gone: Iterable[Process], come: Iterable[Process]) -> list[tuple[Process, Process]]:
    """Pairs of the same program and user; equal command lines first, then the largest with the largest."""
    waiting = _by_program(come)
    pairs = []
    for key, leavers in _by_program(gone).items():
        by_words: dict[tuple[str, ...], deque[Process]] = {}
        for row in waiting.get(key, ()):
            by_words.setdefault(_words(row), deque()).append(row)
        left = []
        for row in leavers:
            same = by_words.get(_words(row))
            if same:
                pairs.append((row, same.popleft()))
            else:
                left.append(row)
        comers = sorted((row for rows in by_words.values() for row in rows), key=_largest_first)
        pairs += zip(left, comers, strict=False)
    return pairs


def _words(row: Process) -> tuple[str, ...]:
    return tuple(row["cmdline"] or ())


def _by_program(rows: Iterable[Process]) -> dict[Key, list[Process]]:
    """Rows by program and user, the largest first; rows that leave either open are nobody's."""
    groups: dict[Key, list[Process]] = {}
    for row in rows:
        program = program_of(row)
        user = row["user"] if row["user"] is not None else row["uid"]
        if program is not None and user is not None:
            groups.setdefault((program, user), []).append(row)
    for group in groups.values():
        group.sort(key=_largest_first)
    return groups


def _largest_first(row: Process) -> tuple[int, int]:
    vram = row["vram_bytes"]
    return (1 if vram is None else -vram), row["pid"]
