"""One sample onto the end of a recording, whole or not at all.

Each append opens the file anew, so that a rotation by rename is followed; locks it, so that several recorders
may share it; heals a tail that a killed writer tore, by a newline (nothing is deleted: Runfusion#3569 lost two
records by appending onto one); writes once, fsyncs and closes. What does not fit is taken back under the lock.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import TYPE_CHECKING

from gpusnap.record.lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Callable

# What every line of a recording begins with.
MAGIC = b'{"schema":"gpusnap.snapshot/'
# Command lines are private: others see nothing, the group may read.
MODE = 0o640
LOCK_WAIT_SECONDS = 10.0
_FLAGS = (
    os.O_RDWR
    | os.O_APPEND
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO or a device must not hold us up before it is refused
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
# A rotation may rename the file between our open and our lock; more than a few in a row is no rotation.
_ROTATIONS = 5
# Errors that the path itself makes: trying again at the next tick would not help.
_BAD_PATH = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO})
# As much of a file's beginning as tells whose it is: torn first lines are shorter than MAGIC.
_HEAD_BYTES = 512


class NotARecording(Exception):
    """The file is somebody else's, or no file at all: it is left alone. The message names it."""


class WriteFailed(Exception):
    """This sample could not be kept; the file is as it was. The message names the file and the cause."""


class RecordFile:
    """A recording by its path. `sleep` waits for the lock: it is about this file, not about the machine read."""

    def __init__(
        self,
        path: str,
        *,
        fsync: bool = True,
        lock_wait: float = LOCK_WAIT_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path = path
        self._fsync = fsync
        self._lock_wait = lock_wait
        self._sleep = sleep

    def check(self) -> None:
        """Before the first sample: raises NotARecording where the path can never become a recording."""
        try:
            fd = os.open(self.path, _FLAGS)
        except OSError as error:
            folder = os.path.dirname(self.path) or "."
            missing_file = error.errno == errno.ENOENT and os.path.isdir(folder)
            if error.errno in _BAD_PATH and not missing_file:
                raise NotARecording(_words(self.path, error)) from error
            return  # the first append says it, if it lasts
        try:
            _require_ours(fd, self.path)
        finally:
            os.close(fd)

    def append(self, line: bytes) -> int:
        """Keep one line (given without its newline); returns the bytes written once they are on the disk."""
        try:
            fd = self._open_locked()
        except OSError as error:
            raise WriteFailed(_words(self.path, error)) from error
        try:
            size = _require_ours(fd, self.path)
            torn = size > 0 and _read_at(fd, size - 1, 1) != b"\n"
            data = b"".join((b"\n" if torn else b"", line, b"\n"))
            self._write_or_take_back(fd, size, data)
            if size == 0 and self._fsync:
                _sync_folder(self.path)
        except OSError as error:
            raise WriteFailed(_words(self.path, error)) from error
        finally:
            os.close(fd)
        return len(data)

    def _open_locked(self) -> int:
        """The file that bears the name now, locked: a rotation in between is followed."""
        for _ in range(_ROTATIONS):
            fd = os.open(self.path, _FLAGS | os.O_CREAT, MODE)
            try:
                self._lock(fd)
                if _still_named(fd, self.path):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        raise OSError(errno.ESTALE, "the file is renamed again and again")

    def _lock(self, fd: int) -> None:
        waited = 0.0
        pause = 0.001
        while not try_lock(fd):
            if waited >= self._lock_wait:
                raise OSError(errno.EAGAIN, f"locked by another program for {self._lock_wait:g} s")
            self._sleep(pause)
            waited += pause
            pause = min(pause * 2, 0.05)

    def _write_or_take_back(self, fd: int, size: int, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):  # a second round only where the system takes part of it: a disk that fills
                written += os.write(fd, data[written:])
            if self._fsync:
                os.fsync(fd)
        except OSError:
            # Cut only what is ours: a program that appends without the lock may have come between.
            if os.fstat(fd).st_size == size + written:
                os.ftruncate(fd, size)
            raise


def is_ours(head: bytes) -> bool:
    """True where a file that begins so is a recording: empty, or begun as one, even by writers that were killed.

    A torn beginning counts only as the last line or before a line of ours: `{` alone on its line is how other
    programs' JSON begins.
    """
    if head == b"":
        return True
    for line in head.split(b"\n"):
        if line.startswith(MAGIC):
            return True
        if line == b"" or not MAGIC.startswith(line):
            return False
    return True


def _require_ours(fd: int, path: str) -> int:
    """The size of the recording; NotARecording for anything else."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise NotARecording(f"{path}: not a regular file (`-` writes to stdout)")
    head = _read_at(fd, 0, _HEAD_BYTES)
    if not is_ours(head):
        begins = repr(head[:24].decode("utf-8", "backslashreplace"))
        raise NotARecording(f"{path}: not a gpusnap recording, left alone (line 1 begins {begins})")
    return found.st_size


def _read_at(fd: int, offset: int, count: int) -> bytes:
    """pread(2) where there is none; appending does not care where the descriptor stands."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, count)


def _still_named(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _sync_folder(path: str) -> None:
    """A new file's name is durable only once its folder is."""
    try:
        fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    except OSError:  # a folder that may be written but not read; Windows has no such call
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that can't sync a folder say so
            raise
    finally:
        os.close(fd)


def _words(path: str, error: OSError) -> str:
    folder = os.path.dirname(path)
    if error.errno == errno.ENOENT and folder and not os.path.isdir(folder):
        return f"{path}: there is no folder {folder}"
    return f"{path}: {error.strerror or error}"
