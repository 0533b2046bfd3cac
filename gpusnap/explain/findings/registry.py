"""All rules in the order in which findings of one severity stand: the card's health before its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import (
    bandwidth_bound,
    bare_contexts,
    cache_not_leak,
    claim_contradicts_measurement,
    clock_step,
    context_only,
    counter_reset,
    driver_mismatch,
    ecc_growth,
    gap,
    grows_under_load,
    idle_but_full,
    kv_dominates,
    kv_preemption,
    leak,
    lost_card,
    orphan_workers,
    remap_failed,
    remap_pending,
    reserved_by_driver,
    residual,
    sawtooth,
    spill,
    starved,
    throttled,
    unattributed_memory,
    unclaimed_card,
    unlisted_holder,
    zombie_or_dstate_holder,
)
from gpusnap.explain.findings.make import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.series import Judged
    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Snapshot

DOCUMENT_RULES: dict[str, Callable[[Snapshot], Iterator[Found]]] = {
    "driver-mismatch": driver_mismatch.find_in_document,
}
CARD_RULES: dict[str, Callable[[CardView], Iterator[Found]]] = {
    "lost-card": lost_card.find,
    "unclaimed-card": unclaimed_card.find,
    "remap-failed": remap_failed.find,
    "ecc-growth": ecc_growth.find,
    "remap-pending": remap_pending.find,
    "throttled": throttled.find,
    "orphan-workers": orphan_workers.find,
    "zombie-or-dstate-holder": zombie_or_dstate_holder.find,
    "unlisted-holder": unlisted_holder.find,
    "unattributed-memory": unattributed_memory.find,
    "idle-but-full": idle_but_full.find,
    "starved": starved.find,
    "spill": spill.find,
    "bare-contexts": bare_contexts.find,
    "claim-contradicts-measurement": claim_contradicts_measurement.find,
    "kv-preemption": kv_preemption.find,
    "kv-dominates": kv_dominates.find,
    "cache-not-leak": cache_not_leak.find,
    "context-only": context_only.find,
    "bandwidth-bound": bandwidth_bound.find,
    "reserved-by-driver": reserved_by_driver.find,
}
SERIES_RULES: dict[str, Callable[[History, list[Judged]], Iterator[Found]]] = {
    "leak": leak.find_in_history,
    "step-leak": leak.find_steps_in_history,
    "grows-under-load": grows_under_load.find_in_history,
    "sawtooth": sawtooth.find_in_history,
}
HISTORY_RULES: dict[str, Callable[[History], Iterator[Found]]] = {
    "lost-card": lost_card.find_in_history,
    "ecc-growth": ecc_growth.find_in_history,
    "residual": residual.find_in_history,
    "idle-but-full": idle_but_full.find_in_history,
    "counter-reset": counter_reset.find_in_history,
    "clock-step": clock_step.find_in_history,
    "gap": gap.find_in_history,
}
# Every finding that there is, as the README's table lists them.
CODES = tuple(dict.fromkeys([*DOCUMENT_RULES, *CARD_RULES, *SERIES_RULES, *HISTORY_RULES]))


def in_document(document: Snapshot) -> list[Found]:
    return [one for rule in DOCUMENT_RULES.values() for one in rule(document)]


def in_card(view: CardView) -> list[Found]:
    return [one for rule in CARD_RULES.values() for one in rule(view)]


def in_history(history: History, judged: list[Judged]) -> list[Found]:
    by_series = [one for rule in SERIES_RULES.values() for one in rule(history, judged)]
    return by_series + [one for rule in HISTORY_RULES.values() for one in rule(history)]


def ranked(findings: Iterable[Found]) -> list[Found]:
    """The worst first; equal ones in the order of the rules."""
    return sorted(findings, key=lambda one: SEVERITIES.index(one.finding["severity"]))
