"""What a rule sees: one card of one snapshot, who reads, and what live surroundings add."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.rows import card_name, entry_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.model import Adapter, Finding, Holder, Process, Snapshot, Subject


class Viewer(NamedTuple):
    """Who reads the advice; None where that is not known (a file of another machine)."""

    uid: int | None = None
    user: str | None = None

    def may_end(self, rows: Sequence[Process] | Sequence[Holder]) -> bool:
        """They are the reader's own, or the reader is root."""
        if self.uid == 0:
            return True
        return self.user is not None and bool(rows) and all(row["user"] == self.user for row in rows)


class Parent(NamedTuple):
    pid: int
    name: str | None


class Surroundings(NamedTuple):
    """Facts about processes that the document has no place for; only a live run has them."""

    parents: Mapping[int, Parent] = {}
    # Pids with a listening socket; None: nobody looked.
    listening: frozenset[int] | None = None
    # Pids whose sockets could not be looked into: another user's.
    unseen: frozenset[int] = frozenset()


class Found(NamedTuple):
    """A finding, and the sentence that would head the whole answer if this finding is the first."""

    finding: Finding
    headline: str | None = None
    # The processes that it is about, where they are several.
    pids: tuple[int, ...] = ()

    def concerns(self, pid: int) -> bool:
        return pid in self.pids or self.finding["subject"]["pid"] == pid


class CardView:
    """One card. Figures are None where they were not measured."""

    def __init__(
        self,
        document: Snapshot,
        card: Adapter,
        viewer: Viewer = Viewer(),  # noqa: B008 - immutable
        around: Surroundings = Surroundings(),  # noqa: B008
    ) -> None:
        self.document = document
        self.card = card
        self.viewer = viewer
        self.around = around
        self.entry = entry_of(document, card)
        self.rows = rows_of(document, card["id"])
        self.name = card_name(card)
        memory = card["memory"]
        self.used = memory["used_bytes"]
        self.total = memory["total_bytes"]
        self.busy = card["load"]["gpu_percent"]
        self.unified = memory["kind"] == "unified"

    @property
    def unattributed(self) -> int | None:
        return self.card["accounting"]["unattributed_bytes"]

    @property
    def listed(self) -> bool:
        return self.card["processes_listed"] != "unavailable"

    @property
    def is_full(self) -> bool:
        return self.used is not None and self.total is not None and self.used >= at.FULL_SHARE * self.total

    @property
    def is_bounded(self) -> bool:
        """Something is not measured or could not be looked into: the unattributed rest is an upper bound."""
        unmeasured, unreadable = self.card["accounting"]["unmeasured_processes"], self.card["unreadable_pids"]
        return (unmeasured is not None and unmeasured > 0) or (unreadable is not None and unreadable > 0)

    @property
    def is_idle(self) -> bool:
        """Measured at 0 %; what was not measured is not idle (nvtop#256: a MIG slice has no figure)."""
        return self.busy is not None and self.busy == 0

    def unexplained_limit(self) -> float:
        return max(at.UNATTRIBUTED_BYTES, at.UNATTRIBUTED_SHARE * (self.total if self.total is not None else 0))

    def unlisted(self) -> list[Holder]:
        """Holders of the card's device files that the driver does not list as processes."""
        listed = {row["pid"] for row in self.document["processes"] or () if row["adapter"] == self.card["id"]}
        return [holder for holder in self.card["holders"] or () if holder["pid"] not in listed]

    def siblings(self) -> list[Adapter]:
        return [
            card
            for card in self.document["adapters"]
            if card["id"] != self.card["id"] and card["model"] == self.card["model"] and card["partition"] is None
        ]

    def parent_of(self, pid: int, ppid: int | None = None) -> Parent | None:
        known = self.around.parents.get(pid)
        if known is not None:
            return known
        return None if ppid is None else Parent(ppid, None)

    def subject(self, row: Process | None = None) -> Subject:
        if row is None:
            return {
                "kind": "adapter",
                "adapter": self.card["id"],
                "pid": None,
                "start_ticks": None,
                "source": None,
            }
        return {
            "kind": "process",
            "adapter": self.card["id"],
            "pid": row["pid"],
            "start_ticks": row["start_ticks"],
            "source": None,
        }
