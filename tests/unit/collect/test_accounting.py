"""The account of a card against sums done here, by the words of the contract."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.collect.accounting import account, reserved_inside_used
from gpusnap.collect.harvest import AdapterFacts
from gpusnap.reading import Reading, inferred, measured, null

GIB = 1 << 30


def card(total: int | None, used: int | None, free: int | None, reserved: int | None) -> AdapterFacts:
    facts = AdapterFacts("0000:01:00.0")
    for name, value in (("total", total), ("used", used), ("free", free), ("reserved", reserved)):
        reading = null("not-supported") if value is None else measured(value, "test")
        facts.figures[f"memory.{name}_bytes"] = reading
    return facts


def process(vram: int | None, category: str = "app", shared: int = 0, reason: str = "wddm") -> dict[str, Reading]:
    return {
        "vram_bytes": null(reason) if vram is None else measured(vram, "test"),
        "vram_shared_bytes": measured(shared, "test"),
        "category": inferred(category, "test"),
    }


@pytest.mark.parametrize(
    ("total", "used", "free", "reserved", "inside"),
    [
        (100, 60, 30, 10, 0),  # used + free + reserved = total: reserved stands outside
        (100, 70, 30, 10, 10),  # used + free = total: the whole of it inside
        (100, 60, 30, None, 0),  # unknown
        (100, 60, 10, 10, 0),  # adds up neither way
        (100, 60, 40, 0, 0),
    ],
)
def test_reserved_part_inside_used(total: int, used: int, free: int, reserved: int | None, inside: int) -> None:
    assert reserved_inside_used(card(total, used, free, reserved).figures).value == inside


def test_unmeasured_rows_are_counted_and_their_category_is_null() -> None:
    rows = [process(4 * GIB, "llm"), process(None, "browser"), process(0, "desktop")]
    books = account(card(8 * GIB, 6 * GIB, 2 * GIB, 0), rows, listed="complete", has_partitions=False)
    assert books.leaves["attributed_bytes"].value == 4 * GIB
    assert books.leaves["unattributed_bytes"].value == 2 * GIB
    assert books.leaves["unmeasured_processes"].value == 1
    assert books.by_category["browser"].provenance == "null:wddm"
    assert books.by_category["desktop"].value == 0
    assert books.by_category["ai"].value == 0


def test_unified_rows_are_not_unmeasured() -> None:
    rows = [process(None, "llm", reason="unified-memory")]
    books = account(card(GIB, 0, GIB, 0), rows, listed="complete", has_partitions=False)
    assert books.leaves["unmeasured_processes"].value == 0


def test_more_attributed_than_used_is_bounded_not_negative() -> None:
    """An exported surface counts on both sides: 3 GiB of 5 are private, 4 are used."""
    rows = [process(3 * GIB, "desktop", shared=GIB), process(2 * GIB, "browser", shared=GIB)]
    books = account(card(8 * GIB, 4 * GIB, 4 * GIB, 0), rows, listed="complete", has_partitions=False)
    assert books.leaves["unattributed_bytes"].provenance == "null:over-attributed"
    assert books.leaves["unattributed_max_bytes"].value == 1 * GIB


def test_shared_clients_count_once() -> None:
    facts = card(8 * GIB, 4 * GIB, 4 * GIB, 0)
    facts.shared_clients = [{"client": "7", "vram_bytes": GIB, "spill_bytes": 0, "holders": [10, 11]}]
    books = account(facts, [process(2 * GIB)], listed="complete", has_partitions=False)
    assert books.leaves["shared_bytes"].value == GIB
    assert books.leaves["attributed_bytes"].value == 3 * GIB
    assert books.leaves["unattributed_bytes"].value == GIB
    assert books.leaves["attributed_private_bytes"].value == 2 * GIB


def test_a_list_that_failed_leaves_no_account_but_free_and_reserved() -> None:
    why = null("timeout")
    books = account(card(100, 70, 30, 10), [], listed=why, has_partitions=False)
    assert books.leaves["attributed_bytes"] == why
    assert books.leaves["unattributed_bytes"] == why
    assert books.leaves["reserved_bytes"].value == 10
    assert books.leaves["free_bytes"].value == 30
    assert all(reading == why for reading in books.by_category.values())


def test_parents_of_partitions_have_no_account() -> None:
    books = account(card(100, 70, 30, 0), [process(5)], listed="complete", has_partitions=True)
    assert {r.provenance for r in (*books.leaves.values(), *books.by_category.values())} == {"null:partitioned"}


sizes = st.one_of(st.none(), st.integers(0, 10**12))
rows_strategy = st.lists(st.tuples(sizes, st.sampled_from(["llm", "app", "unknown"])), max_size=12)


@given(rows=rows_strategy, used=st.integers(0, 10**13), free=st.integers(0, 10**13), reserved=sizes)
def test_the_account_adds_up_to_the_byte(
    rows: list[tuple[int | None, str]], used: int, free: int, reserved: int | None
) -> None:
    outside = 0 if reserved is None else reserved
    facts = card(used + free + outside, used, free, reserved)
    processes = [process(vram, category) for vram, category in rows]
    books = account(facts, processes, listed="complete", has_partitions=False)
    attributed = sum(vram for vram, _ in rows if vram is not None)
    assert books.leaves["attributed_bytes"].value == attributed
    known = [r.value for r in books.by_category.values() if isinstance(r.value, int)]
    assert sum(known) == attributed
    if attributed <= used:
        assert books.leaves["unattributed_bytes"].value == used - attributed
    else:
        assert books.leaves["unattributed_bytes"].provenance == "null:over-attributed"
