"""Small questions to a row of the document: its provenance, why a figure is null, whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.model import Adapter, Process, Snapshot

NO_REASON = "no reason recorded"

# The closed list of the contract, in words for people.
WORDS = {
    "none": "there is none",
    "not-supported": "not supported by this card or driver",
    "not-exposed": "this driver does not expose it",
    "no-permission": "no permission",
    "other-pid-namespace": "in another PID namespace",
    "exited": "exited while reading",
    "device-lost": "the card is lost",
    "device-suspended": "the card sleeps and is not woken",
    "device-busy": "the card was busy",
    "needs-two-samples": "needs two samples (--window)",
    "not-requested": "not asked for",
    "not-probed": "not asked for (--probe)",
    "unified-memory": "unified memory has no such split",
    "wddm": "Windows' driver model (WDDM) hides it from NVML",
    "wsl": "WSL hides it",
    "partitioned": "counted on the card's partitions",
    "shared": "shared, cannot be split",
    "ambiguous": "ambiguous",
    "out-of-range": "the driver's figure was out of range",
    "over-attributed": "more is attributed than used",
    "contradiction": "it contradicts a measurement",
    "unknown-format": "unknown format",
    "timeout": "the driver did not answer in time",
    "failed": "reading it failed",
}


def entry_of(document: Snapshot, row: Adapter | Process) -> Mapping[str, str]:
    """A row's provenance; a foreign document's index may point nowhere."""
    table, index = document["provenance"], row["provenance"]
    return table[index] if 0 <= index < len(table) else {}


def reason_word(entry: Mapping[str, str], leaf: str) -> str:
    """Why a leaf is null, in words, with the source's own where there are any."""
    provenance = entry.get(leaf, "")
    reason = reason_of(provenance)
    if reason is None:
        return NO_REASON
    _, _, words = provenance.partition(" ")
    said = WORDS.get(reason, reason)
    return f"{said} ({words})" if words else said


def reason(entry: Mapping[str, str], leaf: str) -> str | None:
    """The bare reason, or None where the leaf has a value or no reason was recorded."""
    return reason_of(entry.get(leaf, ""))


def rows_of(document: Snapshot, adapter: str) -> list[Process]:
    """Rows of one card, the largest first, gpusnap's own left out."""
    rows = [row for row in document["processes"] or () if row["adapter"] == adapter and not row["self"]]
    return sorted(
        rows, key=lambda row: (-(row["vram_bytes"] if row["vram_bytes"] is not None else -1), row["pid"])
    )


def card_name(card: Adapter) -> str:
    """`GPU 0`, or the id where there is no index; a partition by its parent's number and its own."""
    if card["kind"] == "npu":
        return f"NPU {card['index']}" if card["index"] is not None else card["id"]
    partition = card["partition"]
    if partition is not None:
        return f"partition {partition['profile'] or card['id']}"
    return f"GPU {card['index']}" if card["index"] is not None else card["id"]


def full_name(card: Adapter) -> str:
    return f"{card_name(card)}  {card['model']}" if card["model"] is not None else card_name(card)


def who(row: Process) -> str:
    """`llama-server (pid 4711, alice)`; a name that is not known is not made up."""
    said = [f"pid {row['pid']}"]
    if row["user"] is not None:
        said.append(row["user"])
    return f"{row['name'] or 'a process'} ({', '.join(said)})"
