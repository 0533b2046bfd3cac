"""What `record` says while it runs, all of it on stderr: nothing in cron, progress on a terminal, acks with -v."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpusnap.cli import exits
from gpusnap.cli.io import say
from gpusnap.cli.snapping import nothing_measured, say_backends

if TYPE_CHECKING:
    from gpusnap.model import Snapshot


class Failures:
    """One line when samples begin to fail, one when they are kept again; the same cause is not repeated."""

    def __init__(self) -> None:
        self._said: str | None = None
        self._lost = 0

    def sampled(self, doc: Snapshot) -> None:
        """Of no interest before it is written."""

    def wrote(self, doc: Snapshot, count: int) -> None:  # noqa: ARG002 - a watcher
        if self._lost > 0:
            say(f"gpusnap record: recording again, {self._lost} sample{'' if self._lost == 1 else 's'} lost")
        self._said, self._lost = None, 0

    def failed(self, message: str) -> None:
        if message != self._said:
            say(f"gpusnap record: {message}")
        self._said = message
        self._lost += 1


class Acknowledgements:
    """`-v`: what the backends found at first, then a line for each sample that is safe in the file."""

    def __init__(self) -> None:
        self._backends_said = False

    def sampled(self, doc: Snapshot) -> None:
        if not self._backends_said:
            say_backends(doc)
        self._backends_said = True

    def wrote(self, doc: Snapshot, count: int) -> None:
        recording = doc["recording"]
        if recording is not None:
            say(f"gpusnap record: pid {recording['writer_pid']} sequence {recording['sequence']}: {count} bytes")

    def failed(self, message: str) -> None:
        """`Failures` says it."""


class Progress:
    """One line on a terminal that is written over."""

    def __init__(self) -> None:
        self._samples = 0
        self._bytes = 0
        self._on_line = False

    def sampled(self, doc: Snapshot) -> None:
        """Of no interest before it is written."""

    def wrote(self, doc: Snapshot, count: int) -> None:
        from gpusnap.render.recording import progress_line

        self._samples += 1
        self._bytes += count
        self._on_line = True
        _overwrite(progress_line(doc, self._samples, self._bytes, _width() - 1))

    def failed(self, message: str) -> None:  # noqa: ARG002 - `Failures` says it, on a line of its own
        self.end()

    def end(self) -> None:
        """What follows stands on a line of its own."""
        if self._on_line:
            _put("\n")
        self._on_line = False


class Measured:
    """Whether any sample measured anything: the exit code of a run is that of its best sample."""

    def __init__(self) -> None:
        self._failure: str | None = None
        self._done = False

    def sampled(self, doc: Snapshot) -> None:
        if not self._done:
            self._failure = nothing_measured(doc)
            self._done = self._failure is None

    def exit_code(self) -> int:
        """3 with one line where no sample has any figure, as for `snap`."""
        if self._failure is None:
            return exits.OK
        say(self._failure)
        return exits.NOTHING_COLLECTED

    def wrote(self, doc: Snapshot, count: int) -> None:
        """What was measured counts, kept or not."""

    def failed(self, message: str) -> None:
        """What was measured counts, kept or not."""


def _overwrite(text: str) -> None:
    _put(f"\r{text}" + ("\x1b[K" if os.environ.get("TERM", "dumb") != "dumb" else ""))


def _put(text: str) -> None:
    if not text.isascii():
        from gpusnap.render.signs import in_signs_of

        text = in_signs_of(getattr(sys.stderr, "encoding", None) or "utf-8", text)
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # the terminal is gone (gpustat#70)
        return


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
