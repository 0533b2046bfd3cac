"""What a command of the tests finds around it, so that no test depends on whose machine and shell it runs in.

gpusnap sees no card but those that a test plays to it, and nothing that its caller has set: colours, widths,
encodings, folders of another /proc.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.standin import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
_CALLERS = ("GPUSNAP_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "LC_", "LANG", "PYTHON", "TZ")


def surroundings(more: Mapping[str, str] | None = None, *, this_machine: bool = False) -> dict[str, str]:
    """The environment of a child process, `more` above all; `this_machine` leaves it the cards that are here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CALLERS)}
    cards = {} if this_machine else no_cards()
    return kept | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"} | cards | dict(more or {})


def no_cards() -> dict[str, str]:
    """Variables of a driver without cards, and of a /sys without devices."""
    return Scenario([]).environment(Path(_folder().name))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gpusnap-tests-")
