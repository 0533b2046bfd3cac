"""What a live look at a process gives beyond the document: further figures, words, and its cache at other lengths.

`explain` shows it beside the document's figures. Nothing here is a figure of the snapshot: a claim, a policy, a
date by which a server means to unload. `asides.py` builds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.reading import Reading


class Extra(NamedTuple):
    """A figure beside the document's; `unit` as in the explanation document."""

    field: str
    unit: str
    reading: Reading
    says: str


class Aside(NamedTuple):
    """`cache_at(tokens)` is the whole cache in bytes, None where there is no figure for it."""

    extras: tuple[Extra, ...] = ()
    says: tuple[str, ...] = ()
    formula: str | None = None
    cache_at: Callable[[int], int | None] | None = None
    one_pool: bool | None = None  # whether all sequences share the cells, or each has its part; None: not known


NOTHING = Aside()
