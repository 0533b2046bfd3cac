"""All caches of a server: the model's own and, where it drafts tokens, the second context's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.drafting import second_context
from gpusnap.llm.gguf_header import Header
from gpusnap.llm.kv.facts import Unsettled
from gpusnap.llm.kv_cache import CacheSettings, CacheSize, cache_size
from gpusnap.llm.readings import total
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.placement import Placement
    from gpusnap.llm.workload import Workload

_DEFAULT_SLOTS = 4


class Caches:
    """`draft` is the second context's, if there is one; `draft_model` says that a second model holds it."""

    __slots__ = ("draft", "draft_model", "main")

    def __init__(self, main: CacheSize, draft: CacheSize | None, *, draft_model: bool) -> None:
        self.main = main
        self.draft = draft
        self.draft_model = draft_model

    def _parts(self) -> list[CacheSize]:
        return [self.main] if self.draft is None else [self.main, self.draft]

    @property
    def total(self) -> Reading:
        return total([part.total for part in self._parts()])

    @property
    def per_token(self) -> Reading:
        return total([part.per_token for part in self._parts()])

    def on_card(self, placement: Placement, draft_placement: Placement | None, card: int) -> Reading:
        """`draft_placement` is where a second model's layers are."""
        found = [self.main.on_layers(placement.cards[card])]
        if self.draft is not None:
            where = draft_placement if self.draft_model and draft_placement is not None else placement
            found.append(self.draft.on_layers(where.cards[card]))
        return total(found)


def cache_settings(workload: Workload) -> tuple[CacheSettings, str] | Reading:
    """What the engine was told, with the sources in words; a reading that says what is missing."""
    if workload.context is None:
        return null("ambiguous", "the context is not in the command line, and nobody was asked")
    names = ["context", "type_k", "type_v", "sequences", "unified", "swa_full", "ubatch", "flash_attention"]
    source = workload.source_of(*names)
    sequences, unified = workload.sequences, workload.unified
    if sequences is None:
        is_server = workload.role == "server" and workload.server == "llama.cpp"
        sequences, unified = (_DEFAULT_SLOTS, True) if is_server else (1, False)
        source += f"+defaults:{workload.server or 'llama.cpp'}"
    return (
        CacheSettings(
            workload.context,
            sequences=sequences,
            unified=bool(unified),
            type_k=(workload.type_k or "f16").lower(),
            type_v=(workload.type_v or "f16").lower(),
            ubatch=workload.ubatch if workload.ubatch is not None else 512,
            flash_attention=workload.flash_attention is not False,
            swa_full=workload.swa_full is True,
            windows=workload.windows,
        ),
        source,
    )


def caches_of(evidence: Evidence, header: Header, tokens: int | None = None) -> Caches | Reading:
    """The whole caches, wherever their layers are; with `tokens` under another context."""
    found = cache_settings(evidence.workload)
    if isinstance(found, Reading):
        return found
    settings, source = found
    if tokens is not None:
        settings = settings.at(tokens)
    source = f"gguf+{source}" if source else "gguf"
    if evidence.workload.server == "koboldcpp":
        settings.doubt = "up to 128 tokens more for context shift"
    second = evidence.draft_header
    try:
        draft = second_context(evidence.workload, header, second if isinstance(second, Header) else None, settings)
    except Unsettled as unsettled:
        return null(unsettled.reason, unsettled.words)
    main = cache_size(header, settings, source)
    if draft is None:
        return Caches(main, None, draft_model=False)
    of = cache_size(draft.header if draft.header is not None else header, draft.settings, "draft")
    return Caches(main, of, draft_model=draft.header is not None)
