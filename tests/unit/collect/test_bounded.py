"""A backend that can't be asked costs itself, never the run."""

from __future__ import annotations

import _thread
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.collect import collect
from gpusnap.collect.bounded import BoundedBackend
from gpusnap.collect.harvest import Harvest, backend_row
from gpusnap.collect.options import CollectOptions

if TYPE_CHECKING:
    from collections.abc import Iterable


class Ready:
    """A backend that answers at once."""

    name = "ready"

    def prime(self) -> Iterable[int]:
        return [7]

    def read(self) -> Harvest:
        return Harvest(backend_row(self.name, "ok"))


def test_without_a_thread_it_is_not_asked_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ulimit -u` on a login node: its call could hang, and nothing could leave it behind."""
    bounded = BoundedBackend(Ready(), 1.0)

    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(_thread, "start_new_thread", refuse)
        assert list(bounded.prime()) == []
        harvest = bounded.read()
    assert harvest.backend["status"] == "failed"
    assert harvest.backend["detail"] == "no thread could be started to ask it (a limit on processes?)"
    assert harvest.warnings == []
    assert not bounded.timed_out
    assert bounded.read().backend["status"] == "ok"


def test_a_limit_longer_than_a_lock_can_wait_is_none() -> None:
    bounded = BoundedBackend(Ready(), _thread.TIMEOUT_MAX * 2)
    assert list(bounded.prime()) == [7]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts its threads in /proc")
def test_many_snapshots_gather_no_threads() -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    machine = CapturedHost(Path(__file__).parents[3] / "examples/machines/rtx4080-desktop")
    collect(machine, CollectOptions())
    before = threads()
    for _ in range(50):
        collect(machine, CollectOptions())
    deadline = time.monotonic() + 5
    while threads() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before + 1


def test_a_call_that_hung_and_came_back_is_asked_again() -> None:
    class Hangs(Ready):
        def read(self) -> Harvest:
            with gate:
                return super().read()

    gate = _thread.allocate_lock()
    gate.acquire()
    bounded = BoundedBackend(Hangs(), 0.05)
    assert [bounded.read().backend["status"] for _ in range(2)] == ["timeout", "timeout"]
    gate.release()
    deadline = time.monotonic() + 5
    statuses = []
    while "ok" not in statuses and time.monotonic() < deadline:
        statuses.append(bounded.read().backend["status"])
    assert statuses[-1] == "ok"
