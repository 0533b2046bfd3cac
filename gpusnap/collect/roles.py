"""What a process does with the GPU, told by its program: (category, role). Pure; the data stands in `programs`.

Evidence in this order: a title that the program writes over its name (`VLLM::Worker`), the executable's name, what
an interpreter runs, where it was installed (Steam, Wine). A program that is not known is "unknown": a guess would
put bytes in the wrong account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.programs import (
    FRAMEWORKS,
    HELPER_TYPES,
    KERNEL_THREADS,
    OWN_OPTIONS,
    PROGRAMS,
    SCRIPTS,
    SUBCOMMANDS,
    TRAINING_WORDS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Class = tuple[str, str | None]

COMM_LENGTH = 15
_UNKNOWN = ("unknown", None)
_INTERPRETERS = ("python", "pypy", "node", "java", "ruby", "perl", "bash", "sh", "dash", "gunicorn", "uvicorn")
_SCRIPT_ENDS = (".py", ".pyc", ".js", ".mjs", ".jar", ".sh", ".rb", ".pl")
# python(1), node(1), java(1): options whose value is a word of its own.
_TAKES_VALUE = ("-X", "-W", "-cp", "-classpath", "--class-path", "-p", "--module-path", "-r", "--require")


class _Index:
    """PROGRAMS by name; built in a fraction of a millisecond."""

    __slots__ = ("cut", "exact", "places", "prefixes", "scripts", "starts", "windows")

    def __init__(self) -> None:
        self.exact: dict[str, Class] = {}
        self.cut: dict[str, Class] = {}
        self.windows: dict[str, Class] = {}
        self.prefixes: list[tuple[str, Class]] = []
        self.scripts: dict[str, Class] = {}
        self.places: list[tuple[str, Class]] = []
        for category, roles in PROGRAMS.items():
            for role, names in roles.items():
                for name in names.split(", "):
                    self._add(name, (category, role))
        self.starts = tuple(prefix for prefix, _ in self.prefixes)
        for category, role, evidence in SCRIPTS:
            for mark in evidence.split(", "):
                if mark.startswith("/"):
                    self.places.append((mark, (category, role)))
                else:
                    self.scripts[mark] = (category, role)

    def _add(self, name: str, found: Class) -> None:
        if name.endswith("*"):
            self.prefixes.append((name[:-1], found))
            return
        self.windows[name.lower().removesuffix(".exe")] = found
        if not name.endswith(".exe"):
            self.exact[name] = found
            self.cut[name[:COMM_LENGTH]] = found

    def find(self, name: str, *, cut: bool = False) -> Class | None:
        """`cut`: the name is a comm, of which the kernel keeps 15 characters."""
        found = self.exact.get(name)
        if found is None and cut and len(name) == COMM_LENGTH:
            found = self.cut.get(name)
        if found is None and name.lower().endswith(".exe"):
            found = self.windows.get(name.lower()[:-4])
        if found is None and name.startswith(self.starts):
            found = next((kind for prefix, kind in self.prefixes if name.startswith(prefix)), None)
        return found


_INDEX = _Index()


def classify(
    name: str | None,
    exe: str | None,
    words: Sequence[str],
    *,
    is_kernel_thread: bool = False,
    cwd: str | None = None,
) -> Class:
    """`name` is comm, `exe` the executable's path, `words` argv as it is (nothing of it gets into the role).

    `cwd` is where a script without a path was started from: `python main.py` is many things.
    """
    index = _INDEX
    if is_kernel_thread:
        return "kernel", _kernel_role(name or "")
    comm = name or ""
    program = _base((exe or "").removesuffix(" (deleted)"))
    title = words[0] if words else ""
    if "::" in comm:  # `VLLM::EngineCor`, `ray::Worker`: written by the program over its own name
        return index.find(title if "::" in title else comm) or _UNKNOWN
    interpreter = next((base for base in (program, _base(title), comm) if base), "")
    if _is_interpreter(interpreter):
        return _interpreted(index, words, exe or "", cwd) or index.find(comm, cut=True) or _plain(interpreter)
    # Of a program whose whole name is known, the cut one says nothing more.
    cut = not program.startswith(comm)
    found = index.find(program) or index.find(comm, cut=cut) or index.find(_base(title))
    if found is not None and not _is_wine(program):
        return _particular(found, program or comm, words)
    return _installed(program, comm, f"{exe or ''}\0{title}") or _UNKNOWN


def _particular(found: Class, program: str, words: Sequence[str]) -> Class:
    """What this run of a known program does: a subcommand, a browser's helper."""
    category, role = found
    if len(words) > 1:
        subcommand = SUBCOMMANDS.get((program, words[1]))
        if subcommand is not None:
            return category, subcommand
    if category in ("browser", "app"):
        helper = _helper(words)
        if helper is not None:
            return category, f"{role} ({helper})"
    return found


def _helper(words: Sequence[str]) -> str | None:
    if "-contentproc" in words:
        return HELPER_TYPES.get(words[-1])
    for word in words[1:40]:
        if word.startswith("--type="):
            return HELPER_TYPES.get(word[7:])
    return None


def is_spawned(words: Sequence[str]) -> bool:
    """A worker of Python's multiprocessing: `python -c "from multiprocessing.spawn import spawn_main; …"`."""
    return any(word.startswith("from multiprocessing") for word in words[1:4])


def _interpreted(index: _Index, words: Sequence[str], exe: str, cwd: str | None) -> Class | None:
    target, module, code = _target(words)
    if target is not None and index.scripts.get(_base(target)) is not None:
        return index.scripts[_base(target)]
    dotted = module or _served_app(target, words) or ""
    if not dotted and target is not None and not target.endswith(_SCRIPT_ENDS):
        dotted = target  # a class of Java's
    while dotted:
        found = index.scripts.get(dotted)
        if found is not None:
            return found
        dotted = dotted.rpartition(".")[0]
    from_here = f"{cwd or ''}/{target}" if target is not None and not target.startswith("/") else target or ""
    where = f"{words[0] if words else ''}\0{from_here}\0{exe}"
    for mark, found in index.places:
        if mark in where:
            return found
    given = {word.partition("=")[0] for word in words[1:] if word.startswith("--")}
    for category, role, options in OWN_OPTIONS:
        if not given.isdisjoint(options.split(", ")):
            return category, role
    if target is not None and _is_training(_base(target)):
        return "ai", "training"
    if code is not None:
        return next((("ai", role) for name, role in FRAMEWORKS.items() if _imports(code, name)), None)
    return None


def _target(words: Sequence[str]) -> tuple[str | None, str | None, str | None]:
    """(script, module, code) of `python … script | -m module | -c code`, `java … Main`, `node … script`."""
    position = 1
    while position < len(words):
        word = words[position]
        if word == "-m" and position + 1 < len(words):
            return None, words[position + 1], None
        if word == "-c" and position + 1 < len(words):
            return None, None, words[position + 1]
        if word in _TAKES_VALUE:
            position += 2
        elif word.startswith("-"):
            position += 1
        else:
            return word, None, None
    return None, None, None


def _served_app(target: str | None, words: Sequence[str]) -> str | None:
    """`gunicorn immich_ml.main:app` -> `immich_ml.main`."""
    if target is None or _base(target) not in ("gunicorn", "uvicorn", "hypercorn"):
        return None
    return next((word.partition(":")[0] for word in words[2:] if ":" in word and word[0].isalpha()), None)


def _is_training(script: str) -> bool:
    stem = script.rpartition(".")[0] or script
    parts = stem.replace("-", "_").replace(".", "_").lower().split("_")
    return any(word in parts for word in TRAINING_WORDS.split(", "))


def _imports(code: str, framework: str) -> bool:
    return f"import {framework}" in code or f"from {framework}" in code


def _installed(program: str, comm: str, path: str) -> Class | None:
    """Games have names of their own; where they stand and what runs them tells them."""
    if "/steamapps/common/" in path.replace("\\", "/"):
        return "app", "game (Steam)"
    if _is_wine(program) or (path[:1] == "/" and comm.lower().endswith(".exe")):
        return "app", "Windows program (Wine)"
    return None


def _is_wine(program: str) -> bool:
    return program in ("wine-preloader", "wine64-preloader", "wine", "wine64", "wineserver", "wineserver64")


def _is_interpreter(base: str) -> bool:
    return base.rstrip("0123456789.") in _INTERPRETERS or base.lower() in ("python.exe", "pythonw.exe", "node.exe")


def _plain(interpreter: str) -> Class:
    return ("unknown", "Python program") if interpreter.lower().startswith("python") else _UNKNOWN


def _kernel_role(comm: str) -> str:
    return next((role for start, role in KERNEL_THREADS.items() if comm.startswith(start)), "kernel thread")


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
