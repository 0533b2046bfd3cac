"""Brings the rows of a sample to `gpusnap.llm` and its warnings back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.collect.harvest import warning
from gpusnap.llm.describe import Describer
from gpusnap.llm.gpu_row import GpuRow
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpusnap.collect.harvest import AdapterFacts, ProcessFacts
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host
    from gpusnap.model import Warning_


_NOT_REQUESTED = dict.fromkeys(("runtimes", "model", "llm"), null("not-requested", "--no-models"))


class ModelRows:
    """Kept over the samples of a run; `describer` holds what the last sample's figures rest on."""

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self.describer = Describer(host, options)
        self._wanted = options.models

    def describe(
        self, found: Iterable[tuple[AdapterFacts, ProcessFacts]], words: Callable[[int], list[str]]
    ) -> list[Warning_]:
        if not self._wanted:
            for _, facts in found:
                facts.figures.update(_NOT_REQUESTED)
            return []
        rows = [_row(adapter, facts) for adapter, facts in found]
        notes = self.describer.describe(rows, words)
        return [warning(note.code, note.message, note.adapter, note.pid) for note in notes]


def _row(adapter: AdapterFacts, facts: ProcessFacts) -> GpuRow:
    total = adapter.figures.get("memory.total_bytes")
    return GpuRow(
        facts.pid,
        str(adapter.identity["id"]),
        _text(adapter.identity.get("pci_address")),
        cast("int | None", adapter.identity.get("index")),
        _text(adapter.identity.get("model")),
        cast("int | None", total.value) if total is not None else None,
        facts.figures,
    )


def _text(value: object) -> str | None:
    plain = value.value if isinstance(value, Reading) else value
    return None if plain is None else str(plain)
