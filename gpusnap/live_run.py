"""A command of this machine, run to its end within a time and a size: `LiveHost.run`.

`subprocess.run` keeps whatever a command prints, however much that is, and after a timeout it waits for the pipes
of grandchildren that live on. Here a command that says more than it may is ended at once, and nobody waits for
pipes beyond the time.
"""

from __future__ import annotations

import errno
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING

from gpusnap.host import CommandResult

if TYPE_CHECKING:
    from collections.abc import Sequence

_PART = 1 << 16


class _Reader(threading.Thread):
    """Reads one pipe to its end, or until it holds more than `limit` bytes; then the command is ended."""

    def __init__(self, child: subprocess.Popen[bytes], pipe: IO[bytes] | None, limit: int) -> None:
        super().__init__(daemon=True)
        self._child = child
        self._pipe = pipe
        self._limit = limit
        self.data = bytearray()

    @property
    def is_too_much(self) -> bool:
        return len(self.data) > self._limit

    def run(self) -> None:
        pipe = self._pipe
        if pipe is None:
            return
        with pipe:
            # One byte more than the limit tells a full answer from one that is too long.
            while not self.is_too_much:
                part = pipe.read1(min(_PART, self._limit + 1 - len(self.data)))  # type: ignore[attr-defined]
                if not part:
                    return
                self.data += part
        self._child.kill()


def run_command(argv: Sequence[str], timeout: float, limit: int) -> CommandResult:
    """OSError where it can't start or says more than `limit` bytes, TimeoutError where it takes too long."""
    deadline = time.monotonic() + timeout
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=-1
    )
    readers = [_Reader(child, pipe, limit) for pipe in (child.stdout, child.stderr)]
    try:
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        code = child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as late:
        raise _late(argv, timeout) from late
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if any(reader.is_too_much for reader in readers):
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes of output", argv[0])
    if any(reader.is_alive() for reader in readers):  # a child of the command has its pipes still
        raise _late(argv, timeout)
    out, err = (bytes(reader.data) for reader in readers)
    return CommandResult(out, err, code)


def _late(argv: Sequence[str], timeout: float) -> TimeoutError:
    return TimeoutError(f"{argv[0]}: no answer within {timeout:g} s")
