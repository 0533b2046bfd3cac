"""Compute partitions of an MI300 (DPX, CPX ...): several KFD nodes behind one PCI function.

Each has a render node of its own, by which descriptors are told apart; its `cardN` are platform devices
(amdgpu_xcp_drv.c). Only KFD says how much memory a partition has; nothing says how much of it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import AdapterFacts
from gpusnap.reading import null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.kfd import KfdNode


def partitions_of(nodes: Iterable[KfdNode], addresses: Iterable[str]) -> dict[str, list[KfdNode]]:
    """PCI address -> its nodes, where there is more than one."""
    known = set(addresses)
    by_card: dict[str, list[KfdNode]] = {}
    for node in nodes:
        by_card.setdefault(card_of(node, known), []).append(node)
    return {address: found for address, found in by_card.items() if len(found) > 1 and address in known}


def card_of(node: KfdNode, addresses: set[str]) -> str:
    """The card's PCI address. On GFX 9.4.3 the function digit carries the partition's number."""
    if node.address in addresses:
        return node.address
    return f"{node.address[:-1]}0"


def partition_id(node: KfdNode) -> str:
    """Stable while the partition mode stays: the number of the render node."""
    return f"amdgpu-index:{node.render_minor}"


def partition_facts(card: AdapterFacts, node: KfdNode, place: int, profile: str | None) -> AdapterFacts:
    """An adapter for one partition; what its card alone can say is `partitioned`."""
    facts = AdapterFacts(partition_id(node))
    facts.identity = {
        "id": facts.key,
        "index": place,
        "vendor": "amd",
        "model": card.identity["model"],
        "kind": "partition",
        "pci_address": null("partitioned"),
        "uuid": null("partitioned"),
        "driver": "amdgpu",
        "driver_version": card.identity["driver_version"],
        "parent": card.identity["id"],
        "partition": {"gpu_instance": place, "compute_instance": None, "profile": profile},
        "health": card.identity.get("health"),
        "power_state": card.identity["power_state"],
    }
    facts.figures = dict.fromkeys(card.figures, null("partitioned"))
    facts.figures["memory.total_bytes"] = node.memory
    facts.figures["memory.kind"] = card.figures["memory.kind"]
    return facts
