"""Figures that can't be: null in the row, the raw number once in a warning (contract rule 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import warning
from gpusnap.reading import null

if TYPE_CHECKING:
    from gpusnap.collect.harvest import AdapterFacts, Harvest, ProcessFacts

_PREFIX = "null:out-of-range "


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
