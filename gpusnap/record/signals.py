"""How a recorder is ended: the first signal lets it finish its line, the second ends it at once.

While a command runs, what comes is passed on to it and the recorder goes on until the command ends. Handlers
wake a sleep by an exception, and only a sleep: a line that is being written is finished (gpustat#70: a
hang-up that left a recorder behind).
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_ENDING = ("SIGHUP", "SIGINT", "SIGTERM")
# What a command may want for itself (batch systems announce their time limit by SIGUSR1).
_FORWARDED = (*_ENDING, "SIGQUIT", "SIGUSR1", "SIGUSR2")
# Windows tells nobody when a command has ended: it is looked at this often.
_WINDOWS_NAP_SECONDS = 0.2
# The terminal sends these to the whole foreground group: the command has them already.
_FROM_KEYS = ("SIGINT", "SIGQUIT")


class _Woken(BaseException):
    """Raised by a handler inside `Signals.sleep` alone."""


class Signals:
    """Installs itself when built. `received` is the first ending signal's number, else None."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._asleep = False
        self._missed_wake = False
        self._forward: Callable[[int], None] | None = None
        for name in _ENDING:
            self._install(name)

    def _install(self, name: str) -> None:
        """An ignored signal stays ignored: nohup, and the SIGINT of a shell's background jobs."""
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, self._on_signal)

    def forward_to(self, send: Callable[[int], None]) -> None:
        """From now on `send` gets what comes; the end of any child wakes a sleep."""
        self._forward = send
        if self.received is not None:  # came while the command was being started
            send(self.received)
            self.received = None
        for name in _FORWARDED:
            self._install(name)
        if hasattr(signal, "SIGCHLD"):
            signal.signal(signal.SIGCHLD, self._on_child)

    def stop_forwarding(self) -> None:
        """The command has ended: from now on a signal is for the recorder."""
        self._forward = None

    def sleep(self, seconds: float, sleep: Callable[[float], None]) -> None:
        """`sleep(seconds)`, ended early by a signal; returns at once where one came since the last sleep."""
        if self._forward is not None and not hasattr(signal, "SIGCHLD"):
            seconds = min(seconds, _WINDOWS_NAP_SECONDS)
        try:
            self._asleep = True
            if not self._missed_wake:
                sleep(seconds)
            self._asleep = False
        except _Woken:
            pass
        self._missed_wake = False

    def _wake(self) -> None:
        if not self._asleep:
            self._missed_wake = True
            return
        self._asleep = False
        raise _Woken

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._forward is not None:
            if not _sent_by_keys(number):
                self._forward(number)
        elif self.received is not None:
            os._exit(128 + number)
        else:
            self.received = number
        self._wake()

    def _on_child(self, _: int, __: FrameType | None) -> None:
        self._wake()


def _sent_by_keys(number: int) -> bool:
    """Whether a signal most likely comes from the terminal's keys, which reach the command by themselves."""
    if signal.Signals(number).name not in _FROM_KEYS:
        return False
    if sys.platform == "win32":  # Ctrl-C reaches every program of the console
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # no controlling terminal
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
