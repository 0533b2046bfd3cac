"""A card on the bus that no driver has taken, or that was given to a virtual machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found

PASSED_ON = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})


def find(view: CardView) -> Iterator[Found]:
    card = view.card
    if card["pci_address"] is None or view.used is not None or card["health"] == "lost":
        return
    if card["driver"] is None:
        yield found(
            "unclaimed-card",
            "warning",
            view.subject(),
            "on the bus, but no driver has taken it",
            [f"PCI address {card['pci_address']}, vendor {card['vendor']}"],
            [
                f"See what the kernel says: lspci -nnk -s {card['pci_address']}; journalctl -k | grep "
                f"{card['pci_address']}",
                "Usual causes: the driver is not installed for this kernel, secure boot refuses it, or "
                "the card failed.",
            ],
        )
    elif card["driver"] in PASSED_ON:
        yield found(
            "unclaimed-card",
            "info",
            view.subject(),
            f"given away by {card['driver']}: a virtual machine uses it",
            [f"PCI address {card['pci_address']}"],
            ["What its memory holds can be seen inside that machine only."],
        )
