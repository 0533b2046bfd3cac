"""Exit codes: the only place with numbers. Documented in the README, each tested."""

from __future__ import annotations

OK = 0
DIFFERENT = 1  # only `diff --exit-code` and `diff --fail-above`
USAGE = 2  # wrong usage, unreadable or invalid input
NOTHING_COLLECTED = 3  # a backend failed and nothing was measured, or --require-gpu; output that can't be written
STRICT = 4  # --strict, and a figure is null for a reason that somebody could mend
INTERNAL = 70
INTERRUPTED = 130
BROKEN_PIPE = 141


def of_signal(number: int) -> int:
    """What a shell says of a command that a signal ended."""
    return 128 + number
