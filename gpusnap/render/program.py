"""What a person would call a process: the program, not the thread name that the kernel keeps.

`comm` is cut at 15 characters and may say `RDD Process` for firefox (amdgpu_top#4) or `python3` for everything; a
title that the program set itself (`VLLM::Worker_TP0`) says more than its interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INTERPRETERS = ("python", "pypy", "node", "java", "ruby", "perl", "bash", "sh", "dash")
_ONE_MORE_WORD = frozenset({"-W", "-X", "-c", "-r", "--require"})


def program_of(row: Mapping[str, object]) -> str | None:
    """The program of a process row: the script of an interpreter, else the executable, else `comm`."""
    name = row.get("name")
    exe = row.get("exe")
    words = row.get("cmdline")
    argv = [str(word) for word in words] if isinstance(words, list) else []
    base = _base(str(exe)) if exe is not None else (_base(argv[0]) if argv else "")
    if isinstance(name, str) and "::" in name:
        return name
    if _is_interpreter(base):
        if argv and not _is_interpreter(_base(argv[0])):
            return str(name) if name is not None else _base(argv[0])
        return _script(argv[1:]) or base
    return base or (str(name) if name is not None else None)


def _base(path: str) -> str:
    return path.removesuffix(" (deleted)").rstrip("/").replace("\\", "/").rpartition("/")[2]


def _is_interpreter(base: str) -> bool:
    stem = base.rstrip("0123456789.")
    return stem in _INTERPRETERS


def _script(words: Sequence[str]) -> str | None:
    """`-m vllm.entrypoints` -> `vllm.entrypoints`; `/srv/train.py --x` -> `train.py`."""
    skip = False
    for number, word in enumerate(words):
        if skip:
            skip = False
        elif word == "-m" and number + 1 < len(words):
            return words[number + 1]
        elif word in _ONE_MORE_WORD:
            skip = True
        elif not word.startswith("-"):
            return _base(word)
    return None
