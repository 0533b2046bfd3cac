"""NVIDIA cards that can't or must not be asked: every key, no figure, and the reason in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import AdapterFacts
from gpusnap.collect.nvml_ask import LOST, reason
from gpusnap.fields import ADAPTER_FIGURES
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.collect.nvml_kernel import CardFile
    from gpusnap.host import NvmlError


def lost_card(index: int, error: NvmlError, card: CardFile | None, driver: str | None) -> AdapterFacts:
    """A card whose handle can't be had; `card` is what the kernel module still says of it, by elimination."""
    health = "lost" if error.code in LOST else "error"
    return _silent(index, card, reason(error), driver, health=health, power_state="unknown")


def asleep_card(index: int, card: CardFile, driver: str | None) -> AdapterFacts:
    why = null("device-suspended")
    return _silent(index, card, why, driver, health="unknown", power_state="suspended")


def _silent(
    index: int, card: CardFile | None, why: Reading, driver: str | None, *, health: str, power_state: str
) -> AdapterFacts:
    address = card.pci_address if card is not None else None
    uuid = card.uuid if card is not None and card.uuid is not None else why
    key = address if address is not None else f"nvml-index:{index}"
    place = f"pci:{address}" if address is not None else key
    facts = AdapterFacts(key)
    facts.identity = {
        "id": place if uuid.value is None else uuid.value,
        "index": index,
        "vendor": "nvidia",
        "model": card.model if card is not None and card.model is not None else why,
        "kind": "discrete",
        "uuid": uuid,
        "pci_address": address if address is not None else why,
        "driver": "nvidia",
        "driver_version": driver,
        "health": health,
        "power_state": power_state,
    }
    facts.figures = dict.fromkeys(ADAPTER_FIGURES, why)
    facts.figures["memory.kind"] = why
    facts.lists_processes = True
    facts.processes_listed = why
    facts.shared_clients = null("not-exposed")
    return facts
