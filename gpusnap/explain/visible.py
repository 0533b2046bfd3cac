"""The part of a card's memory that the processor reaches directly: amdgpu's `mem_info_vis_vram_*`.

The document has no place for it. Without a resizable BAR it is 256 MiB of a large card, and what must lie there
(uploads, pinned buffers) may not fit while most of the card is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.aside import Aside, Extra
from gpusnap.render.reasons import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.reading import Reading

_FIGURES = {
    "visible_total_bytes": "of the card's memory, what the processor reaches",
    "visible_used_bytes": "used of what the processor reaches",
}


def with_visible(aside: Aside, beside: Mapping[str, Reading]) -> Aside:
    extras = []
    for field, what in _FIGURES.items():
        if field in beside:
            reading = beside[field]
            says = what if reading.value is not None else f"{what}: {in_words(reading.provenance)}"
            extras.append(Extra(field, "bytes", reading, says))
    return aside._replace(extras=(*aside.extras, *extras))
