"""Standard streams, files that a person named, colour, broken pipes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from gpusnap.cli import exits
from gpusnap.cli.standard import write_standard_output
from gpusnap.text import printable, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.render.screen import Screen


# Windows' console: winbase.h, wincon.h.
_STD_OUTPUT = -11
_VIRTUAL_TERMINAL = 4


class CommandError(Exception):
    """Ends a command with one line on standard error and an exit code."""

    def __init__(self, message: str, code: int = exits.USAGE) -> None:
        super().__init__(message)
        self.code = code


def say(message: str) -> None:
    """One line on standard error; a closed or full standard error is nobody's failure.

    File names and the words of a command line stand in messages: they drive no terminal.
    """
    line = printable(" ".join(message.splitlines()))
    if not line.isascii():
        from gpusnap.render.signs import in_signs_of

        line = in_signs_of(getattr(sys.stderr, "encoding", None) or "utf-8", line)
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def die_of_broken_pipes() -> None:
    """A reader that leaves (`| head`) ends the program silently with 141, as it does other Unix tools."""
    import signal

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def write_out(data: bytes, output: str | None = None, *, mode: int = 0o640) -> None:
    """To standard output, or whole to a file: a temporary one beside it, then renamed.

    A file is never truncated before its successor is complete; a new one is 0640 less the umask, since command
    lines are private, unless `mode` says otherwise. What can't be written ends the command with one line.
    """
    if output == "":
        raise CommandError("an output file without a name (an empty variable?)")
    try:
        if output is None or output == "-":
            write_standard_output(data)
        elif os.path.exists(output) and not os.path.isfile(output):  # /dev/null, a named pipe
            with open(output, "wb") as stream:
                stream.write(data)
        else:
            _replace(output, data, mode)
    except BrokenPipeError:
        # Windows, or a parent that ignores SIGPIPE.
        leave(exits.BROKEN_PIPE)
    except OSError as fault:
        name = "standard output" if output in (None, "-") else output
        # A stream that can't be flushed must not be flushed again at exit.
        raise CommandError(f"{name}: {fault.strerror or fault}", exits.NOTHING_COLLECTED) from fault


def screen(colour: str) -> Screen:
    """Standard output as a place for text: its width, `--color`, the signs that its encoding has."""
    from gpusnap.render.screen import Screen

    environ = os.environ
    coloured = wants_colour(colour, sys.stdout.isatty(), environ)
    return Screen(terminal_width(environ), colour=coloured, encoding=sys.stdout.encoding or "utf-8")


def write_text(lines: Sequence[str]) -> None:
    """Lines for people, in signs that standard output can carry."""
    from gpusnap.render.signs import in_signs_of

    encoding = sys.stdout.encoding or "utf-8"
    text = "".join(in_signs_of(encoding, line) + "\n" for line in lines)
    write_out(text.encode(encoding, "backslashreplace"))


def _replace(path: str, data: bytes, mode: int) -> None:
    target = os.path.realpath(path)
    # Not by pid: in a container each run has the same one, and a killed one would block all that follow.
    temporary = os.path.join(os.path.dirname(target), f".gpusnap-{os.urandom(4).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    fd = os.open(temporary, flags, _mode_of(target, mode))
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode_of(path: str, new: int) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        return new


def leave(code: int) -> NoReturn:
    """End now, without waiting for a driver call that hangs in another thread."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


def wants_colour(when: str, stream_is_terminal: bool, environ: Mapping[str, str]) -> bool:
    """--color, then NO_COLOR, then FORCE_COLOR (both count when not empty), then the terminal."""
    if when != "auto":
        return when == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE"):
        return True
    return stream_is_terminal and environ.get("TERM", "") != "dumb" and _console_knows_colour()


def _console_knows_colour() -> bool:
    """A console of Windows is asked to understand escape sequences; one that can't would show them."""
    if sys.platform != "win32":
        return True
    import ctypes

    kernel = ctypes.windll.kernel32
    handle = kernel.GetStdHandle(_STD_OUTPUT)
    mode = ctypes.c_uint32()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return False
    return bool(kernel.SetConsoleMode(handle, mode.value | _VIRTUAL_TERMINAL))


def terminal_width(environ: Mapping[str, str]) -> int | None:
    """Columns to cut text to; None where standard output is no terminal and COLUMNS does not say."""
    columns = whole_number(environ.get("COLUMNS", ""))
    if columns is not None and columns > 0:
        return columns
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        return None
