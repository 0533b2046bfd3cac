"""Figures that can't be: null in the row, the raw number once in a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import warning
from gpusnap.reading import null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.harvest import AdapterFacts, Harvest, ProcessFacts
    from gpusnap.model import Warning_

_PREFIX = "null:out-of-range "


def raw_warning(facts: AdapterFacts, what: str, raw: object) -> Warning_:
    """The raw number that a card's figure would have been."""
    return warning("out-of-range", f"{what} says {raw}", str(facts.identity["id"]))


def warn_out_of_range(facts: AdapterFacts | ProcessFacts, harvest: Harvest, adapter: str) -> None:
    """Move the words of every out-of-range reading, which hold the raw number, into warnings."""
    pid = getattr(facts, "pid", None)
    told = set()
    for leaf, reading in facts.figures.items():
        if reading.provenance.startswith(_PREFIX):
            words = reading.provenance.removeprefix(_PREFIX)
            if words not in told:  # what was reckoned from it is out of range for the same reason
                harvest.warnings.append(warning("out-of-range", f"{leaf}: {words}", adapter, pid))
            told.add(words)
            facts.figures[leaf] = null("out-of-range")


def refuse_more_than_the_card(
    adapters: Iterable[AdapterFacts], processes: Iterable[ProcessFacts], warnings: list[Warning_]
) -> None:
    """A process with more memory than its card has: a peer's buffers that count on both (XGMI), a lost count."""
    totals = {facts.key: (facts, facts.figures.get("memory.total_bytes")) for facts in adapters}
    for process in processes:
        vram = process.figures.get("vram_bytes")
        facts, total = totals.get(process.adapter_key, (None, None))
        if facts is None or total is None or vram is None:
            continue
        if isinstance(vram.value, int) and isinstance(total.value, int) and vram.value > total.value:
            text = f"vram_bytes: {vram.provenance.partition(':')[2]} says {vram.value} of {total.value}"
            warnings.append(warning("out-of-range", text, str(facts.identity["id"]), process.pid))
            process.figures["vram_bytes"] = process.figures["vram_shared_bytes"] = null("out-of-range")
