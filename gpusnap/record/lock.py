"""One exclusive lock on an open recording: flock(2), on Windows a byte range far behind the data."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt
    import os

    # Locks there are mandatory: readers must never touch the locked byte.
    _FAR_BEHIND = 1 << 62

    def try_lock(fd: int) -> bool:
        """True once the lock is ours, False while another program holds it; closing the file lets it go."""
        os.lseek(fd, _FAR_BEHIND, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
else:
    import fcntl

    def try_lock(fd: int) -> bool:
        """True once the lock is ours, False while another program holds it; closing the file lets it go."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
