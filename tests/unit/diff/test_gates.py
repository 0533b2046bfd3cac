"""Gates: strictly above the limit, and unknown is not "fine"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.diff import diff
from gpusnap.diff.gates import Growth, has_differences
from tests.builders import GIB, MIB, Row, adapter, process, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Snapshot

CARD = adapter(0, used=2 * GIB)


def cards(before: Snapshot, after: Snapshot, limit: int) -> list[str]:
    return Growth(diff(before, after), before, after).of_cards(limit)


def rows(before: Snapshot, after: Snapshot, limit: int, **options: Any) -> list[str]:
    return Growth(diff(before, after, **options), before, after).of_processes(limit)


def one(row: Row | None = None) -> Snapshot:
    return snapshot([CARD], [] if row is None else [row])


def test_growth_of_a_card_is_strictly_above() -> None:
    before, after = snapshot([adapter(0, used=GIB)]), snapshot([adapter(0, used=GIB + 256 * MIB)])
    assert cards(before, after, 256 * MIB) == []
    (failure,) = cards(before, after, 256 * MIB - 1)
    assert failure == (
        "GPU 0 (NVIDIA GeForce RTX 4080 SUPER): "
        "used grew by 256 MiB (268435456 bytes), above 256 MiB (268435455 bytes)"
    )
    # Shrinking and standing still are no growth, also above nothing.
    assert cards(after, before, 0) == []
    assert cards(before, before, 0) == []


def test_each_card_is_checked_by_itself() -> None:
    before = snapshot([adapter(0, used=9 * GIB), adapter(1, used=GIB)])
    after = snapshot([adapter(0, used=GIB), adapter(1, used=9 * GIB)])
    (failure,) = cards(before, after, GIB)
    assert failure.startswith("GPU 1 (")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("null:timeout", GIB, "used was not measured before (no answer in time)"),
        (GIB, "null:no-permission", "used was not measured after (no permission)"),
        ("null:device-lost", "null:device-lost", "used was not measured before (the device is lost)"),
    ],
)
def test_used_that_was_not_measured_fails(old: int | str, new: int | str, words: str) -> None:
    (failure,) = cards(snapshot([adapter(0, used=old)]), snapshot([adapter(0, used=new)]), 100 * GIB)
    assert failure.endswith(words)


def test_no_matched_card_fails() -> None:
    nothing = "no card is in both snapshots with a figure to compare"
    assert cards(snapshot([]), snapshot([]), GIB) == [nothing]
    assert cards(snapshot([CARD]), snapshot([]), GIB) == [nothing]
    assert rows(snapshot([]), snapshot([]), GIB) == ["no card is in both snapshots"]


def test_a_card_on_one_side_only_fails_beside_one_that_passes() -> None:
    (failure,) = cards(snapshot([CARD, adapter(1, used=0)]), snapshot([CARD]), GIB)
    assert failure == "GPU 1 (NVIDIA GeForce RTX 4080 SUPER): is only in the before snapshot"


def test_a_card_without_memory_of_its_own_is_not_needed_unless_it_is_alone() -> None:
    unified = adapter(1, used="null:unified-memory")
    assert cards(snapshot([CARD, unified]), snapshot([CARD, unified]), GIB) == []
    assert cards(snapshot([unified]), snapshot([unified]), GIB) != []


def test_growth_of_a_process_also_of_a_new_one() -> None:
    old, grown = process(1, GIB), process(1, 3 * GIB)
    assert rows(one(old), one(grown), 2 * GIB) == []
    assert rows(one(old), one(grown), 2 * GIB - 1) == [
        "python 1: grew by 2.0 GiB (2147483648 bytes), above 2.0 GiB (2147483647 bytes)"
    ]
    assert rows(one(), one(old), GIB) == []
    assert len(rows(one(), one(old), GIB - 1)) == 1
    assert rows(one(old), one(), 0) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (process(1, "null:wddm"), process(1, GIB), "python 1: memory was not measured before (Windows manages"),
        (process(1, GIB), process(1, "null:wddm"), "python 1: memory was not measured after (Windows manages"),
        (process(1, "null:wddm"), process(1, "null:wddm"), "python 1: memory was not measured before"),
        (None, process(1, "null:wddm"), "python 1: memory was not measured after"),
    ],
)
def test_a_process_that_was_not_measured_fails(old: Row | None, new: Row, words: str) -> None:
    (failure,) = rows(one(old), one(new), 100 * GIB)
    assert failure.startswith(words)


def test_a_process_that_cannot_be_told_fails() -> None:
    unstamped = process(1, GIB, start_ticks=None)
    failures = rows(one(unstamped), one(unstamped), 100 * GIB)
    assert set(failures) == {"python 1: can't be told to be the same process"}


def test_a_list_that_failed_fails_the_gate_of_processes_but_not_that_of_cards() -> None:
    unlisted = snapshot([adapter(0, used=2 * GIB, listed="null:no-permission")], [])
    (failure,) = rows(one(), unlisted, GIB)
    assert failure.endswith("processes could not be listed after (no permission)")
    assert rows(one(), snapshot([CARD], None), GIB) == ["the after snapshot could not list processes"]
    assert cards(one(), unlisted, GIB) == []


def test_on_unified_memory_a_process_is_what_it_holds_of_the_systems() -> None:
    def unified(spill: int) -> Row:
        return process(1, "null:unified-memory", leaves={"spill_bytes": spill})

    assert rows(one(unified(GIB)), one(unified(2 * GIB)), GIB) == []
    assert len(rows(one(unified(GIB)), one(unified(2 * GIB)), GIB - 1)) == 1


def test_a_replaced_program_grows_from_what_its_predecessor_held() -> None:
    old, new = process(1, GIB, start_ticks=1), process(2, 2 * GIB, start_ticks=2)
    assert rows(one(old), one(new), GIB, match="program") == []
    assert len(rows(one(old), one(new), GIB)) == 1


# --exit-code


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        (process(1, GIB), process(1, GIB), False),
        (process(1, GIB), process(1, 2 * GIB), True),
        (process(1, GIB), None, True),
        (None, process(1, "null:wddm"), True),
        (process(1, GIB, busy=3), process(1, GIB, busy=90), False),
        (process(1, GIB, state="running"), process(1, GIB, state="zombie"), True),
        (process(1, GIB), process(1, "null:no-permission"), True),
    ],
)
def test_what_counts_as_a_difference(old: Row | None, new: Row | None, differs: bool) -> None:
    # The card's own account is left out: it would differ with every row.
    assert has_differences(_without_accounts(diff(one(old), one(new)))) is differs


def _without_accounts(result: Any) -> Any:
    for card in result["adapters"]:
        card["changes"] = {}
    return result


def test_cards_differ_by_memory_health_and_ecc_not_by_temperature() -> None:
    def differs(**leaves: object) -> bool:
        return has_differences(diff(snapshot([CARD]), snapshot([adapter(0, used=2 * GIB, leaves=leaves)])))

    assert not differs(**{"temperature.gpu_celsius": 80, "clocks.graphics_mhz": 2000, "power.draw_watts": 300.0})
    assert differs(**{"ecc.uncorrected_aggregate": 1})
    assert differs(**{"memory.used_bytes": 2 * GIB + 1})
    lost = adapter(0, used=2 * GIB)
    lost["health"] = "degraded"
    assert has_differences(diff(snapshot([CARD]), snapshot([lost])))
    assert has_differences(diff(snapshot([CARD]), snapshot([])))


def test_rows_that_are_unknown_on_both_sides_are_no_difference() -> None:
    unstamped = process(28290, GIB, start_ticks=None)
    assert not has_differences(diff(one(unstamped), one(unstamped)))


def test_min_lets_small_things_pass() -> None:
    small = one(process(1, 10 * MIB))
    assert not has_differences(_without_accounts(diff(one(), small)), 11 * MIB)
    assert has_differences(_without_accounts(diff(one(), small)), 10 * MIB)


def test_two_runs_of_one_program_do_not_differ_when_they_hold_the_same() -> None:
    old, new = process(1, GIB, start_ticks=1), process(2, GIB, start_ticks=2)
    assert has_differences(diff(one(old), one(new)))
    assert not has_differences(diff(one(old), one(new), match="program"))


@pytest.mark.parametrize(
    ("vram", "spill", "differs"),
    [
        # On unified memory what came is what it holds of the system's.
        ("null:unified-memory", 10 * MIB, False),
        ("null:unified-memory", 100 * MIB, True),
        ("null:unified-memory", "null:no-permission", True),
        # And beside VRAM: 5 GiB in system memory are no small thing.
        (0, 5 * GIB, True),
        (MIB, "null:not-exposed", False),
        ("null:wddm", MIB, True),
    ],
)
def test_min_is_of_all_the_memory_that_a_process_holds(vram: int | str, spill: int | str, differs: bool) -> None:
    row = process(1, vram, leaves={"spill_bytes": spill})
    for before, after in ((one(), one(row)), (one(row), one())):
        assert has_differences(_without_accounts(diff(before, after)), 100 * MIB) is differs
