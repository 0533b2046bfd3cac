"""Machines for these tests: a tree in the archive's notation, and `/proc/PID/stat` after proc(5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpusnap.captured import CapturedHost
from gpusnap.collect.options import CollectOptions
from gpusnap.collect.processes import ProcessTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusnap.reading import Reading

INITIAL = "--- proc/self/ns/pid -> pid:[4026531836]\n"
CONTAINER = "--- proc/self/ns/pid -> pid:[4026532741]\n"
KTHREAD_FLAGS = 0x00208040
USER_FLAGS = 0x00400000


def stat_line(
    pid: int,
    comm: str,
    *,
    state: str = "S",
    ppid: int = 1,
    flags: int = USER_FLAGS,
    utime: int = 0,
    stime: int = 0,
    start: int = 500_000,
    rss: int = 1000,
) -> str:
    """The 52 fields of proc(5), those that nobody asks for as 0."""
    fields: list[object] = [pid, f"({comm})", state, ppid, pid, pid, 0, -1, flags, 10, 0, 0, 0, utime, stime, 0, 0]
    fields += [20, 0, 1, 0, start, 123_456_789, rss, 18446744073709551615]
    fields += [0] * (52 - len(fields))
    return " ".join(map(str, fields)) + "\n"


def process(
    pid: int,
    comm: str = "python3",
    *,
    cmdline: str = "python3\\0train.py\\0",
    uid: int = 1000,
    exe: str = "/usr/bin/python3.11",
    cgroup: str = "0::/user.slice/user-1000.slice/session-3.scope",
    fds: tuple[str, ...] = (),
    **stat: object,
) -> str:
    """One process as archive entries; `stat` as in stat_line."""
    lines = [
        f"--- proc/{pid}/stat\n{stat_line(pid, comm, **stat)}",  # type: ignore[arg-type]
        f"--- proc/{pid}/status\nName:\t{comm}\nState:\tS (sleeping)\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n",
        f"--- proc/{pid}/cmdline escaped\n{cmdline}\n",
        f"--- proc/{pid}/exe -> {exe}\n",
        f"--- proc/{pid}/cwd -> /home/alice/run\n",
        f"--- proc/{pid}/cgroup\n{cgroup}\n",
        f"--- proc/{pid}/fd/ dir\n",
    ]
    lines += [f"--- proc/{pid}/fd/{number} -> {target}\n" for number, target in enumerate(fds, 3)]
    return "".join(lines)


def host(folder: Path, tree: str, *later: str, **machine: object) -> CapturedHost:
    """`later` are overlays for the second, third … sample."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tree.txt").write_text(tree)
    for step, overlay in enumerate(later, 2):
        (folder / f"tree.{step}.txt").write_text(overlay)
    machine.setdefault("users", {"1000": "alice", "0": "root"})
    machine.setdefault("own_pid", 999)
    (folder / "machine.json").write_text(json.dumps(machine))
    return CapturedHost(folder)


def table(machine: CapturedHost, **options: object) -> ProcessTable:
    return ProcessTable(machine, CollectOptions(**options))  # type: ignore[arg-type]


def no_question(pid: int) -> bool | None:
    raise AssertionError(f"nobody should ask what pid {pid} holds")


def says(answer: bool | None) -> Callable[[int], bool | None]:
    """A holds_gpu_file that answers the same for every pid."""
    return lambda _pid: answer


def values(facts: dict[str, Reading]) -> dict[str, object]:
    return {leaf: reading.value for leaf, reading in facts.items()}


def nulls(facts: dict[str, Reading]) -> dict[str, str]:
    return {leaf: reading.provenance for leaf, reading in facts.items() if reading.is_null}
