"""What the engine was told: context, sequences and cache types. What nobody knows is the caller's business."""

from __future__ import annotations

import copy

from gpusnap.llm import gguf_constants
from gpusnap.llm.kv.facts import Unsettled

# --cache-type-k and -v of llama.cpp, by ggml's names. Forks add others (q8_KV, q6_0, turbo4): no rule, no figure.
CACHE_TYPES = frozenset({"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"})

UNKNOWN_TYPE = "unknown"  # somebody's environment names one that is none of these


class CacheSettings:
    """Defaults are llama.cpp's own (`llama_context_default_params`), not those of any server.

    context           tokens of all sequences together, -c; never 0: what that means is known only to the engine
    sequences         slots, -np
    unified           one pool for all sequences, -kvu
    ubatch            the smaller of -b and -ub
    flash_attention   False makes values as wide as the widest layer's
    swa_full          --swa-full: windowed layers at full size
    windows           False for engines that know no windowed cache: llama.cpp before 2025-05, ik_llama.cpp,
                      koboldcpp before 1.114 without --useswa
    draft_states      copies of the recurrent state that drafting keeps (the log's "rs_seq")
    padding           cells are a multiple of it: 256, in old builds without flash attention 32
    draft_context     the second context, which holds the draft layers
    """

    __slots__ = (
        "context",
        "doubt",
        "draft_context",
        "draft_states",
        "flash_attention",
        "padding",
        "sequences",
        "swa_full",
        "type_k",
        "type_v",
        "ubatch",
        "unified",
        "windows",
    )

    def __init__(
        self,
        context: int,
        *,
        sequences: int = 1,
        unified: bool = False,
        type_k: str = "f16",
        type_v: str = "f16",
        ubatch: int = 512,
        flash_attention: bool = True,
        swa_full: bool = False,
        windows: bool = True,
        draft_states: int = 0,
        padding: int = 256,
        draft_context: bool = False,
    ) -> None:
        self.context = context
        self.sequences = sequences
        self.unified = unified
        self.type_k = type_k
        self.type_v = type_v
        self.ubatch = ubatch
        self.flash_attention = flash_attention
        self.swa_full = swa_full
        self.windows = windows
        self.draft_states = draft_states
        self.padding = padding
        self.draft_context = draft_context
        self.doubt = ""  # what makes an estimate of it, in words

    def at(self, context: int) -> CacheSettings:
        """The same settings with another context."""
        other = copy.copy(self)
        other.context = context
        return other

    @property
    def streams(self) -> int:
        return 1 if self.unified else self.sequences

    @property
    def cells(self) -> int:
        """Of one stream. Not unified, each sequence gets its share, rounded up: the sum can exceed the context."""
        total = pad(self.context, self.padding)
        return total if self.unified else pad(total // self.sequences, self.padding)

    def window_cells(self, window: int) -> int:
        """The windowed layers' cells of one stream; a pool for all sequences holds a window for each."""
        if self.swa_full or not self.windows:
            return self.cells
        kept = window * (self.sequences if self.unified else 1) + self.ubatch
        return pad(min(self.cells, kept), 256)


def pad(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def is_quantized(name: str) -> bool:
    return _block(name)[0] > 1


def row_bytes(name: str, width: int) -> int:
    """Bytes of a row of `width` elements; the engine takes whole blocks only."""
    block, size = _block(name)
    if width % block:
        raise Unsettled("contradiction", f"rows of {width} elements can't be {name}, which has blocks of {block}")
    return width // block * size


def _block(name: str) -> tuple[int, int]:
    if name in CACHE_TYPES:
        for known, block, size in gguf_constants.tensor_sizes().values():
            if known.lower() == name:
                return block, size
    raise Unsettled("unknown-format", f"the size of the cache type {name} is not known")
