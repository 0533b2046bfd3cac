"""A backend that can't be asked costs itself, never the run."""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING

import pytest

from gpusnap.collect.bounded import BoundedBackend
from gpusnap.collect.harvest import Harvest, backend_row

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
