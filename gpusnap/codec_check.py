"""What the types of a snapshot can't say: times that are times, indices that name an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.timefmt import are_times, parse_rfc3339

if TYPE_CHECKING:
    from gpusnap.model import Snapshot

# A thousand years of uptime.
_MAX_SECONDS = 1 << 35
_A_TIME = "expected a time like 2026-11-30T10:00:00.000Z"


def fault_in(document: Snapshot) -> str | None:
    """`PATH: expected ..`, or None for a document in which all is well."""
    return _wrong_time(document) or _wrong_index(document)


def _wrong_time(document: Snapshot) -> str | None:
    if not _is_time(document["taken_at"]):
        return f"taken_at: {_A_TIME}"
    uptime = document["uptime_seconds"]
    if uptime is not None and not 0 <= uptime < _MAX_SECONDS:
        return "uptime_seconds: expected seconds since boot"
    processes = document["processes"] or ()
    if are_times(row["started_at"] for row in processes):
        return None
    starts = [row["started_at"] for row in processes]
    wrong = next(number for number, start in enumerate(starts) if start is not None and not _is_time(start))
    return f"processes[{wrong}].started_at: {_A_TIME}"


def _is_time(text: str) -> bool:
    try:
        parse_rfc3339(text)
    except (ValueError, OverflowError):
        return False
    return True


def _wrong_index(document: Snapshot) -> str | None:
    """Another row's entry would give a figure a source that is not its own."""
    entries = range(len(document["provenance"]))
    for name, rows in (("adapters", document["adapters"]), ("processes", document["processes"] or ())):
        for number, row in enumerate(rows):
            if row["provenance"] not in entries:
                return f"{name}[{number}].provenance: expected an index into the {len(entries)} entries"
    return None
