"""Short ways to ask a comparison for one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusnap.model import AdapterDiff, Diff, ProcessDiff, UnattributedDiff


def statuses(result: Diff) -> dict[int, str]:
    """pid -> status; a pid with two rows (a reused one) has both, sorted."""
    found: dict[int, list[str]] = {}
    for row in result["processes"]:
        found.setdefault(row["pid"], []).append(row["status"])
    return {pid: " ".join(sorted(status)) for pid, status in found.items()}


def process_row(result: Diff, pid: int, status: str | None = None) -> ProcessDiff:
    (row,) = [row for row in result["processes"] if row["pid"] == pid and status in (None, row["status"])]
    return row


def card_row(result: Diff, either_id: str) -> AdapterDiff:
    (row,) = [row for row in result["adapters"] if either_id in (row["before_id"], row["after_id"])]
    return row


def card_statuses(result: Diff) -> list[tuple[str | None, str | None, str, str | None]]:
    return [(row["before_id"], row["after_id"], row["status"], row["matched_by"]) for row in result["adapters"]]


def rest(result: Diff, number: int = 0) -> UnattributedDiff:
    return result["unattributed"][number]


def change(row: AdapterDiff | ProcessDiff, leaf: str) -> dict[str, Any]:
    return dict(row["changes"][leaf])


def codes(result: Diff) -> list[str]:
    return [warning["code"] for warning in result["warnings"]]
