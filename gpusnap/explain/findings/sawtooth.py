"""Memory that comes and goes in cycles and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.series import Judged, subject_of
from gpusnap.explain.verdict import SAWTOOTH
from gpusnap.render.units import format_bytes, format_pair_in_one_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.view import Found


def find_in_history(_history: History, judged: list[Judged]) -> Iterator[Found]:
    for one in judged:
        verdict = one.verdict
        if verdict.word != SAWTOOTH or verdict.cycles < at.CYCLES or verdict.minima is None or not one.leads:
            continue
        evidence = [f"{verdict.cycles} cycles; minima {format_pair_in_one_unit(*map(round, verdict.minima))}"]
        if verdict.peaks is not None:
            evidence.append(f"peaks {format_pair_in_one_unit(*map(round, verdict.peaks))}")
        evidence.append(f"{one.series.samples:,} samples, {one.series.unknown} unknown")
        yield found(
            "sawtooth",
            "info",
            subject_of(one),
            f"{one.what} comes back to {format_bytes(round(verdict.minima[1]))} after each of "
            f"{verdict.cycles} cycles",
            evidence,
            ["Nothing is lost. The card must have room for the peaks, not for the mean."],
        )
