"""Processes of the tests' own: alive, idle, and with pids that nothing else has."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def sleeping(count: int) -> Iterator[list[int]]:
    """The pids of so many processes that sleep until the block ends."""
    with ExitStack() as stack:
        pids = []
        for _ in range(count):
            child = stack.enter_context(subprocess.Popen(["sleep", "600"]))
            stack.callback(child.kill)
            pids.append(child.pid)
        yield pids
