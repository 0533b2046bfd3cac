"""Signals as a login shell leaves them, whoever started the tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell's `command &` ignores Ctrl-C, and so would each command that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
