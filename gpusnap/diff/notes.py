"""The comparison's warnings: what could not be told and why, one line a cause and card.

Codes: other-host, other-boot, unknown-boot, unknown-start, card-missing, card-lost, list-unavailable,
list-partial, card-unread, other-card, ambiguous-model, source-changed, clock-step, reversed-order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.diff.leaves import decides
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.diff.match import Boots, Pair
    from gpusnap.model import Snapshot, Warning_

_NAMED_PIDS = 8
# Two clocks are read one after the other, and NTP may slew 500 ppm: below this nothing was set.
_CLOCK_TOLERANCE_SECONDS = 2.0
_CLOCK_TOLERANCE = 0.001

# Causes of `unknown` rows that hold for one card; {side} is where a row is missing.
_CAUSES = {
    "start": ("unknown-start", "without a known start stamp a pid may be another process"),
    "card-unlisted": ("card-missing", "its own snapshot has no card of this id"),
    "card-missing": ("card-missing", "the {side} snapshot does not have this card"),
    "card-lost": ("card-lost", "the card is lost in the {side} snapshot"),
    "list-unavailable": ("list-unavailable", "the {side} snapshot could not list the processes of this card"),
    "list-partial": ("list-partial", "the {side} snapshot lists the processes of this card only partly"),
}


class Notes:
    """Collects warnings; rows of one cause and card become one."""

    def __init__(self) -> None:
        self._document: list[Warning_] = []
        self._rows: dict[tuple[str, str, str], list[int]] = {}

    def add(self, code: str, message: str, adapter: str | None = None) -> None:
        self._document.append({"code": code, "message": message, "adapter": adapter, "pid": None})

    def unknown_row(self, why: str, adapter: str, pid: int, missing_side: str) -> None:
        if why in _CAUSES:
            side = "" if why == "start" else missing_side
            self._rows.setdefault((why, side, adapter), []).append(pid)

    def list(self) -> list[Warning_]:
        warnings = list(self._document)
        for (why, side, adapter), pids in sorted(self._rows.items()):
            code, words = _CAUSES[why]
            warnings.append(_row_warning(code, words.format(side=side), adapter, sorted(set(pids))))
        return warnings


def _row_warning(code: str, words: str, adapter: str, pids: list[int]) -> Warning_:
    named = ", ".join(map(str, pids[:_NAMED_PIDS])) + (", …" if len(pids) > _NAMED_PIDS else "")
    subject = f"pid {named} is unknown" if len(pids) == 1 else f"{len(pids)} pids are unknown ({named})"
    one = pids[0] if len(pids) == 1 else None
    return {"code": code, "message": f"{subject}: {words}", "adapter": adapter, "pid": one}


def note_boots(notes: Notes, boots: Boots, before: Snapshot, after: Snapshot) -> None:
    hosts = before["host"]["hostname"], after["host"]["hostname"]
    if boots == "other-host":
        notes.add("other-host", f"two host names ({hosts[0]}, {hosts[1]}): no process is taken for the same")
    elif boots == "other":
        notes.add("other-boot", "the machine was booted in between: every process is another one")
    elif boots == "unknown":
        side = "before" if before["boot_id"] is None else "after"
        notes.add(
            "unknown-boot", f"the {side} snapshot does not know its boot: no process can be told to be the same"
        )


def elapsed_seconds(boots: Boots, before: Snapshot, after: Snapshot) -> float | None:
    """By the boot clock, never by the wall clock; None where there is no common one."""
    old, new = before["uptime_seconds"], after["uptime_seconds"]
    if boots != "same" or old is None or new is None:
        return None
    return round(new - old, 3)


def note_clocks(notes: Notes, elapsed: float | None, before: Snapshot, after: Snapshot) -> None:
    """A wall clock that was set is told from a gap by the boot clock (prestonbrown/helixscreen#1218)."""
    if elapsed is None:
        return
    if elapsed < 0:
        notes.add("reversed-order", "the first snapshot was taken after the second: changes read backwards")
    wall = parse_rfc3339(after["taken_at"]) - parse_rfc3339(before["taken_at"])
    step = wall - elapsed
    if abs(step) > max(_CLOCK_TOLERANCE_SECONDS, abs(elapsed) * _CLOCK_TOLERANCE):
        notes.add(
            "clock-step", f"the wall clock was set by {step:+.0f} s in between; elapsed time is the boot clock's"
        )


def note_cards(notes: Notes, pairs: list[Pair]) -> None:
    """Pairs that are weaker than a UUID, and cards that nothing could tell apart."""
    for pair in pairs:
        if pair.before is None or pair.after is None:
            continue
        old, new = pair.before["uuid"], pair.after["uuid"]
        if None not in (old, new) and old != new:
            by = {"pci": "its PCI address", "model": "its model alone"}.get(pair.by or "", "elimination")
            notes.add("other-card", f"matched by {by}, but the UUIDs differ ({old}, {new})", pair.after["id"])
    lone = [pair for pair in pairs if not pair.is_matched and pair.either["partition"] is None]
    gone = {pair.either["model"] for pair in lone if pair.after is None}
    come = {pair.either["model"] for pair in lone if pair.before is None}
    for model in sorted(model for model in gone & come if model is not None):
        notes.add("ambiguous-model", f"several cards are called {model} and nothing else tells which is which")


# The backends that read the cards of one vendor only; the others may read anybody's.
_VENDOR = {
    "nvml": "nvidia",
    "tegra": "nvidia",
    "amdgpu": "amd",
    "intel": "intel",
    "ascend": "huawei",
    "apple": "apple",
}


def note_unread_cards(notes: Notes, pairs: list[Pair], before: Snapshot, after: Snapshot) -> None:
    """A card that one side lacks because its backend failed there was neither pulled out nor put in."""
    for pair in pairs:
        if pair.is_matched:
            continue
        side, document = ("before", before) if pair.before is None else ("after", after)
        for backend in document["backends"]:
            vendor = _VENDOR.get(backend["name"])
            if backend["status"] in ("ok", "absent") or vendor not in (None, pair.either["vendor"]):
                continue
            why = ": ".join(text for text in (backend["status"], backend["detail"]) if text)
            words = f"may be there all the same: {backend['name']} could not read the {side} snapshot ({why})"
            notes.add("card-unread", f"the card {words}", pair.either["id"])


def note_sources(notes: Notes, changed: Iterable[tuple[str, str, str]]) -> None:
    """Memory that was counted another way (NVML's two memory calls: gpustat#141) is not one scale."""
    for leaf, old, new in sorted(set(changed)):
        if decides(leaf):
            notes.add("source-changed", f"{leaf} comes from another source now ({old} before, {new} after)")
