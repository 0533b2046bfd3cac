"""Small questions to a row of the document: its provenance, why a figure is null, whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import reason_of
from gpusnap.render.program import program_of
from gpusnap.render.reasons import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.model import Adapter, Process, Snapshot


_MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple", "huawei": "Huawei"}


def entry_of(document: Snapshot, row: Adapter | Process) -> Mapping[str, str]:
    """A row's provenance; a foreign document's index may point nowhere."""
    table, index = document["provenance"], row["provenance"]
    return table[index] if 0 <= index < len(table) else {}


def reason_word(entry: Mapping[str, str], leaf: str) -> str:
    """Why a leaf is null, in words, with the source's own where there are any."""
    return in_words(entry.get(leaf))


def reason(entry: Mapping[str, str], leaf: str) -> str | None:
    """The bare reason, or None where the leaf has a value or no reason was recorded."""
    return reason_of(entry.get(leaf, ""))


def rows_of(document: Snapshot, adapter: str) -> list[Process]:
    """Rows of one card, the largest first, gpusnap's own left out."""
    rows = [row for row in document["processes"] or () if row["adapter"] == adapter and not row["self"]]
    card = next((card for card in document["adapters"] if card["id"] == adapter), None)

    def order(row: Process) -> tuple[int, int]:
        size = held_bytes(card, row)
        return (1 if size is None else -size, row["pid"])

    return sorted(rows, key=order)


def held_bytes(card: Adapter | None, row: Process) -> int | None:
    """What a process holds of a card: its VRAM; with spill where card and system share one memory."""
    vram, spill = row["vram_bytes"], row["spill_bytes"]
    if card is None or card["memory"]["kind"] != "unified" or spill is None:
        return vram
    return spill if vram is None else vram + spill


def card_name(card: Adapter) -> str:
    """`GPU 0`, or the id where there is no index; a partition by its parent's number and its own."""
    if card["kind"] == "npu":
        return f"NPU {card['index']}" if card["index"] is not None else card["id"]
    partition = card["partition"]
    if partition is not None:
        return f"partition {partition['profile'] or card['id']}"
    return f"GPU {card['index']}" if card["index"] is not None else card["id"]


def model_name(card: Adapter) -> str:
    """`NVIDIA GeForce RTX 4090`; else what is known: `AMD, model unknown (amdgpu, 0000:03:00.0)`."""
    if card["model"]:
        return card["model"]
    facts = ", ".join(fact for fact in (card["driver"], card["pci_address"]) if fact is not None)
    maker = _MAKERS.get(card["vendor"])
    return ("" if maker is None else f"{maker}, ") + "model unknown" + (f" ({facts})" if facts else "")


def program(row: Process) -> str | None:
    """The program's name for people; None where nothing says."""
    return program_of(row)


def who(row: Process) -> str:
    """`llama-server (pid 4711, alice)`; a name that is not known is not made up."""
    said = [f"pid {row['pid']}"]
    if row["user"] is not None:
        said.append(row["user"])
    return f"{program(row) or 'a process'} ({', '.join(said)})"
