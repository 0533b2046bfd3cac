"""Whether a process has lost its parent: the parent is init or a subreaper, and nobody talks to it.

A service that systemd started, a container's own first process and a program that listens for clients are
children of init by right. What a file can't tell (listening sockets, a subreaper's name) counts for the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.explain.view import Parent, Surroundings
    from gpusnap.model import Process, Snapshot

REAPERS = frozenset({"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"})
# They are started by a desktop or by init, detached on purpose.
BY_RIGHT = frozenset({"desktop", "browser", "app", "system", "kernel"})


def is_orphan(document: Snapshot, row: Process, around: Surroundings) -> bool:
    unit = row["systemd_unit"]
    if row["category"] in BY_RIGHT or (unit is not None and unit.endswith(".service") and not _of_a_user(unit)):
        return False
    host = document["host"]
    if host["platform"] not in ("linux", "wsl") or row["ppid"] is None:
        return False  # launchd is every program's parent on a Mac
    if host["container"] is True:
        return False  # the first process of a container is everybody's parent there
    if around.listening is None and _is_a_server(row):
        return False
    if around.listening is not None and row["pid"] in around.listening:
        return False
    return row["ppid"] == 1 or _is_reaper(around.parents.get(row["pid"]), row)


def _is_a_server(row: Process) -> bool:
    """As far as a file tells: a model server that somebody detached; its workers have titles of their own."""
    return row["llm"] is not None and row["llm"]["server"] is not None and "::" not in (row["name"] or "")


def _is_reaper(parent: Parent | None, row: Process) -> bool:
    return parent is not None and parent.name in REAPERS and row["container_id"] is None


def _of_a_user(unit: str) -> bool:
    """`user@1000.service` is the manager of a whole login, not a service of its own."""
    return unit.startswith("user@")
