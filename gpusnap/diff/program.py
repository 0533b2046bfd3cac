"""The same program again: what an exited and an appeared row have in common when no pid can tell.

Weaker than identity on purpose, so it is only used where it was asked for (`--match program`) and to put two
command lines side by side (ggml-org/llama.cpp#23446: the same server with other cache types).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpusnap.model import Process

    Program = tuple[str, str]

# Programs that are a language: which program runs is their script's name.
_INTERPRETERS = frozenset(
    ("python", "pypy", "node", "java", "ruby", "perl", "bash", "sh", "julia", "lua", "rscript")
)
# Options of interpreters whose next word is the program (`python -m`, `java -jar`).
_NAMES_PROGRAM = frozenset(("-m", "-jar"))
# Options that take a word which is not the program.
_TAKES_WORD = frozenset(("-W", "-X", "-cp", "-classpath", "--require", "-r"))


def program_of(row: Process) -> Program | None:
    """(program, script or empty); None where nothing says what it is."""
    words = row["cmdline"] or []
    path = row["exe"] or (words[0] if words else None) or row["name"]
    if not path:
        return None
    name = _base(path.removesuffix(" (deleted)"))
    bare = name.rstrip("0123456789.").lower()
    if bare not in _INTERPRETERS:
        return name, ""
    # A program may write its own title over its command line (`VLLM::Worker_TP0`).
    return bare, _script(words[1:]) or row["name"] or ""


def pair_programs(gone: Iterable[Process], come: Iterable[Process]) -> list[tuple[Process, Process]]:
    """Pairs of the same program and user; equal command lines first, then the largest with the largest."""
    waiting = _by_program(come)
    pairs = []
    for key, leavers in _by_program(gone).items():
        comers = waiting.get(key, [])
        pairs += _take_pairs(leavers, comers, same_words=True)
        pairs += _take_pairs(leavers, comers, same_words=False)
    return pairs


def _by_program(rows: Iterable[Process]) -> dict[tuple[Program, str | int], list[Process]]:
    """Rows by program and user, the largest first; rows that leave either open are nobody's."""
    groups: dict[tuple[Program, str | int], list[Process]] = {}
    for row in rows:
        program = program_of(row)
        user = row["user"] if row["user"] is not None else row["uid"]
        if program is not None and user is not None:
            groups.setdefault((program, user), []).append(row)
    for group in groups.values():
        group.sort(key=_largest_first)
    return groups


def _take_pairs(gone: list[Process], come: list[Process], *, same_words: bool) -> list[tuple[Process, Process]]:
    """Pairs, taken out of both lists."""
    pairs = []
    for old in list(gone):
        new = next((row for row in come if not same_words or row["cmdline"] == old["cmdline"]), None)
        if new is not None:
            gone.remove(old)
            come.remove(new)
            pairs.append((old, new))
    return pairs


def _largest_first(row: Process) -> tuple[int, int]:
    vram = row["vram_bytes"]
    return (1 if vram is None else -vram), row["pid"]


def _script(words: Sequence[str]) -> str:
    takes_word = False
    for position, word in enumerate(words):
        if takes_word:
            takes_word = False
        elif word in _NAMES_PROGRAM:
            return words[position + 1] if position + 1 < len(words) else ""
        elif word in ("-c", "-e"):
            return word
        elif word in _TAKES_WORD:
            takes_word = True
        elif not word.startswith("-"):
            return _base(word)
    return ""


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2] or path
