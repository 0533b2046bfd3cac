"""From the words of the command line to a command, and from whatever happens to an exit code.

The forms that cron runs all day, a plain `gpusnap snap` or `gpusnap record FILE`, and `gpusnap --version`, start
without importing typer, which costs as much as the whole sample; they run the same functions.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from gpusnap.cli import exits
from gpusnap.cli.io import CommandError, die_of_broken_pipes, leave, say, write_out
from gpusnap.cli.standard import hold_standard_streams

if TYPE_CHECKING:
    from collections.abc import Sequence


def start(words: Sequence[str]) -> None:
    """Run and leave; never returns with anything else than an exit code, never shows a traceback."""
    command = next((word for word in words if not word.startswith("-")), "")
    try:
        hold_standard_streams()
        if command == "record":
            code = _record(list(words))
        else:
            die_of_broken_pipes()
            code = _run(list(words))
    except CommandError as error:
        say(f"gpusnap {command}: {error}" if command else f"gpusnap: {error}")
        code = error.code
        leave(code)
    except KeyboardInterrupt:
        leave(exits.INTERRUPTED)
    except Exception as fault:  # noqa: BLE001 - the last resort: one line instead of a traceback
        _report(fault)
        leave(exits.INTERNAL)
    try:
        sys.stderr.flush()
    except OSError:  # a full one: Python would end with 120 for it
        leave(code)
    sys.exit(code)


def _run(words: list[str]) -> int:
    if words == ["--version"]:
        import gpusnap

        write_out(f"gpusnap {gpusnap.__version__}\n".encode())
        return exits.OK
    if words == ["snap"]:
        from gpusnap.cli.snapping import SnapRequest, snap

        # The form that cron runs all day: no collection of what is freed at the end anyway, and no taking down of
        # the interpreter once the document is flushed; together a sixth of its CPU.
        gc.disable()
        leave(snap(SnapRequest()))
    from gpusnap.cli.app import run_app

    return run_app(words)


def _record(words: list[str]) -> int:
    """A signal counts from here on; what stands behind the first `--` is a command that typer must not see."""
    from gpusnap.record.signals import Signals

    signals = Signals()
    if len(words) == 2 and words[0] == "record" and (words[1] == "-" or not words[1].startswith("-")):
        from gpusnap.cli.recording import RecordRequest, record

        return record(RecordRequest(words[1], signals))
    command = None
    if "--" in words:
        place = words.index("--")
        words, command = words[:place], words[place + 1 :]
    from gpusnap.cli.app import run_app
    from gpusnap.cli.record import Start

    return run_app(words, Start(signals, command))


def _report(fault: Exception) -> None:
    import os

    if os.environ.get("GPUSNAP_TRACEBACK"):
        import traceback

        traceback.print_exc()
    where = fault.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({where.tb_frame.f_code.co_name}, line {where.tb_lineno})" if where is not None else ""
    say(f"gpusnap: internal error: {type(fault).__name__}: {fault}{place}; GPUSNAP_TRACEBACK=1 shows more")
