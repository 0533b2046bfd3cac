"""A process on one card as the collector hands it over, and what comes back beside the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from gpusnap.reading import Reading


class GpuRow(NamedTuple):
    """`figures` maps the document's leaves to readings and is added to."""

    pid: int
    adapter: str
    pci: str | None
    number: int | None
    card: str | None
    total_bytes: int | None
    figures: MutableMapping[str, Reading]

    @property
    def held(self) -> int | None:
        """What the driver measured: on the card, or of the one memory where it is unified."""
        vram = self.figures.get("vram_bytes")
        if vram is not None and vram.value is not None:
            return int(str(vram.value))
        spill = self.figures.get("spill_bytes")
        unified = vram is not None and vram.provenance.startswith("null:unified-memory")
        return int(str(spill.value)) if unified and spill is not None and spill.value is not None else None

    @property
    def is_unified(self) -> bool:
        vram = self.figures.get("vram_bytes")
        return vram is not None and vram.provenance.startswith("null:unified-memory")


class Note(NamedTuple):
    """A warning of the document."""

    code: str
    message: str
    adapter: str | None
    pid: int
