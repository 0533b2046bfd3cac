"""One card's share of a model: weights, cache, compute buffers, each a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import null

if TYPE_CHECKING:
    from gpusnap.reading import Reading

NOT_SAID = null("not-exposed", "the server tells no sizes")


class Parts:
    """`per_token`: what one more token costs on all cards; `kv_used`: the part of the cache that holds tokens."""

    __slots__ = ("compute", "kv", "kv_used", "per_token", "weights")

    def __init__(
        self,
        weights: Reading = NOT_SAID,
        kv: Reading = NOT_SAID,
        compute: Reading = NOT_SAID,
        kv_used: Reading = NOT_SAID,
        per_token: Reading = NOT_SAID,
    ) -> None:
        self.weights = weights
        self.kv = kv
        self.compute = compute
        self.kv_used = kv_used
        self.per_token = per_token
