"""A card that the driver calls lost: it fell off the bus or its firmware stopped answering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import reason_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    if view.card["health"] == "lost":
        where = view.card["pci_address"]
        yield found(
            "lost-card",
            "critical",
            view.subject(),
            "the driver has lost this card",
            [f"PCI address {where or 'unknown'}", f"memory: {reason_word(view.entry, 'memory.used_bytes')}"],
            [
                "Look for `Xid 79` and the like: journalctl -k | grep -i -e xid -e nvrm -e amdgpu",
                "Its jobs are over. A reboot, often with the power off, brings it back; if it is lost "
                "again, check "
                "power, seating and temperature, then have it replaced.",
            ],
            headline=f"{view.name} is lost: its driver can't reach it any more",
        )
