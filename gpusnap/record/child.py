"""The command that a recording accompanies: started as it is, its exit code and its signals its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

# What env(1) and the shells exit with.
NOT_FOUND = 127
NOT_RUNNABLE = 126


class CannotStart(Exception):
    """The command could not be started; `exit_code` is what a shell would give."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Child:
    """A running command with our environment, folder, terminal and standard streams."""

    def __init__(self, argv: list[str]) -> None:
        try:
            self._process = subprocess.Popen(argv)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or _is_nowhere(argv[0]):
                raise CannotStart(f"{argv[0]}: command not found", NOT_FOUND) from error
            raise CannotStart(f"{argv[0]}: {error.strerror}", NOT_RUNNABLE) from error
        self.pid = self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs; 128 + N where signal N ended it, as shells say it."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def forward(self, number: int) -> None:
        """Pass a signal on; a command that has ended meanwhile is no fault."""
        try:
            self._process.send_signal(signal.Signals(number))
        except (ProcessLookupError, PermissionError):  # PermissionError: it changed its user (sudo)
            return
        except ValueError:  # Windows sends nothing but an end
            self._process.terminate()


def _is_nowhere(name: str) -> bool:
    """exec(3) says "permission denied" of a missing name if some folder of PATH may not be looked into."""
    return os.path.basename(name) == name and shutil.which(name, mode=os.F_OK) is None
