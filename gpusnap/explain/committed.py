"""What Windows says that a process has committed, beside what is resident: `GPU Process Memory`'s raw counters.

Task Manager's "dedicated GPU memory" is `Dedicated Usage`: promised, and not all of it in VRAM (systeminformer
PR#2971). The document has what is resident; a reader who compares with Task Manager needs both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.rows import card_name
from gpusnap.llm.aside import Aside, Extra
from gpusnap.render.reasons import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.model import Snapshot
    from gpusnap.reading import Reading

    Counters = Mapping[str, Reading]

# The counter -> the figure's name, and what it counts.
_COUNTERS = {
    "Total Committed": ("committed_bytes", "in all"),
    "Dedicated Usage": ("committed_dedicated_bytes", "dedicated, resident or not"),
    "Shared Usage": ("committed_shared_bytes", "shared system memory"),
}


def with_committed(aside: Aside, document: Snapshot, committed: Mapping[str, Counters]) -> Aside:
    """The figures of each card behind the aside's own; a counter that can't be right is told in a sentence."""
    names = {card["id"]: card_name(card) for card in document["adapters"]}
    extras, sentences = [], []
    for ident, counters in committed.items():
        for counter, reading in counters.items():
            field, what = _COUNTERS[counter]
            text = f"committed on {names[ident]}, {what} (Windows' {counter})"
            if reading.value is None:
                text = f"{text}: {in_words(reading.provenance)}"
                sentences.append(text)
            extras.append(Extra(field, "bytes", reading, text))
    return aside._replace(extras=(*aside.extras, *extras), says=(*aside.says, *sentences))
