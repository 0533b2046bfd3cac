"""What a recorder does where signals are few: Windows."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from gpusnap.record.child import Child
from gpusnap.record.signals import Signals, _sent_by_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

# The handlers of these tests must not stay.
HANDLED = [getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name)]


@pytest.fixture
def signals() -> Iterator[Signals]:
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield Signals()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_without_sigchld_a_running_command_is_looked_at_often(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    signals.sleep(10.0, slept.append)
    monkeypatch.delattr(signal, "SIGCHLD", raising=False)
    monkeypatch.setattr("gpusnap.record.signals._FORWARDED", ())
    signals.forward_to(lambda _: None)
    signals.sleep(10.0, slept.append)
    assert slept == [10.0, 0.2]


def test_ctrl_c_reaches_the_command_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert _sent_by_keys(signal.SIGINT)
    assert not _sent_by_keys(signal.SIGTERM)


def test_a_signal_that_the_system_cannot_send_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child([sys.executable, "-c", "import time; time.sleep(60)"])

    def refuse(number: int) -> None:
        raise ValueError(f"Unsupported signal: {number}")

    monkeypatch.setattr(child._process, "send_signal", refuse)
    ended: list[bool] = []
    monkeypatch.setattr(child._process, "terminate", lambda: ended.append(True))
    child.forward(signal.SIGINT)
    monkeypatch.undo()
    child._process.kill()
    child._process.wait()
    assert ended == [True]
