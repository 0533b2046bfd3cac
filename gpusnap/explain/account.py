"""The account of a card in one sentence, and its parts: what all used bytes are, adding up to the byte.

"15.6 of 16.0 GiB used: model weights 8.4, KV cache 5.0, its context 0.4, Firefox 0.8, desktop 0.6, 0.4
unattributed." Rounded figures add up to the rounded total: the largest remainders are rounded up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.rows import card_name, entry_of, held_bytes, program, reason, reason_word, rows_of
from gpusnap.explain.words import age_seconds, count_of
from gpusnap.render.units import (
    apportion,
    format_bytes,
    format_duration,
    format_number,
    format_of_total,
    pick_unit,
)

if TYPE_CHECKING:
    from gpusnap.model import Adapter, Process, Snapshot

MOST_PARTS = 7
LEFTOVER = "accounting.unattributed_bytes"


class Part(NamedTuple):
    label: str
    bytes: int


def parts_of(document: Snapshot, card: Adapter) -> list[Part]:
    """What listed processes hold, the largest first; `Σ = attributed_bytes`."""
    sums: dict[str, int] = {}
    for row in rows_of(document, card["id"]):
        for label, count in _split(row):
            sums[label] = sums.get(label, 0) + count
    shared = card["accounting"]["shared_bytes"]
    if shared is not None and shared > 0:
        sums["shared by several"] = shared
    parts = [Part(label, count) for label, count in sums.items() if count > 0]
    return sorted(parts, key=lambda part: -part.bytes)


def _split(row: Process) -> list[tuple[str, int]]:
    held = row["vram_bytes"]
    if held is None:
        return []
    llm = row["llm"]
    if llm is None or llm["weights_bytes"] is None:
        return [(_label(row), held)]
    known = [("model weights", llm["weights_bytes"])]
    if llm["kv_cache_bytes"] is not None:
        known.append(("KV cache", llm["kv_cache_bytes"]))
    if llm["compute_bytes"] is not None:
        known.append(("compute buffers", llm["compute_bytes"]))
    rest = held - sum(count for _, count in known)
    if rest < 0:
        return [(_label(row), held)]
    name = "its context" if llm["kv_cache_bytes"] is not None else "its cache and context"
    return [*known, (name, rest)]


def _label(row: Process) -> str:
    if row["category"] == "desktop":
        return "desktop"
    name = program(row) or f"pid {row['pid']}"
    return name.capitalize() if row["category"] == "browser" else name


def process_sentence(document: Snapshot, rows: list[Process]) -> str:
    """`llama-server (pid 4711, alice, up 3 h 12 min) holds 13.8 GiB of GPU 0: model weights 8.4, ..`

    Where memory is unified the sum is told: a GPU's system memory is what it holds there.
    """
    first = rows[0]
    said = [f"pid {first['pid']}"]
    if first["user"] is not None:
        said.append(first["user"])
    age = age_seconds(first, document["taken_at"])
    if age is not None:
        said.append(f"up {format_duration(age)}")
    cards = {card["id"]: card for card in document["adapters"]}
    held = " and ".join(_held(row, cards.get(row["adapter"])) for row in rows)
    return f"{program(first) or 'a process'} ({', '.join(said)}) holds {held}."


def _held(row: Process, card: Adapter | None) -> str:
    name = row["adapter"] if card is None else card_name(card)
    spill = row["spill_bytes"]
    if card is not None and card["memory"]["kind"] == "unified" and spill is not None and spill > 0:
        size = held_bytes(card, row)
        return f"{format_bytes(size)} of the memory that {name} shares with the system"
    size = row["vram_bytes"]
    if size is None:
        return f"an unknown amount of {name}"
    parts = _split(row)
    unit = pick_unit((size,))
    if len(parts) < 2:
        return f"{format_bytes(size)} of {name}"
    numbers = apportion([count for _, count in parts], size, unit)
    shown = ", ".join(f"{label} {number}" for (label, _), number in zip(parts, numbers, strict=True))
    return f"{format_bytes(size)} of {name}: {shown}"


def sentence(document: Snapshot, card: Adapter) -> str:
    """The answer for one card; what is not known is said to be not known.

    Where the card shares the system's memory, most of a model lies there: that is said beside its carve-out.
    """
    memory = card["memory"]
    said = _account(document, card)
    if memory["kind"] != "unified" or memory["shared_used_bytes"] is None:
        return said
    beside = format_of_total(memory["shared_used_bytes"], memory["shared_total_bytes"])
    return f"{said}; {beside} of the system's memory"


def _account(document: Snapshot, card: Adapter) -> str:
    used = card["memory"]["used_bytes"]
    if used is None:
        return _without_a_figure(document, card)
    total, books = card["memory"]["total_bytes"], card["accounting"]
    head = f"{format_of_total(used, total)} used"
    if reason(entry_of(document, card), LEFTOVER) == "partitioned":
        return f"{head}, see its partitions"
    if card["processes_listed"] == "unavailable":
        why = reason_word(entry_of(document, card), "processes_listed")
        return f"{head}; it can't be attributed, since processes can't be listed: {why}"
    if used == 0:
        return head
    unit = pick_unit((total, used))
    parts = _at_most(parts_of(document, card))
    inside = books["reserved_bytes"]
    if inside is not None and inside > 0:
        parts.append(Part("reserved by the driver", inside))
    rest = books["unattributed_bytes"]
    if rest is None:
        shown = [f"{part.label} {format_number(part.bytes, unit)}" for part in parts]
        if not parts:
            return head + _held_beside(document, card)
        most = books["unattributed_max_bytes"]
        shown.append(
            f"0 to {format_number(most, unit)} unattributed" if most is not None else "the rest is unknown"
        )
        return f"{head}: " + ", ".join(shown)
    numbers = apportion([*(part.bytes for part in parts), rest], used, unit)
    shown = [f"{part.label} {number}" for part, number in zip(parts, numbers, strict=False)]
    if rest > 0:
        shown.append(f"{_upto(card)}{numbers[-1]} unattributed")
    unmeasured = books["unmeasured_processes"]
    if unmeasured is not None and unmeasured > 0:
        shown.append(f"{count_of(unmeasured, 'process', 'processes')} not measured")
    return f"{head}: " + ", ".join(shown) if shown else head


def _held_beside(document: Snapshot, card: Adapter) -> str:
    """Where used bytes can't be split (a Mac's): what processes hold, without a sum that nobody vouches for."""
    sizes = [held_bytes(card, row) for row in rows_of(document, card["id"])]
    known = [size for size in sizes if size is not None]
    if not known:
        return ", whose is not known"
    holders = count_of(len(known), "process holds", "processes hold")
    return f"; {holders} {format_bytes(sum(known))}, the rest is unknown"


def _without_a_figure(document: Snapshot, card: Adapter) -> str:
    why = reason_word(entry_of(document, card), "memory.used_bytes")
    rows = rows_of(document, card["id"])
    held = [size for size in (held_bytes(card, row) for row in rows) if size is not None]
    said = f"How much of {card_name(card)} is used is not known: {why}"
    if held:
        said += f"; {count_of(len(held), 'process holds', 'processes hold')} {format_bytes(sum(held))}"
    return said


def _at_most(parts: list[Part]) -> list[Part]:
    if len(parts) <= MOST_PARTS:
        return parts
    small = parts[MOST_PARTS - 1 :]
    return [*parts[: MOST_PARTS - 1], Part(count_of(len(small), "other"), sum(part.bytes for part in small))]


def _upto(card: Adapter) -> str:
    unmeasured, unreadable = card["accounting"]["unmeasured_processes"], card["unreadable_pids"]
    bounded = (unmeasured is not None and unmeasured > 0) or (unreadable is not None and unreadable > 0)
    return "up to " if bounded else ""
