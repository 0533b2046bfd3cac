"""Signals of a real process: each case runs in a child of its own, since handlers belong to a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

PRELUDE = """
import os, signal, sys, time
from gpusnap.record.signals import Signals
def say(text):
    print(text, flush=True)
"""


def run(script: str, *send: int, before: str = "") -> tuple[str, int]:
    """The script's output and return code; each signal is sent after a line `ready` of it."""
    process = subprocess.Popen(
        [sys.executable, "-c", before + PRELUDE + script], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = ""
    for number in send:
        while (line := process.stdout.readline()) and line != "ready\n":
            said += line
        process.send_signal(number)
    rest, _ = process.communicate(timeout=20)
    return said + rest.replace("ready\n", ""), process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_report_050_an_ending_signal_wakes_the_sleep_and_is_remembered(number: int) -> None:
    script = """
signals = Signals()
say("ready")
began = time.monotonic()
signals.sleep(15, time.sleep)
say(f"{signals.received} {time.monotonic() - began < 10}")
"""
    assert run(script, number) == (f"{int(number)} True\n", 0)


def test_what_is_being_done_is_finished_and_the_next_sleep_returns_at_once() -> None:
    script = """
signals = Signals()
say("ready")
until = time.monotonic() + 20
while signals.received is None and time.monotonic() < until:
    pass
say("line finished")
began = time.monotonic()
signals.sleep(15, time.sleep)
say(f"{time.monotonic() - began < 10}")
"""
    assert run(script, signal.SIGTERM) == ("line finished\nTrue\n", 0)


@pytest.mark.parametrize(("second", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_leaves_at_once(second: int, code: int) -> None:
    script = """
signals = Signals()
say("ready")
while signals.received is None:
    time.sleep(0.01)
say("ready")
time.sleep(15)
say("never")
"""
    assert run(script, signal.SIGTERM, second) == ("", code)


def test_a_signal_that_was_ignored_before_stays_ignored() -> None:
    """nohup ignores SIGHUP, a shell's `command &` SIGINT."""
    script = """
signals = Signals()
os.kill(os.getpid(), signal.SIGHUP)
say(str(signals.received))
"""
    before = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    assert run(script, before=before) == ("None\n", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGQUIT])
def test_while_a_command_runs_signals_are_passed_on_and_the_recorder_goes_on(number: int) -> None:
    script = """
os.setsid()  # no terminal: nothing comes from its keys
signals = Signals()
passed = []
signals.forward_to(passed.append)
say("ready")
signals.sleep(15, time.sleep)
say(f"{passed} {signals.received}")
"""
    assert run(script, number) == (f"[{int(number)}] None\n", 0)


def test_a_signal_that_came_while_the_command_was_started_is_passed_on() -> None:
    script = """
signals = Signals()
os.kill(os.getpid(), signal.SIGTERM)
passed = []
signals.forward_to(passed.append)
say(f"{passed} {signals.received}")
"""
    assert run(script) == (f"[{int(signal.SIGTERM)}] None\n", 0)


def test_the_end_of_a_child_wakes_the_sleep_even_when_it_came_just_before() -> None:
    script = """
import subprocess
signals = Signals()
signals.forward_to(print)
child = subprocess.Popen([sys.executable, "-c", ""])
began = time.monotonic()
signals.sleep(15, time.sleep)
child.wait()
child = subprocess.Popen([sys.executable, "-c", ""])
child.wait()
signals.sleep(15, time.sleep)
say(f"{time.monotonic() - began < 10}")
"""
    assert run(script) == ("True\n", 0)


def test_after_the_command_a_signal_is_the_recorders() -> None:
    script = """
signals = Signals()
passed = []
signals.forward_to(passed.append)
signals.stop_forwarding()
os.kill(os.getpid(), signal.SIGTERM)
say(f"{passed} {signals.received}")
"""
    assert run(script) == (f"[] {int(signal.SIGTERM)}\n", 0)


KEYS = """
os.setsid()
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signals = Signals()
passed = []
signals.forward_to(passed.append)
say("ready")
signals.sleep(15, time.sleep)
say(f"passed {passed}")
"""


def test_ctrl_c_on_the_terminal_is_not_passed_on_a_second_time() -> None:
    """The kernel gives it to the whole foreground group: a second one makes programs drop their checkpoint."""
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + KEYS], stdin=terminal, stdout=subprocess.PIPE, text=True
    )
    os.close(terminal)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    os.write(controller, b"\x03")
    assert process.communicate(timeout=20)[0] == "passed []\n"
    os.close(controller)
