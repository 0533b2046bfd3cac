"""What drafting tokens takes: a second context, of the model's own draft layers or of a second model.

`common_speculative_init_from_params` (ggml 0.25.3): the second context has as many tokens and sequences as the
first, f16 unless told otherwise (-ctkd, -ctvd). Builds until 2026-05 made one context for each slot instead
(llama.cpp#22838), which comes to the same where each slot has its own share; with one pool for several slots it
does not. What a drafting method adds to a model of its own kind (EAGLE-3, DFlash) has no rule here.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from gpusnap.llm.kv import families
from gpusnap.llm.kv.facts import Facts, Unsettled
from gpusnap.llm.kv.recurrent import recurrent_layers

if TYPE_CHECKING:
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.kv_cache import CacheSettings
    from gpusnap.llm.workload import Workload

# From here on one draft context serves all slots, for certain; the change came some builds before.
ONE_FOR_ALL_SLOTS = 9400
_PLAIN = ("none", "draft-simple", "draft")
_ONLY_A_LOG = "a draft context comes on top: only a log tells its size"


class Draft:
    """The second context and its settings; `header` None: it holds the draft layers of the model itself."""

    __slots__ = ("header", "settings")

    def __init__(self, header: Header | None, settings: CacheSettings) -> None:
        self.header = header
        self.settings = settings


def is_drafting(workload: Workload) -> bool:
    drafting = workload.drafting
    methods = [kind for kind in drafting.kinds if not kind.startswith(("none", "ngram"))]
    return workload.drafts or workload.draft is not None or drafting.repository is not None or bool(methods)


def second_context(
    workload: Workload, header: Header, draft_header: Header | None, settings: CacheSettings
) -> Draft | None:
    """None where nothing is drafted with a context; `settings` are the main one's and get the copies of its state.

    Raises Unsettled where header and flags do not say how large it is.
    """
    if not is_drafting(workload):
        return None
    drafting = workload.drafting
    if workload.server != "llama.cpp" or drafting.repository is not None:
        raise Unsettled("ambiguous", _ONLY_A_LOG)
    own = copy.copy(settings)
    own.type_k, own.type_v = drafting.type_k, drafting.type_v
    if workload.drafts:
        _check_own_layers(workload, header, settings)
        own.draft_context = True
        return Draft(None, own)
    if draft_header is None or not all(_is_plain(kind) for kind in drafting.kinds):
        raise Unsettled("ambiguous", _ONLY_A_LOG)
    _check_second_model(workload, draft_header, settings)
    if drafting.context is not None:
        own.context = drafting.context
    return Draft(draft_header, own)


def _is_plain(kind: str) -> bool:
    return kind in _PLAIN or kind.startswith("ngram")


def _check_own_layers(workload: Workload, header: Header, settings: CacheSettings) -> None:
    if workload.draft is not None or any(
        kind.startswith("draft-") and "mtp" not in kind for kind in workload.drafting.kinds
    ):
        raise Unsettled("ambiguous", _ONLY_A_LOG)
    facts = Facts(header)
    if facts.architecture in families.ROLLBACK and any(recurrent_layers(facts, facts.trunk)):
        depth = workload.drafting.depth
        if depth is None:
            raise Unsettled("ambiguous", "how many copies of its state it keeps for drafting only a log tells")
        settings.draft_states = depth


def _check_second_model(workload: Workload, header: Header, settings: CacheSettings) -> None:
    facts = Facts(header)
    last = f"blk.{facts.layers - 1}.nextn."
    if not families.is_known(facts.architecture) or facts.architecture in ("eagle3", "dflash", "gemma4-assistant"):
        raise Unsettled("ambiguous", _ONLY_A_LOG)
    if any(tensor.name.startswith(last) for tensor in header.tensors):
        raise Unsettled("ambiguous", _ONLY_A_LOG)  # the engine takes it for an MTP head
    if "sequences" not in workload.sources:
        raise Unsettled("ambiguous", "how many slots draft is not in the command line (-np), and builds differ")
    several = settings.sequences > 1
    if several and settings.unified and _build(workload) < ONE_FOR_ALL_SLOTS:
        raise Unsettled("ambiguous", "a draft context for each slot or one for all: builds differ")
    if several and workload.drafting.context is not None:
        raise Unsettled("ambiguous", _ONLY_A_LOG)


def _build(workload: Workload) -> int:
    """`b9400-abc` -> 9400; 0 where nobody said."""
    text = str(workload.api.get("build_info", "")).removeprefix("b").partition("-")[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
