"""A process as a program: argv, who started it, its folder, and the settings in its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.host import Unsupported
from gpusnap.llm.flags import environ_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.host import Host, Tree

MAX_CMDLINE = 1 << 18
MAX_ENVIRON = 1 << 20
MAX_ANCESTORS = 8
MAX_TREE = 256


class Program:
    """Reads what is asked for, once; what can't be read is empty or None. Nothing here reaches the document."""

    __slots__ = (
        "_comm",
        "_cwd",
        "_entry",
        "_environ",
        "_environ_is_known",
        "_exe",
        "_parent",
        "_plain",
        "host",
        "pid",
        "words",
    )

    def __init__(self, host: Host, pid: int, words: Sequence[str] | None = None) -> None:
        self.host = host
        self.pid = pid
        self._plain: dict[str, object] | None = None
        self.words = list(words) if words is not None else self._read_words()
        self._comm: str | None = None
        self._exe: str | None = None
        self._cwd: str | None = None
        self._entry: tuple[str, list[str]] | None = None
        self._environ: bytes | None = None
        self._environ_is_known = False
        self._parent: Program | None = None

    def _without_proc(self, name: str) -> str:
        """What psutil says where there is no `/proc`; empty on Linux."""
        if self._plain is None:
            self._plain = _plain_facts(self.host, self.pid)
        value = self._plain.get(name)
        return str(value) if isinstance(value, str | int) else ""

    def _read_words(self) -> list[str]:
        if self._plain is None:
            self._plain = _plain_facts(self.host, self.pid)
        words = self._plain.get("cmdline")
        return [str(word) for word in words] if isinstance(words, list) else _read_words(self.host.proc, self.pid)

    @property
    def comm(self) -> str:
        if self._comm is None:
            self._comm = self._without_proc("name") or _stat(self.host.proc, self.pid)[0]
        return self._comm

    @property
    def exe(self) -> str:
        if self._exe is None:
            self._exe = self._without_proc("exe") or _link(self.host.proc, f"{self.pid}/exe")
        return self._exe

    @property
    def cwd(self) -> str:
        if self._cwd is None:
            self._cwd = self._without_proc("cwd") or _link(self.host.proc, f"{self.pid}/cwd")
        return self._cwd

    @property
    def title(self) -> str:
        """The first word of argv, which a worker may have set anew: `VLLM::Worker_TP0`."""
        return self.words[0] if self.words else ""

    @property
    def name(self) -> str:
        """The program's own name: `llama-server`, `python3`."""
        return _base(self.title) or _base(self.exe) or self.comm

    @property
    def entry(self) -> tuple[str, list[str]]:
        """What runs and its arguments: a script or module for an interpreter, else the program itself."""
        if self._entry is None:
            self._entry = _entry(self.name, self.words)
        return self._entry

    def environ(self, *wanted: str) -> dict[str, str]:
        """Settings from its environment, where this user may read it."""
        if self._environ is None:
            try:
                self._environ = self.host.proc.read(f"{self.pid}/environ", MAX_ENVIRON)
                self._environ_is_known = True
            except OSError:
                self._environ = b""
        return environ_of(self._environ, wanted)

    @property
    def environ_is_known(self) -> bool:
        """Whether this user may read its environment: what nobody can read may say anything."""
        self.environ()
        return self._environ_is_known

    def parent(self) -> Program | None:
        """The process that started it; None at the top."""
        if self._parent is None:
            ppid = int(self._without_proc("ppid") or _stat(self.host.proc, self.pid)[1])
            if ppid > 1:
                self._parent = Program(self.host, ppid)
        return self._parent

    def ancestors(self) -> list[Program]:
        """Parent first; at most MAX_ANCESTORS."""
        found: list[Program] = []
        current = self.parent()
        while current is not None and len(found) < MAX_ANCESTORS and all(a.pid != current.pid for a in found):
            found.append(current)
            current = current.parent()
        return found

    def descendants(self) -> list[int]:
        """Children of children too (`/proc/PID/task/PID/children`); none where the kernel has no such file."""
        found: list[int] = []
        todo = [self.pid]
        while todo and len(found) < MAX_TREE:
            pid = todo.pop(0)
            try:
                text = self.host.proc.read(f"{pid}/task/{pid}/children")
            except OSError:
                continue
            children = [int(word) for word in text.split() if word.isdigit()]
            fresh = [child for child in children if child not in found and child != self.pid]
            found += fresh
            todo += fresh
        return found[:MAX_TREE]


def _plain_facts(host: Host, pid: int) -> dict[str, object]:
    if host.platform not in ("windows", "macos"):
        return {}
    try:
        facts: dict[str, object] = host.raw("process", pid)
    except (Unsupported, OSError):
        return {}
    return facts


def _read_words(proc: Tree, pid: int) -> list[str]:
    try:
        raw = proc.read(f"{pid}/cmdline", MAX_CMDLINE)
    except OSError:
        return []
    text = raw.decode("utf-8", "surrogateescape").rstrip("\0")
    if not text:
        return []
    # A title that a program set over its argv has no NULs: `VLLM::EngineCore`, `sglang::scheduler_TP0`.
    return text.split("\0") if "\0" in text else [text.rstrip(" ")]


def _stat(proc: Tree, pid: int) -> tuple[str, int]:
    """(comm, ppid) of `/proc/PID/stat`, proc(5); comm may hold anything, parentheses too."""
    try:
        raw = proc.read(f"{pid}/stat")
        comm = raw[raw.index(b"(") + 1 : raw.rindex(b")")].decode("utf-8", "replace")
        return comm, int(raw[raw.rindex(b")") + 2 :].split()[1])
    except (OSError, ValueError, IndexError):
        return "", 0


def _link(proc: Tree, path: str) -> str:
    try:
        return proc.readlink(path)
    except OSError:
        return ""


def _base(path: str) -> str:
    return path.removesuffix(" (deleted)").replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def _is_interpreter(name: str) -> bool:
    return name.rstrip("0123456789.") in ("python", "pypy", "node", "uv", "ray")


def _entry(name: str, words: Sequence[str]) -> tuple[str, list[str]]:
    if not words or not _is_interpreter(name):
        return name, list(words[1:])
    place = 1
    while place < len(words) and words[place].startswith("-"):
        if words[place] == "-m" and place + 1 < len(words):
            return words[place + 1], list(words[place + 2 :])
        if words[place] == "-c":  # `python -c "from multiprocessing..."`: a worker of somebody
            return name, list(words[1:])
        place += 2 if words[place] in ("-X", "-W") else 1
    if place >= len(words):
        return name, []
    return _base(words[place]), list(words[place + 1 :])
