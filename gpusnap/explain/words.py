"""Phrases that several findings share: pids in a few characters, moments to the minute, who owns what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.timefmt import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpusnap.model import Process

_MOST_PIDS = 8


def pid_list(pids: Iterable[int]) -> str:
    """`9811-9818`, `12, 40-42`; at most a few stretches, then how many more."""
    stretches: list[list[int]] = []
    for pid in sorted(set(pids)):
        if stretches and pid == stretches[-1][1] + 1:
            stretches[-1][1] = pid
        else:
            stretches.append([pid, pid])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in stretches[:_MOST_PIDS]]
    left = sum(high - low + 1 for low, high in stretches[_MOST_PIDS:])
    return ", ".join(shown) + (f" and {left} more" if left else "")


def minute(moment: str | float) -> str:
    """`2026-11-30 03:12Z`."""
    text = moment if isinstance(moment, str) else rfc3339(moment)
    return f"{text[:10]} {text[11:16]}Z"


def clock(moment: str | float, day_of: str | float) -> str:
    """`03:12Z` on the same day, else the day too."""
    text = minute(moment)
    return text[11:] if text[:10] == minute(day_of)[:10] else text


def owners(rows: Sequence[Process]) -> str:
    """`bob`, `alice and bob`, `3 users`; `an unknown user` where no row says."""
    users = sorted({row["user"] for row in rows if row["user"] is not None})
    if not users:
        return "an unknown user"
    return " and ".join(users) if len(users) <= 2 else f"{len(users)} users"


def oldest_start(rows: Sequence[Process]) -> str | None:
    """The earliest start of these processes."""
    starts = [row["started_at"] for row in rows if row["started_at"] is not None]
    return min(starts) if starts else None


def age_seconds(row: Process, now: str) -> float | None:
    return None if row["started_at"] is None else parse_rfc3339(now) - parse_rfc3339(row["started_at"])


def count_of(number: int, what: str, plural: str | None = None) -> str:
    """`1 process`, `3 processes`."""
    return f"{number} {what}" if number == 1 else f"{number:,} {plural or what + 's'}"
