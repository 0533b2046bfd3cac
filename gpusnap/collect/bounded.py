"""A backend in a thread of its own, so that a driver call that hangs costs the backend, not the run."""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING

from gpusnap.collect.harvest import Harvest, backend_row, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from gpusnap.collect.harvest import Backend

    Answer = TypeVar("Answer")


class _NoThread(Exception):
    """The system refuses another thread."""


class BoundedBackend:
    """`read` and `prime` with a time limit; a backend that still hangs from the last time is not asked again."""

    def __init__(self, backend: Backend, timeout: float) -> None:
        self.backend = backend
        self.timed_out = False
        self._timeout = min(timeout, _thread.TIMEOUT_MAX)
        self._running: _thread.LockType | None = None

    def prime(self) -> Iterable[int]:
        """The pids that the backend came across; none from one that fails or hangs."""
        answer = self._run(self.backend.prime)
        return [] if answer is None or isinstance(answer, Exception) else answer

    def read(self) -> Harvest:
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
        running = self._running
        if running is not None and not running.acquire(timeout=0):
            return None
        results: list[Answer | Exception | None] = []
        lock = _thread.allocate_lock()
        lock.acquire()

        def work() -> None:
            try:
                results.append(method())
            except Exception as fault:  # noqa: BLE001 - a fault in one backend must not cost the others' figures
                results.append(fault)
            finally:
                lock.release()

        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # `ulimit -u`, a cgroup's pids.max: without one, a driver that hangs would hold us
            return _NoThread("no thread could be started to ask it (a limit on processes?)")
        self._running = lock
        if not lock.acquire(timeout=self._timeout):
            return None
        self._running = None
        return results[0]
