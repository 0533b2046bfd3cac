"""Which card is meant, beyond a number that others count in another way (gpustack#1633)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.model import Adapter, Snapshot

_CUDA = (
    "{number} as NVML and nvidia-smi count, by PCI address; CUDA counts the fastest card first unless "
    "CUDA_DEVICE_ORDER=PCI_BUS_ID"
)


def identity(document: Snapshot, card: Adapter) -> list[str]:
    """Its UUID or other id, PCI address and driver; and whose order its number follows where that is not one."""
    driver = " ".join(word for word in (card["driver"], card["driver_version"]) if word is not None)
    address = card["pci_address"]
    names = [card["uuid"] or card["id"], None if card["id"] == f"pci:{address}" else address, driver or None]
    lines = [" · ".join(name for name in names if name is not None)]
    if card["index"] is not None and card["partition"] is None and _unlike(document, card):
        lines.append(_CUDA.format(number=card["index"]))
    return lines


def _unlike(document: Snapshot, card: Adapter) -> bool:
    """Whether CUDA may count them in another way: it puts faster cards first, so like ones keep their order."""
    alike = [row for row in document["adapters"] if row["vendor"] == "nvidia" and row["partition"] is None]
    return card["vendor"] == "nvidia" and len({row["model"] for row in alike}) > 1


def has_unlike_cards(document: Snapshot) -> bool:
    return any(_unlike(document, card) for card in document["adapters"])
