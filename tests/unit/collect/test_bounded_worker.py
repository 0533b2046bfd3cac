"""One worker thread for all backends, until one hangs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, cast

from gpusnap.collect.bounded import BoundedBackend, Worker
from gpusnap.collect.harvest import Harvest, backend_row

if TYPE_CHECKING:
    from gpusnap.collect.harvest import Backend


class Answers:
    def __init__(self, name: str) -> None:
        self.name = name
        self.thread: int | None = None

    def prime(self) -> list[int]:
        return [7]

    def read(self) -> Harvest:
        self.thread = threading.get_ident()
        return Harvest(backend_row(self.name))


class Hangs(Answers):
    def __init__(self) -> None:
        super().__init__("sick")
        self.let_go = threading.Event()
        self.calls = 0

    def read(self) -> Harvest:
        self.calls += 1
        self.let_go.wait(20)
        return super().read()


class Breaks(Answers):
    def read(self) -> Harvest:
        raise ZeroDivisionError("division by zero")


def bounded(backend: Answers, timeout: float = 10.0, idle: list[Worker] | None = None) -> BoundedBackend:
    return BoundedBackend(cast("Backend", backend), timeout, idle)


def test_backends_that_answer_share_one_thread_that_is_not_the_callers() -> None:
    idle: list[Worker] = []
    backends = [Answers("a"), Answers("b")]
    for backend in backends:
        assert bounded(backend, idle=idle).read().backend["status"] == "ok"
    assert backends[0].thread == backends[1].thread != threading.get_ident()
    assert len(idle) == 1
    assert bounded(backends[0], idle=idle).prime() == [7]


def test_one_that_hangs_costs_itself_and_is_not_asked_again_before_it_is_back() -> None:
    idle: list[Worker] = []
    sick = Hangs()
    sick_backend, well = bounded(sick, 0.05, idle), bounded(Answers("well"), idle=idle)
    for _ in range(3):
        row = sick_backend.read().backend
        assert (row["name"], row["status"], row["detail"]) == ("sick", "timeout", "no answer within 0.05 s")
        assert well.read().backend["status"] == "ok"
    assert sick.calls == 1
    assert sick_backend.timed_out
    sick.let_go.set()
    until = time.monotonic() + 10
    while time.monotonic() < until and sick_backend.read().backend["status"] != "ok":
        time.sleep(0.01)
    assert sick_backend.read().backend["status"] == "ok"


def test_one_that_breaks_is_a_row_that_says_so_and_its_worker_goes_on() -> None:
    idle: list[Worker] = []
    harvest = bounded(Breaks("broken"), idle=idle).read()
    assert harvest.backend["status"] == "failed"
    assert "division by zero" in (harvest.backend["detail"] or "")
    assert bounded(Answers("well"), idle=idle).read().backend["status"] == "ok"
    assert len(idle) == 1
