"""What no process explains, and who is named for it. Each figure here is used - Σ of the rows, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.diff import diff
from tests.builders import GIB, MIB, Row, adapter, holder, process, snapshot
from tests.unit.diff.helpers import rest

if TYPE_CHECKING:
    from gpusnap.model import Diff


def pair(before: tuple[int, list[Row]], after: tuple[int, list[Row]], **card: object) -> Diff:
    """One card of 24 GiB with (used, rows) before and after; `card` is about the second."""
    return diff(
        snapshot([adapter(0, total=24 * GIB, used=before[0])], before[1]),
        snapshot([adapter(0, total=24 * GIB, used=after[0], **card)], after[1], uptime=87_000.0),  # type: ignore[arg-type]
    )


def test_memory_that_came_free_is_nobodys_rest() -> None:
    result = pair((21 * GIB, [process(9021, 20 * GIB)]), (1 * GIB, []))
    assert rest(result) == {
        "adapter": adapter(0)["id"],
        "before_bytes": GIB,
        "after_bytes": GIB,
        "delta_bytes": 0,
        "explained_by": [],
        "reason": None,
    }


def test_a_process_that_exited_without_its_memory_coming_free_is_named() -> None:
    """nvitop#134, mxnet#4242: the driver still holds the context of a pid that is gone."""
    held = int(20.1 * GIB)
    result = pair((21 * GIB, [process(9021, held)]), (21 * GIB, []))
    assert rest(result)["delta_bytes"] == held
    assert rest(result)["explained_by"] == [
        {"pid": 9021, "name": "python", "bytes": held, "says": "exited holding 20.1 GiB; 0 B came free"}
    ]
    assert rest(result)["reason"] is None


def test_what_did_come_free_of_it_is_said() -> None:
    result = pair((21 * GIB, [process(9021, 20 * GIB)]), (6 * GIB, []))
    (row,) = rest(result)["explained_by"]
    assert (row["bytes"], row["says"]) == (5 * GIB, "exited holding 20.0 GiB; 15.0 GiB came free")


def test_of_several_that_exited_the_one_of_that_size_is_named() -> None:
    rows = [process(1, 3 * GIB), process(2, 7 * GIB), process(3, 5 * GIB)]
    result = pair((16 * GIB, rows), (8 * GIB, []))
    assert rest(result)["delta_bytes"] == 7 * GIB
    assert [(row["pid"], row["bytes"]) for row in rest(result)["explained_by"]] == [(2, 7 * GIB)]


def test_several_that_exited_with_nothing_coming_free_are_all_named() -> None:
    result = pair((10 * GIB, [process(1, 3 * GIB), process(2, 7 * GIB)]), (10 * GIB, []))
    assert [(row["pid"], row["bytes"]) for row in rest(result)["explained_by"]] == [(2, 7 * GIB), (1, 3 * GIB)]
    assert rest(result)["reason"] is None


def test_several_of_which_any_may_have_kept_it_are_all_suspects_and_say_so() -> None:
    result = pair((10 * GIB, [process(1, 4 * GIB), process(2, 6 * GIB)]), (3 * GIB, []))
    explained = rest(result)["explained_by"]
    assert [row["pid"] for row in explained] == [2, 1]
    assert explained[0]["says"] == ("exited holding 6.0 GiB; of 10.0 GiB of 2 such processes, 7.0 GiB came free")


def test_more_than_it_held_stays_unexplained() -> None:
    result = pair((10 * GIB, [process(1, 4 * GIB)]), (15 * GIB, []))
    assert rest(result)["delta_bytes"] == 9 * GIB
    assert [row["bytes"] for row in rest(result)["explained_by"]] == [4 * GIB]
    assert rest(result)["reason"] == "5.0 GiB more than these held"


def test_when_nothing_explains_it_that_is_said_with_what_could_not_be_seen() -> None:
    result = pair((GIB, []), (7 * GIB, []))
    assert rest(result)["explained_by"] == []
    assert rest(result)["reason"] == "no process exited or lost its figure"
    hidden = pair(
        (GIB, []),
        (7 * GIB, [process(77, "null:wddm", start_ticks=5)]),
        holders=[holder(4711), holder(4712)],
        leaves={},
    )
    assert rest(hidden)["reason"] == (
        "no process exited or lost its figure; pid 77 without a figure; "
        "2 pids (4711, 4712) with the device open but not listed"
    )


def test_unreadable_processes_are_named_as_where_it_may_be() -> None:
    card = adapter(0, total=24 * GIB, used=7 * GIB)
    card["unreadable_pids"] = 3
    result = diff(snapshot([adapter(0, total=24 * GIB, used=GIB)]), snapshot([card]))
    assert rest(result)["reason"] == "no process exited or lost its figure; 3 processes could not be looked into"


def test_a_figure_that_became_unknown_moves_into_the_rest_and_is_named_for_it() -> None:
    result = pair((GIB, [process(3120, 700 * MIB)]), (GIB, [process(3120, "null:no-permission")]))
    assert rest(result)["delta_bytes"] == 700 * MIB
    assert rest(result)["explained_by"] == [
        {
            "pid": 3120,
            "name": "python",
            "bytes": 700 * MIB,
            "says": "runs on, but its 700 MiB became unknown (no permission)",
        }
    ]


def test_a_figure_that_became_known_explains_what_the_rest_lost() -> None:
    result = pair((GIB, [process(3120, "null:timeout")]), (GIB, [process(3120, 700 * MIB)]))
    assert rest(result)["delta_bytes"] == -700 * MIB
    assert rest(result)["explained_by"][0]["says"] == "was unknown before (no answer in time), now 700 MiB"


def test_memory_that_was_in_use_before_its_process_was_listed() -> None:
    result = pair((9 * GIB, []), (9 * GIB, [process(5, 8 * GIB)]))
    assert rest(result)["delta_bytes"] == -8 * GIB
    assert rest(result)["explained_by"][0]["says"] == "appeared with 8.0 GiB; 8.0 GiB of it was in use before"


def test_a_rest_that_went_away_by_itself_is_said_to_have() -> None:
    result = pair((9 * GIB, []), (GIB, []))
    assert rest(result)["reason"] == "memory came free that no process was listed for"


def test_a_process_that_is_still_on_another_card_did_not_exit() -> None:
    cards = [adapter(0, used=9 * GIB), adapter(1, used=9 * GIB)]
    result = diff(
        snapshot(cards, [process(5, 8 * GIB, on=0), process(5, 8 * GIB, on=1)]),
        snapshot(cards, [process(5, 8 * GIB, on=1)]),
    )
    assert rest(result)["explained_by"][0]["says"] == "left the card holding 8.0 GiB; 0 B came free"


def test_a_row_that_a_partial_list_lost_is_a_suspect_but_not_said_to_have_exited() -> None:
    result = pair((9 * GIB, [process(5, 8 * GIB)]), (9 * GIB, []), listed="partial")
    assert rest(result)["explained_by"] == [
        {"pid": 5, "name": "python", "bytes": 8 * GIB, "says": "is not listed any more; it held 8.0 GiB"}
    ]


def test_driver_noise_is_not_pinned_on_a_large_process_that_left_cleanly() -> None:
    result = pair((21 * GIB, [process(1, 20 * GIB)]), (GIB + 4 * MIB, []))
    assert rest(result)["explained_by"] == []
    assert rest(result)["reason"] == "the processes that exited gave their memory back"


def test_a_boot_in_between_leaves_nobody_to_blame() -> None:
    result = diff(
        snapshot([adapter(0, used=9 * GIB)], [process(1, 8 * GIB)], boot="one"),
        snapshot([adapter(0, used=9 * GIB)], [], boot="two"),
    )
    assert rest(result)["explained_by"] == []
    assert rest(result)["reason"] == "the machine was booted in between: nothing of before is left"


def test_an_account_that_is_not_known_has_no_delta_and_says_why() -> None:
    result = pair((GIB, []), (7 * GIB, []), listed="null:no-permission")
    assert (rest(result)["before_bytes"], rest(result)["after_bytes"], rest(result)["delta_bytes"]) == (
        GIB,
        None,
        None,
    )
    assert rest(result)["reason"] == "not known after (no permission)"


def test_more_attributed_than_used_is_a_reason_too() -> None:
    result = pair((9 * GIB, []), (7 * GIB, [process(1, 8 * GIB)]))
    assert rest(result)["reason"] == "not known after (more is attributed than used)"


def test_each_matched_card_has_its_own_row() -> None:
    cards = [adapter(0, used=GIB), adapter(1, used=2 * GIB)]
    result = diff(snapshot(cards), snapshot(cards[:1]))
    assert [row["adapter"] for row in result["unattributed"]] == [cards[0]["id"]]
