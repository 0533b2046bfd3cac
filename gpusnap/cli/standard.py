"""The three standard streams, in whatever state a caller left them.

Python has None for a stream that is closed (`>&-`, the child of a daemon), and the next file that is opened gets
its number: what a driver library says on standard error would land in a recording.
"""

from __future__ import annotations

import os
import sys


def hold_standard_streams() -> None:
    """Occupy the numbers of closed streams. Reading or writing data there stays an error; messages go nowhere."""
    for number, way in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, way)  # the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the program is
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def write_standard_output(data: bytes) -> None:
    """All of it, or OSError; nothing stays in a buffer for later.

    Python's own stream drops what the system did not take at once where PYTHONUNBUFFERED is set (containers), and
    gives up where another program made the pipe or terminal non-blocking.
    """
    sys.stdout.flush()
    stream = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)
    rest = memoryview(data)
    while rest:
        taken = stream.write(rest)
        if taken is None:
            import select

            select.select([], [stream], [])
        else:
            rest = rest[taken:]
