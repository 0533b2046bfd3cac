"""A backend in another thread, so that a driver call that hangs costs the backend, not the run."""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, cast

from gpusnap.collect.absent import LazyBackend
from gpusnap.collect.harvest import Harvest, backend_row, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from gpusnap.collect.harvest import Backend

    Answer = TypeVar("Answer")


class _NoThread(Exception):
    """The system refuses another thread."""


class _Desk:
    """Where a worker's thread finds its job and leaves the answer; it outlives the `Worker` while a call hangs."""

    __slots__ = ("answer", "done", "ended", "job", "wanted")

    def __init__(self) -> None:
        self.job: Callable[[], object] | None = None
        self.answer: object = None
        self.ended = False
        self.wanted = _thread.allocate_lock()
        self.done = _thread.allocate_lock()
        self.wanted.acquire()
        self.done.acquire()


def _work(desk: _Desk) -> None:
    while True:
        desk.wanted.acquire()
        if desk.ended:
            return
        try:
            desk.answer = None if desk.job is None else desk.job()
        except Exception as fault:  # noqa: BLE001 - a fault in one backend must not cost the others' figures
            desk.answer = fault
        finally:
            desk.job = None
            desk.done.release()


class Worker:
    """A thread that does one thing after the other; starting one for each would cost as much as what it does.

    It ends with its Worker, so that a program that takes many snapshots does not gather threads.
    """

    def __init__(self) -> None:
        # The thread that imports it first is its main thread, which the program's end waits for: pynvml, which
        # imports it in a worker, would make that the worker, and the end never comes.
        import threading  # noqa: F401

        self._desk = _Desk()
        _thread.start_new_thread(_work, (self._desk,))

    def __del__(self) -> None:
        desk = getattr(self, "_desk", None)
        if desk is not None and not desk.ended:
            desk.ended = True
            try:
                desk.wanted.release()
            except RuntimeError:  # its thread has a job that it has not taken up yet, and looks at `ended` next
                return

    def starts(self, job: Callable[[], object]) -> None:
        self._desk.job = job
        self._desk.wanted.release()

    def is_back(self, timeout: float) -> bool:
        """Whether what was started last has ended; asked until it says so, and not again then."""
        return self._desk.done.acquire(timeout=timeout)

    def answer(self) -> object:
        """What it returned, or the exception that it raised."""
        answer, self._desk.answer = self._desk.answer, None
        return answer


class BoundedBackend:
    """`read` and `prime` with a time limit; a backend that still hangs from the last time is not asked again.

    Backends are asked one after the other and share the `idle` workers; one that hangs keeps its own.
    """

    def __init__(self, backend: Backend, timeout: float, idle: list[Worker] | None = None) -> None:
        self.backend = backend
        self.timed_out = False
        self._timeout = min(timeout, _thread.TIMEOUT_MAX)
        self._idle = [] if idle is None else idle
        self._stuck: Worker | None = None

    def prime(self) -> Iterable[int]:
        """The pids that the backend came across; none from one that fails or hangs."""
        answer = self._run(self.backend.prime)
        return [] if answer is None or isinstance(answer, Exception) else answer

    def read(self) -> Harvest:
        if isinstance(self.backend, LazyBackend):
            absent = self.backend.absent()  # by a look at sysfs, which needs no thread
            if absent is not None:
                return absent
        result = self._run(self.backend.read)
        if isinstance(result, Harvest):
            return result
        if isinstance(result, _NoThread):
            return Harvest(backend_row(self.backend.name, "failed", detail=str(result)))
        if result is None:
            self.timed_out = True
            detail = f"no answer within {self._timeout:g} s"
            return Harvest(backend_row(self.backend.name, "timeout", detail=detail))
        harvest = Harvest(backend_row(self.backend.name, "failed", detail=f"internal error: {result!r}"))
        harvest.warnings.append(warning("internal-error", f"{self.backend.name}: {result!r}"))
        return harvest

    def _run(self, method: Callable[[], Answer | None]) -> Answer | Exception | None:
        """None: no answer in time."""
        try:
            worker = self._free_worker()
        except RuntimeError:  # `ulimit -u`, a cgroup's pids.max: without one, a driver that hangs would hold us
            return _NoThread("no thread could be started to ask it (a limit on processes?)")
        if worker is None:
            return None
        worker.starts(method)
        if not worker.is_back(self._timeout):
            self._stuck = worker
            return None
        self._idle.append(worker)
        return cast("Answer | Exception | None", worker.answer())

    def _free_worker(self) -> Worker | None:
        """None while the last call still hangs; RuntimeError where no thread can be started."""
        if self._stuck is None:
            return self._idle.pop() if self._idle else Worker()
        if not self._stuck.is_back(0):
            return None
        worker, self._stuck = self._stuck, None
        return worker
