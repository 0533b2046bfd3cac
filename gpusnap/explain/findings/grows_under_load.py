"""Memory that rises only while the card works: perhaps a leak per request, perhaps caches that fill.

vllm#8413: idle it does not rise, called it does. Not called a leak: the first requests fill caches by design.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.make import found
from gpusnap.explain.series import Judged, subject_of
from gpusnap.explain.verdict import UNDER_LOAD
from gpusnap.render.units import format_bytes, format_pair_in_one_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(_history: History, judged: list[Judged]) -> Iterator[Found]:
    for one in judged:
        verdict = one.verdict
        if verdict.word != UNDER_LOAD or not one.leads:
            continue
        split = one.series.split
        evidence = [
            f"{verdict.why}: {format_bytes(round(split.loaded_delta))} in samples with load, "
            f"{format_bytes(round(split.idle_delta))} in idle ones",
            f"{one.series.samples:,} samples, {one.series.unknown} unknown",
        ]
        if verdict.minima is not None:
            evidence.insert(0, f"minima {format_pair_in_one_unit(*(round(value) for value in verdict.minima))}")
        yield found(
            "grows-under-load",
            "notice",
            subject_of(one),
            f"{one.what} grows only under load",
            evidence,
            [
                "Go on recording under steady load: if it levels off, caches were filling; if it never "
                "does, it is a "
                "leak per request. gpusnap record g.jsonl --every 1m --for 8h",
            ],
            headline=f"{one.card_name}: {one.what} grows only while it works",
        )
