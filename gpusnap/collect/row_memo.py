"""Process rows over the samples of a recording: what did not change is not built again.

From one sample to the next a row's memory, CPU share and state differ, its other thirty leaves don't; building all
of them anew costs more than reading the processes. A test holds these rows equal to those of `rows.process_row`.
"""

from __future__ import annotations

from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, cast

from gpusnap.collect.rows import process_row
from gpusnap.fields import PROCESS_FIGURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.collect.rows import ProvenanceTable
    from gpusnap.model import Process
    from gpusnap.reading import Reading

# Their value is part of the row by more than one leaf, or is no leaf of the row at all.
_COMPLEX = ("model", "llm", "self")
_ALWAYS_SOURCED = frozenset({*PROCESS_FIGURES, "runtimes"})


class RowMemo:
    """Kept by the collector. A reading that is the same object as in the last sample says the same.

    A row in which nothing changed is the same object in both documents: whoever gets them must not change it.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], _Row] = {}
        self._now: dict[tuple[str, int], _Row] = {}
        self._shared: dict[tuple[str, ...], dict[str, str]] = {}

    def begin_sample(self) -> None:
        """Rows that the last sample did not have are forgotten, and their provenance maps with them."""
        self._last, self._now = self._now, {}
        if len(self._shared) > 2 * len(self._last) + 64:
            self._shared.clear()

    def row(
        self, adapter: str, pid: int, facts: Mapping[str, Reading], own: bool, table: ProvenanceTable
    ) -> Process:
        last = self._last.get((adapter, pid))
        found = None if last is None else last.changed(facts, own)
        if found is None:
            document = cast("dict[str, Any]", process_row(adapter, pid, facts, own, table))
            found = _Row(document, facts, table.entries[document["provenance"]], own)
        self._now[adapter, pid] = found
        sources = found.sources
        key = (*sources, *sources.values()) if found.sources_are_new else None
        if key is not None:
            found.sources = sources = self._shared.setdefault(key, sources)
            found.sources_are_new = False
        index = table.intern_same(sources)
        if found.document["provenance"] != index:
            found.document = {**found.document, "provenance": index}
        return cast("Process", found.document)


class _Row:
    __slots__ = ("document", "facts", "own", "sources", "sources_are_new")

    def __init__(self, document: dict[str, Any], facts: Mapping[str, Reading], sources: dict[str, str], own: bool):
        self.document = document
        self.facts = facts
        self.sources = sources
        self.sources_are_new = True
        self.own = own

    def changed(self, facts: Mapping[str, Reading], own: bool) -> _Row | None:
        """This row with what is new in it; None where it must be built anew."""
        before = self.facts
        if own is not self.own or tuple(facts) != tuple(before):
            return None
        new = list(compress(facts, map(is_not, facts.values(), before.values())))
        if not new:
            return self
        document = self.document.copy()
        sources = self.sources
        engines: dict[str, object] | None = None
        for leaf in new:
            old, reading = before[leaf], facts[leaf]
            if leaf in _COMPLEX:
                return None
            if leaf in document:
                document[leaf] = reading.value
            elif leaf.startswith("engines_percent."):
                engines = engines or document["engines_percent"].copy()
                engines[leaf[16:]] = reading.value
            else:
                return None
            if old.provenance != reading.provenance:
                if (leaf in sources) is not (reading.value is None or leaf in _ALWAYS_SOURCED):
                    return None  # a text that became known or unknown
                if leaf in sources:
                    sources = sources.copy() if sources is self.sources else sources
                    sources[leaf] = reading.provenance
        if engines is not None:
            document["engines_percent"] = engines
        row = _Row(document, facts, sources, own)
        row.sources_are_new = sources is not self.sources
        return row
