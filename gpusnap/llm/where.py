"""Where the engine puts what: layers by -ngl and -ts, tensors by -ot, a draft model, a projector, adapters.

Only what the engine would really put on a card counts. That needs to know how many layers are there: from -ngl,
or, since the default is "as many as fit", from the measurement: if everything fits into what the process holds,
everything is taken to be there, and the figure says `inferred`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.cards import RAM, Cards, cards_of
from gpusnap.llm.gguf_header import Header
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.overrides import Overrides
from gpusnap.llm.placement import Placement, place
from gpusnap.llm.readings import as_kind, total
from gpusnap.llm.weights import Weights, adapter_on_card, weights
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gpu_row import GpuRow
    from gpusnap.llm.model_files import ModelFile
    from gpusnap.llm.workload import Workload

    HeaderOf = Callable[[ModelFile], Header | Reading]

_FLAGS = {"pattern": "-ot", "experts": "--cpu-moe", "ffn": "--n-cpu-ffn"}


class Where:
    """`placement` by the process's rows; `kind` and `words` are how it is known; `assumed`: that it all fits."""

    __slots__ = ("assumed", "cards", "draft", "kind", "moved", "moved_draft", "placement", "words")

    def __init__(self, workload: Workload, rows: Sequence[GpuRow], layers: int) -> None:
        """Raises Unsettled where it is not known on which card a layer is."""
        self.cards = cards_of(workload, rows)
        wanted = workload.gpu_layers
        is_told = wanted is not None and (wanted >= 0 or wanted == -2)
        self.kind, self.words = ("computed", "") if is_told else ("inferred", "all layers fit")
        self.assumed = not is_told
        if is_told:
            self.words = f"-ngl {wanted if wanted is not None and wanted >= 0 else 'all'}"
        if len(self.cards.used) > 1:
            self.kind, self.words = "inferred", self.words + " -ts, cards in their order"
        counts = workload.output_counts
        self.placement = _placed(self.cards, len(rows), layers, wanted if is_told else None, counts)
        self.moved = _overrides(workload.overrides, self.cards)
        if workload.overrides:
            self.words += "".join(f" {flag}" for flag in dict.fromkeys(_FLAGS[k] for k, _ in workload.overrides))
        self.draft: Placement | None = None
        self.moved_draft: Overrides | Reading | None = None

    def add_draft_model(self, workload: Workload, rows: Sequence[GpuRow], layers: int) -> None:
        drafting = workload.drafting
        cards = self.cards if drafting.device is None else cards_of(workload, rows, drafting.device)
        wanted = drafting.gpu_layers
        is_told = wanted is not None and (wanted >= 0 or wanted == -2)
        if not is_told:
            self.kind, self.assumed = "inferred", True
        self.words += f" -ngld {wanted if wanted is not None and wanted >= 0 else 'all'}"
        self.draft = _placed(cards, len(rows), layers, wanted if is_told else None, True)
        self.moved_draft = _overrides(drafting.overrides, cards)

    def weights_on(self, card: int, stored: Weights, evidence: Evidence, header_of: HeaderOf) -> Reading:
        """The model's on this card, and what is loaded beside it."""
        own = self.moved if isinstance(self.moved, Reading) else stored.on_card(self.placement, card, self.moved)
        beside = [self._beside(file, card, evidence.workload, header_of) for file in evidence.files]
        found = total([own, *(one for one in beside if one is not None)])
        return as_kind(found, self.kind, self.words)

    def _beside(self, file: ModelFile, card: int, workload: Workload, header_of: HeaderOf) -> Reading | None:
        if file.role not in ("mmproj", "lora", "draft"):
            return None
        if file.role == "mmproj" and self._projector(workload) != card:
            return None
        header = header_of(file)
        if isinstance(header, Reading):
            return header
        if file.role == "lora":
            moved = self.moved
            return moved if isinstance(moved, Reading) else adapter_on_card(header, self.placement, card, moved)
        stored = weights(header, None, f"gguf.{file.role}")
        if file.role == "mmproj":
            return stored.total
        if self.draft is None:
            return null("ambiguous", "where the draft model is only a log tells")
        moved = self.moved_draft
        return moved if isinstance(moved, Reading) else stored.on_card(self.draft, card, moved)

    def _projector(self, workload: Workload) -> int:
        """clip takes one card: the one it is told, else the first (-dev's first); RAM where it may take none."""
        if not workload.mmproj_offload or workload.mmproj_device == "none":
            return RAM
        if workload.mmproj_device is not None:
            try:
                return self.cards.of_buffer(workload.mmproj_device)
            except Unsettled:
                return RAM
        if workload.devices is not None:
            return self.cards.used[0] if self.cards.used else RAM
        return self.cards.devices[min(self.cards.devices)]


def _placed(cards: Cards, count: int, layers: int, wanted: int | None, output_counts: bool) -> Placement:
    if not cards.used:
        return Placement([[] for _ in range(count)], None)
    every = wanted is None or wanted < 0
    placement = place(layers, -1 if wanted is None else wanted, cards.shares, output_counts or every)
    if placement is None:
        raise Unsettled("ambiguous", "-ts says nothing")
    return placement.over(cards.used, count)


def _overrides(given: Sequence[tuple[str, str]], cards: Cards) -> Overrides | Reading | None:
    if not given:
        return None
    try:
        return Overrides(given, cards)
    except Unsettled as unsettled:
        return null(unsettled.reason, unsettled.words)


def where_of(evidence: Evidence, header: Header, rows: Sequence[GpuRow]) -> Where | Reading:
    workload = evidence.workload
    try:
        where = Where(workload, rows, Facts(header).layers)
        second = evidence.draft_header
        if isinstance(second, Header):
            where.add_draft_model(workload, rows, Facts(second).layers)
    except Unsettled as unsettled:
        return null(unsettled.reason, unsettled.words)
    return where
