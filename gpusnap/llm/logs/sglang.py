"""SGLang's start-up log. Everything is per rank (`[2026-09-12 00:22:48 TP0] `), and "GB" is GiB: 367,404 tokens
of 94 layers x 128 x 2 bytes are 8.23 GiB, printed as `8.23 GB` (vllm#21348).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.llm.logs.lines import Line

GIB = 1 << 30
_GB = r"(\d{1,6}(?:\.\d{1,4})?) GB"
_START = re.compile(r"server_args=ServerArgs\(|Load weight begin")
_WEIGHTS = re.compile(r"Load weight end\..{0,512}?mem usage=" + _GB)
_POOL = re.compile(
    r"KV Cache is allocated\. (?:dtype: torch\.\w{1,32}, )?#tokens: (?P<tokens>\d{1,12}), "
    r"(?:K size: " + _GB + r", V size: " + _GB + r"|KV size: " + _GB + r")"
)
_GRAPH = re.compile(r"Capture (?:cuda|npu|draft cuda)? ?graph end\..{0,64}?mem usage=" + _GB)


class Pool:
    """One token pool: the model's, or a draft model's behind it."""

    __slots__ = ("nbytes", "tokens")

    def __init__(self, tokens: int, nbytes: int) -> None:
        self.tokens = tokens
        self.nbytes = nbytes


class Rank:
    __slots__ = ("graph_bytes", "pools", "weights_bytes")

    def __init__(self) -> None:
        self.weights_bytes: int | None = None
        self.graph_bytes: int | None = None
        self.pools: list[Pool] = []

    @property
    def kv_bytes(self) -> int | None:
        return sum(pool.nbytes for pool in self.pools) if self.pools else None


def read(lines: Iterable[Line]) -> dict[str, Rank]:
    """Tag (`rank:TP0`, or empty) -> the rank's last start. A draft model's weights and pool add to the model's."""
    ranks: dict[str, Rank] = {}
    for line in lines:
        if _START.match(line.text):
            known = ranks.get(line.tag)
            # A draft model loads after the model's own pool stands; anything before that is a new start.
            if known is None or not known.pools:
                ranks[line.tag] = Rank()
            continue
        rank = ranks.get(line.tag) or Rank()
        if _take(rank, line.text):
            ranks[line.tag] = rank
    return ranks


def _take(rank: Rank, text: str) -> bool:
    found = _WEIGHTS.match(text)
    if found is not None:
        rank.weights_bytes = (rank.weights_bytes or 0) + _bytes(found[1])
        return True
    found = _POOL.match(text)
    if found is not None:
        sizes = [_bytes(text) for text in found.groups()[1:] if text is not None]
        rank.pools.append(Pool(int(found["tokens"]), sum(sizes)))
        return True
    found = _GRAPH.match(text)
    if found is not None:
        rank.graph_bytes = (rank.graph_bytes or 0) + _bytes(found[1])
        return True
    return False


def _bytes(text: str) -> int:
    return round(float(text) * GIB)
