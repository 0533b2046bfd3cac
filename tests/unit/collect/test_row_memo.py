"""Rows that are kept from sample to sample say what rows that are built anew would say."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from gpusnap.collect.row_memo import RowMemo
from gpusnap.collect.rows import ProvenanceTable, process_row
from gpusnap.fields import PROCESS_FIGURES, PROCESS_IDENTITY, PROCESS_TEXTS
from gpusnap.reading import Reading, measured, null

ROOT = Path(__file__).parents[3]
LEAVES = (*PROCESS_FIGURES, *PROCESS_TEXTS, *PROCESS_IDENTITY)
CHOICES: dict[str, list[Reading]] = {
    leaf: [measured(1, "a"), measured(2, "a"), measured(1, "b"), null("exited"), null("none", "words")]
    for leaf in LEAVES
}
CHOICES["model"] = [null("none"), measured({"name": "m", "layers": 4}, "gguf")]
CHOICES["llm"] = [null("none"), measured({"server": "s", "weights_bytes": None}, "cmdline")]
EXTRA = {"llm.weights_bytes": null("ambiguous"), "llm.context_tokens": measured(4096, "cmdline")}


def facts_of(changes: dict[str, int], before: dict[str, Reading]) -> dict[str, Reading]:
    facts = {**before, **{leaf: CHOICES[leaf][number % len(CHOICES[leaf])] for leaf, number in changes.items()}}
    for leaf, reading in EXTRA.items():
        facts.pop(leaf, None)
        if facts["llm"].value is not None:
            facts[leaf] = reading
    return facts


START: dict[str, Reading] = {
    **{leaf: null("not-exposed") for leaf in LEAVES},
    "pid_namespace": measured("host", "proc.ns"),
    "category": measured("ai", "program"),
}
CHANGES = st.dictionaries(st.sampled_from(LEAVES), st.integers(0, 4), max_size=4)


@given(samples=st.lists(st.tuples(CHANGES, CHANGES), min_size=1, max_size=6))
@settings(deadline=None, max_examples=300)
def test_any_series_of_changes_gives_the_rows_that_are_built_anew(
    samples: list[tuple[dict[str, int], dict[str, int]]],
) -> None:
    memo = RowMemo()
    facts = {1: START, 2: START}
    kept: list[tuple[Any, Any]] = []
    for changes in samples:
        memo.begin_sample()
        table, plain = ProvenanceTable(), ProvenanceTable()
        for pid, change in zip((1, 2), changes, strict=True):
            facts[pid] = facts_of(change, facts[pid])
            row: Any = memo.row("GPU-0", pid, facts[pid], False, table)
            anew: Any = process_row("GPU-0", pid, facts[pid], False, plain)
            assert list(row) == list(anew)  # the order of keys too
            assert {**row, "provenance": table.entries[row["provenance"]]} == {
                **anew,
                "provenance": plain.entries[anew["provenance"]],
            }
            kept.append((row, copy.deepcopy(row)))
    # A document that somebody still holds does not change when the next sample is taken.
    assert all(row == was for row, was in kept)


def test_rows_with_equal_maps_share_one_entry() -> None:
    memo, table = RowMemo(), ProvenanceTable()
    memo.begin_sample()
    for pid in range(50):
        memo.row("GPU-0", pid, dict(START), False, table)
    assert len(table.entries) == 1
    memo.begin_sample()
    later = ProvenanceTable()
    for pid in range(50):
        memo.row("GPU-0", pid, dict(START), False, later)
    assert len(later.entries) == 1


MACHINES = sorted(path.name for path in (ROOT / "tests" / "machines").iterdir() if path.is_dir())


def timeless(doc: Any) -> Any:
    return {**json.loads(dumps(doc)), "duration_seconds": None}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_third_sample_of_a_machine_is_what_a_collector_without_memory_of_rows_says(machine: str) -> None:
    """Two collectors in step; the second one's rows are all built anew."""
    hosts = [CapturedHost(ROOT / "tests" / "machines" / machine) for _ in range(2)]
    keeping, forgetting = (Collector(host, CollectOptions()) for host in hosts)
    for _ in range(3):
        forgetting._rows = RowMemo()
        assert timeless(keeping.sample()) == timeless(forgetting.sample())
        for host in hosts:
            host.sleep(10)
