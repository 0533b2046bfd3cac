"""The account of a card, to the byte: the README's "The account" of a card.

Sums of measured figures only; gpusnap's own row is left out. What can't be known is null with its reason, and
what is known only up to a bound is bounded, never guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.fields import ACCOUNTING, CATEGORIES
from gpusnap.reading import Reading, computed, null, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpusnap.collect.harvest import AdapterFacts

    Facts = Mapping[str, Reading]

_SUM = "accounting"
_UNIFIED = null("unified-memory")
_PARTITIONED = null("partitioned")
_NO_SHARED_PART = computed(0, f"{_SUM} charged by process")


class Account:
    """`leaves`: accounting.* without by_category; `by_category`: its eight sums."""

    __slots__ = ("by_category", "leaves")

    def __init__(self, leaves: dict[str, Reading], by_category: dict[str, Reading]) -> None:
        self.leaves = leaves
        self.by_category = by_category


def account(facts: AdapterFacts, rows: Iterable[Facts], *, listed: str | Reading, has_partitions: bool) -> Account:
    """`rows` are the adapter's process rows without gpusnap's own."""
    if has_partitions:
        return Account(
            dict.fromkeys(ACCOUNTING, _PARTITIONED),
            dict.fromkeys(CATEGORIES, _PARTITIONED),
        )
    if facts.unified_only:
        return Account(dict.fromkeys(ACCOUNTING, _UNIFIED), dict.fromkeys(CATEGORIES, _UNIFIED))
    if isinstance(listed, Reading):
        return Account(_unlisted(facts, listed), dict.fromkeys(CATEGORIES, listed))
    rows = list(rows)
    leaves = _account_of_rows(facts, rows)
    return Account(leaves, _by_category(rows))


def reserved_inside_used(figures: Mapping[str, Reading]) -> Reading:
    """The reserved part that lies inside `used`.

    NVML's second memory call counts it apart on some drivers (total = used + free + reserved: 0 of it inside) and
    inside on others (total = used + free: all of it); the sums tell which. 0 when it is not known.
    """
    total, used, free, reserved = (
        figures[f"memory.{name}_bytes"].value if f"memory.{name}_bytes" in figures else None
        for name in ("total", "used", "free", "reserved")
    )
    if not isinstance(reserved, int):
        return computed(0, f"{_SUM} no reserved figure")
    if not (isinstance(total, int) and isinstance(used, int) and isinstance(free, int)):
        return computed(0, f"{_SUM} totals unknown")
    if used + free + reserved == total:
        return computed(0, f"{_SUM} total=used+free+reserved")
    if used + free == total:
        return computed(reserved, f"{_SUM} total=used+free")
    return computed(0, f"{_SUM} totals do not add up")


def _unlisted(facts: AdapterFacts, why: Reading) -> dict[str, Reading]:
    leaves = dict.fromkeys(ACCOUNTING, why)
    leaves["reserved_bytes"] = reserved_inside_used(facts.figures)
    leaves["free_bytes"] = _copied(facts.figures.get("memory.free_bytes"))
    return leaves


def _copied(reading: Reading | None) -> Reading:
    return null("not-exposed") if reading is None else reading


def _account_of_rows(facts: AdapterFacts, rows: list[Facts]) -> dict[str, Reading]:
    attributed = private = unmeasured = 0
    unknown_share: Reading | None = None
    for row in rows:
        vram = row["vram_bytes"]
        if isinstance(vram.value, int):
            attributed += vram.value
            # A driver that charges by process knows no shared part and says nothing of one: all is private.
            shared = row.get("vram_shared_bytes", _NO_SHARED_PART)
            private += vram.value - (shared.value if isinstance(shared.value, int) else 0)
            unknown_share = shared if shared.value is None else unknown_share
        elif reason_of(vram.provenance) not in ("unified-memory", "shared"):  # the shared part counts once, apart
            unmeasured += 1
    clients = facts.shared_clients if isinstance(facts.shared_clients, list) else []
    shared_bytes = sum(client["vram_bytes"] for client in clients if client["vram_bytes"] is not None)
    unmeasured += sum(1 for client in clients if client["vram_bytes"] is None)
    reserved = reserved_inside_used(facts.figures)
    used = _copied(facts.figures.get("memory.used_bytes"))
    rest, most = _remainders(used, attributed + shared_bytes, private, reserved)
    private_part = computed(private, f"{_SUM} sum of private parts")
    if unknown_share is not None:  # what may all be shared bounds nothing
        private_part = most = unknown_share
    return {
        "attributed_bytes": computed(attributed + shared_bytes, f"{_SUM} sum of rows and shared clients"),
        "attributed_private_bytes": private_part,
        "shared_bytes": computed(shared_bytes, f"{_SUM} sum of shared clients"),
        "reserved_bytes": reserved,
        "unattributed_bytes": rest,
        "unattributed_max_bytes": most,
        "free_bytes": _copied(facts.figures.get("memory.free_bytes")),
        "unmeasured_processes": computed(unmeasured, f"{_SUM} rows without a figure"),
    }


def _remainders(used: Reading, attributed: int, private: int, reserved: Reading) -> tuple[Reading, Reading]:
    """(unattributed, its upper bound). More attributed than used happens where a surface counts on both sides."""
    if not isinstance(used.value, int) or not isinstance(reserved.value, int):
        return used, used
    rest = used.value - attributed - reserved.value
    most = used.value - private - reserved.value
    return (
        computed(rest, f"{_SUM} used-attributed-reserved") if rest >= 0 else null("over-attributed"),
        computed(most, f"{_SUM} used-private-reserved") if most >= 0 else null("over-attributed"),
    )


def _by_category(rows: list[Facts]) -> dict[str, Reading]:
    """A category that holds only unmeasured rows is null by its first row's reason; an empty one is 0."""
    sums: dict[str, int] = {}
    reasons: dict[str, Reading] = {}
    for row in rows:
        category = str(row["category"].value)
        vram = row["vram_bytes"]
        if isinstance(vram.value, int):
            sums[category] = sums.get(category, 0) + vram.value
        else:
            reasons.setdefault(category, vram)
    result = {}
    for category in CATEGORIES:
        if category in sums or category not in reasons:
            result[category] = computed(sums.get(category, 0), f"{_SUM} sum of rows")
        else:
            result[category] = Reading(None, reasons[category].provenance)
    return result
