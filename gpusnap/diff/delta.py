"""What changed between two rows that are the same card or process: field by field, with both provenances.

A change is a value that differs, a figure that became known or unknown, or a figure whose source is another
one now (equal or not, it was not counted alike). A delta exists only where both sides were measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.diff import leaves
from gpusnap.reading import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.model import Change, Number, Value

    Row = Mapping[str, object]
    # A value and its provenance.
    Side = tuple[object, str | None]

# The side that a row is missing from.
ABSENT = (None, "null:none")


class Sources:
    """The provenance entries of both documents; what differs is found once per pair of entries, not per row."""

    __slots__ = ("_after", "_before", "_differing")

    def __init__(self, before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]) -> None:
        self._before = before
        self._after = after
        self._differing: dict[tuple[int, int], frozenset[str]] = {}

    def before(self, row: Row) -> Mapping[str, str]:
        return _entry(self._before, cast("int", row["provenance"]))

    def after(self, row: Row) -> Mapping[str, str]:
        return _entry(self._after, cast("int", row["provenance"]))

    def differing(self, before: Row, after: Row) -> frozenset[str]:
        """Leaves that come from another source, or are null for another reason, on the other side."""
        key = (before["provenance"], after["provenance"])
        found = self._differing.get(key)  # type: ignore[arg-type]
        if found is None:
            old, new = self.before(before), self.after(after)
            found = frozenset(leaf for leaf in old.keys() | new.keys() if _differs(old.get(leaf), new.get(leaf)))
            self._differing[key] = found  # type: ignore[index]
        return found

    def changed(self) -> list[tuple[str, str, str]]:
        """(leaf, before, after) of every figure that was measured on both sides, but not by the same source."""
        found = []
        for (old, new), differing in self._differing.items():
            before, after = _entry(self._before, old), _entry(self._after, new)
            both = ((leaf, before[leaf], after[leaf]) for leaf in differing)
            found += [item for item in both if not item[1].startswith("null:") and not item[2].startswith("null:")]
        return found


class Differ:
    """Compares rows of two documents; `restarted` says when a counter that went down did so by restarting."""

    __slots__ = ("_backwards", "_other_boot", "sources")

    def __init__(self, sources: Sources, *, other_boot: bool, backwards: bool) -> None:
        self.sources = sources
        self._other_boot = other_boot
        self._backwards = backwards

    def processes(self, before: Row, after: Row) -> dict[str, Change]:
        return self._changes(before, after, leaves.PROCESS)

    def adapters(self, before: Row, after: Row) -> dict[str, Change]:
        return self._changes(before, after, leaves.ADAPTER)

    def _changes(self, before: Row, after: Row, compared: leaves.Compared) -> dict[str, Change]:
        resourced = self.sources.differing(before, after)
        olds, news = compared.values_of(before), compared.values_of(after)
        if olds == news and not resourced:
            return {}
        found = []
        for key, old, new in zip(compared.keys, olds, news, strict=True):
            if old != new:
                found += _differing_leaves(key, before, after, compared)
        if resourced:
            found = sorted({*found, *(resourced & compared.order.keys())}, key=compared.order.__getitem__)
        if not found:
            return {}
        old_sources, new_sources = self.sources.before(before), self.sources.after(after)
        return {
            leaf: self._compare(
                leaf,
                (value_at(before, leaf), source_of(old_sources, leaf)),
                (value_at(after, leaf), source_of(new_sources, leaf)),
            )
            for leaf in found
        }

    def _compare(self, leaf: str, before: Side, after: Side) -> Change:
        delta = subtract(before[0], after[0]) if leaves.has_delta(leaf) else None
        if leaf in leaves.RESETTABLE and delta is not None and self._restarted(delta):
            return _change(before, after, None, reset=True)
        return _change(before, after, delta)

    def _restarted(self, delta: Number) -> bool:
        """A counter that only grows restarted if it fell while time went on, or if the machine booted."""
        return self._other_boot or (delta > 0 if self._backwards else delta < 0)


def _differing_leaves(key: str, before: Row, after: Row, compared: leaves.Compared) -> list[str]:
    """The key itself, or the leaves inside the object that it holds."""
    if key not in compared.groups:
        return [key]
    found = []
    for group, names in compared.groups[key]:
        old, new = value_at(before, group), value_at(after, group)
        found += [f"{group}.{name}" for name in names if _inner(old, name) != _inner(new, name)]
    return found


def lone_changes(row: Row, sources: Mapping[str, str], wanted: Sequence[str], appeared: bool) -> dict[str, Change]:
    """The figures of a row that is on one side only; bytes have a delta, so that deltas sum over all rows.

    The first of `wanted` is listed even when it was not measured: unknown memory of a new process is news.
    """
    changes: dict[str, Change] = {}
    for leaf in wanted:
        value = value_at(row, leaf)
        if value is None and leaf != wanted[0]:
            continue
        there = (value, source_of(sources, leaf))
        if appeared:
            changes[leaf] = _change(ABSENT, there, subtract(0, value) if leaves.is_bytes(leaf) else None)
        else:
            changes[leaf] = _change(there, ABSENT, subtract(value, 0) if leaves.is_bytes(leaf) else None)
    return changes


def decides(changes: Mapping[str, Change], min_bytes: int = 0) -> bool:
    """Whether these changes make a row `changed`: a deciding leaf differs, by `min_bytes` where it is bytes."""
    for leaf, change in changes.items():
        if not leaves.decides(leaf) or change["before"] == change["after"]:
            continue
        delta = change["delta"]
        if delta is None or not leaves.is_bytes(leaf) or abs(delta) >= min_bytes:
            return True
    return False


def subtract(old: object, new: object) -> Number | None:
    """after - before of two figures; None where either was not measured or is no number."""
    if isinstance(old, bool) or isinstance(new, bool):
        return None
    if isinstance(old, int) and isinstance(new, int):
        return new - old
    if isinstance(old, int | float) and isinstance(new, int | float):
        return round(new - old, 6)
    return None


def value_at(row: Row, leaf: str) -> object:
    """`memory.used_bytes` of a row; None where the object around it is null."""
    if "." not in leaf:
        return row[leaf]
    value: object = row
    for key in leaf.split("."):
        value = _inner(value, key)
    return value


def source_of(sources: Mapping[str, str], leaf: str) -> str | None:
    """The provenance of a leaf, or of the null object around it; None: none was recorded."""
    found = sources.get(leaf)
    if found is None and "." in leaf:
        around = sources.get(leaf.partition(".")[0])
        return around if around is not None and around.startswith("null:") else None
    return found


def _change(before: Side, after: Side, delta: Number | None, *, reset: bool = False) -> Change:
    return {
        "before": cast("Value", before[0]),
        "after": cast("Value", after[0]),
        "delta": delta,
        "reset": reset,
        "before_provenance": before[1],
        "after_provenance": after[1],
    }


def _inner(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _entry(entries: Sequence[Mapping[str, str]], index: int) -> Mapping[str, str]:
    """Readers don't re-check: an index that points nowhere is "no reason recorded"."""
    return entries[index] if 0 <= index < len(entries) else {}


def _differs(old: str | None, new: str | None) -> bool:
    """Another source or another reason; the words behind a reason may differ (they can name a pid or an errno)."""
    if old is None or new is None or old == new:
        return False
    old_reason = reason_of(old)
    return old_reason is None or old_reason != reason_of(new)
