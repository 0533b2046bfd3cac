"""What became of each process: the README's "Who is who"."""

from __future__ import annotations

import pytest

from gpusnap.diff import diff
from tests.builders import GIB, MIB, Row, adapter, process, snapshot
from tests.unit.diff.helpers import codes, process_row, statuses

CARD = adapter(0, used=9 * GIB)


def test_same_changed_appeared_exited() -> None:
    before = snapshot([CARD], [process(1, GIB), process(2, GIB), process(3, GIB)])
    after = snapshot([CARD], [process(1, GIB), process(2, 2 * GIB), process(4, GIB, start_ticks=400_000)])
    result = diff(before, after)
    assert statuses(result) == {1: "same", 2: "changed", 3: "exited", 4: "appeared"}
    assert process_row(result, 1)["changes"] == {}
    assert process_row(result, 2)["changes"] == {
        "vram_bytes": {
            "before": GIB,
            "after": 2 * GIB,
            "delta": GIB,
            "reset": False,
            "before_provenance": "measured:test",
            "after_provenance": "measured:test",
        }
    }


def test_a_row_on_one_side_has_null_none_on_the_other_and_deltas_that_sum() -> None:
    before = snapshot([CARD], [process(3, GIB, leaves={"rss_bytes": 5 * MIB, "cpu_percent": 12.0})])
    after = snapshot([CARD], [process(4, 3 * GIB, start_ticks=400_000)])
    result = diff(before, after)
    gone, come = process_row(result, 3)["changes"], process_row(result, 4)["changes"]
    assert gone["vram_bytes"] == {
        "before": GIB,
        "after": None,
        "delta": -GIB,
        "reset": False,
        "before_provenance": "measured:test",
        "after_provenance": "null:none",
    }
    assert (gone["rss_bytes"]["delta"], gone["cpu_percent"]["delta"]) == (-5 * MIB, None)
    assert (come["vram_bytes"]["delta"], come["vram_bytes"]["before_provenance"]) == (3 * GIB, "null:none")


def test_a_new_process_whose_memory_nobody_measured_is_listed_as_unknown_not_as_zero() -> None:
    result = diff(snapshot([CARD]), snapshot([CARD], [process(4, "null:wddm", start_ticks=400_000)]))
    assert process_row(result, 4)["changes"]["vram_bytes"] == {
        "before": None,
        "after": None,
        "delta": None,
        "reset": False,
        "before_provenance": "null:none",
        "after_provenance": "null:wddm",
    }


def test_two_boots_are_all_exited_and_all_appeared() -> None:
    """Also a row without a start stamp: whatever it was, it ended with its boot."""
    rows = [process(1, GIB), process(2, GIB, start_ticks=None)]
    before = snapshot([CARD], rows, boot="boot-one")
    after = snapshot([CARD], rows, boot="boot-two")
    result = diff(before, after)
    assert statuses(result) == {1: "appeared exited", 2: "appeared exited"}
    assert result["elapsed_seconds"] is None
    assert codes(result) == ["other-boot"]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ({"boot": None}, {}, "unknown-boot"),
        ({}, {"boot": None}, "unknown-boot"),
        ({"hostname": "a", "boot": "x"}, {"hostname": "b", "boot": "y"}, "other-host"),
        ({"hostname": "a"}, {"hostname": "b"}, "other-host"),
    ],
)
def test_an_unknown_boot_or_another_machine_pairs_no_process(
    before: dict[str, str], after: dict[str, str], code: str
) -> None:
    result = diff(snapshot([CARD], [process(1)], **before), snapshot([CARD], [process(1), process(2)], **after))  # type: ignore[arg-type]
    assert statuses(result) == {1: "unknown unknown", 2: "unknown"}
    assert all(row["changes"] == {} for row in result["processes"])
    assert codes(result) == [code]
    assert result["elapsed_seconds"] is None


@pytest.mark.parametrize(
    ("after", "rows", "code"),
    [
        (adapter(0, used=GIB, listed="null:no-permission"), None, "list-unavailable"),
        (adapter(0, used=GIB, listed="null:no-permission"), [], "list-unavailable"),
        (adapter(0, used=GIB, listed="partial"), [], "list-partial"),
    ],
)
def test_a_list_that_failed_or_is_partial_is_no_proof_of_an_exit(
    after: Row, rows: list[Row] | None, code: str
) -> None:
    full = snapshot([CARD], [process(1), process(2)])
    failed = snapshot([after], rows)
    result = diff(full, failed)
    assert statuses(result) == {1: "unknown", 2: "unknown"}
    assert codes(result) == [code]
    assert "2 pids are unknown (1, 2): the after snapshot" in result["warnings"][0]["message"]
    # Nor is the reverse "all new".
    assert statuses(diff(failed, full)) == {1: "unknown", 2: "unknown"}


def test_a_partial_list_still_pairs_the_rows_it_has() -> None:
    before = snapshot([CARD], [process(1, GIB), process(2)])
    after = snapshot([adapter(0, used=GIB, listed="partial")], [process(1, 2 * GIB)])
    assert statuses(diff(before, after)) == {1: "changed", 2: "unknown"}


def test_a_process_on_two_cards_is_two_rows() -> None:
    cards = [adapter(0, used=GIB), adapter(1, used=GIB)]
    before = snapshot(cards, [process(1, GIB, on=0), process(1, GIB, on=1)])
    after = snapshot(cards, [process(1, GIB, on=0)])
    result = diff(before, after)
    assert [(row["adapter"][:12], row["status"]) for row in result["processes"]] == [
        ("GPU-00000000", "same"),
        ("GPU-00000001", "exited"),
    ]


def test_gpusnaps_own_row_is_no_difference() -> None:
    before = snapshot([CARD], [process(1), process(900, MIB, self=True)])
    after = snapshot([CARD], [process(1), process(901, MIB, self=True, start_ticks=500_000)])
    assert statuses(diff(before, after)) == {1: "same"}


def test_rows_on_a_card_that_their_document_does_not_have_are_kept_as_unknown() -> None:
    odd = process(5, GIB, on=7)
    result = diff(snapshot([CARD], [odd]), snapshot([CARD, adapter(7)], []))
    assert statuses(result) == {5: "unknown"}
    assert codes(result) == ["card-missing"]


def test_a_row_without_a_stamp_leaves_its_pids_other_row_unknown_too() -> None:
    """The process was there before and could not be read the second time: it may well be the same."""
    result = diff(snapshot([CARD], [process(1)]), snapshot([CARD], [process(1, start_ticks=None)]))
    assert statuses(result) == {1: "unknown unknown"}
    assert codes(result) == ["unknown-start"]


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ({"state": "sleeping"}, {"state": "zombie"}, "changed"),
        ({"type": "compute"}, {"type": "both"}, "changed"),
        ({"leaves": {"spill_bytes": 0}}, {"leaves": {"spill_bytes": 1}}, "changed"),
        # A figure that became unknown is a change, and so is one that became known.
        ({"vram": GIB}, {"vram": "null:no-permission"}, "changed"),
        ({"leaves": {"paged_bytes": "null:not-supported"}}, {"leaves": {"paged_bytes": 0}}, "changed"),
        # These differ between any two samples.
        ({"leaves": {"rss_bytes": 1}}, {"leaves": {"rss_bytes": 2}}, "same"),
        ({"busy": 3}, {"busy": 97}, "same"),
        ({"name": "python"}, {"name": "ray::IDLE"}, "same"),
        ({"category": "ai"}, {"category": "llm"}, "same"),
    ],
)
def test_memory_state_and_type_decide_the_rest_is_listed(
    old: dict[str, object], new: dict[str, object], status: str
) -> None:
    result = diff(snapshot([CARD], [process(1, **old)]), snapshot([CARD], [process(1, **new)]))  # type: ignore[arg-type]
    row = process_row(result, 1)
    assert row["status"] == status
    assert row["changes"]


def test_model_and_llm_facts_decide_leaf_by_leaf() -> None:
    from tests.builders import llm_facts, model_facts

    old = process(1, model=model_facts(name="Qwen3-8B", layers=36), llm=llm_facts(context_tokens=8192))
    new = process(1, model=model_facts(name="Qwen3-14B", layers=40), llm=llm_facts(context_tokens=8192))
    row = process_row(diff(snapshot([CARD], [old]), snapshot([CARD], [new])), 1)
    assert row["status"] == "changed"
    assert {leaf: change["delta"] for leaf, change in row["changes"].items()} == {
        "model.name": None,
        "model.layers": 4,
    }
    gone = process_row(diff(snapshot([CARD], [old]), snapshot([CARD], [process(1)])), 1)
    assert gone["changes"]["llm.context_tokens"]["after_provenance"] == "null:none"
    assert gone["changes"]["llm.context_tokens"]["before"] == 8192


def test_min_bytes_keeps_a_row_from_being_changed_but_lists_it() -> None:
    before, after = snapshot([CARD], [process(1, GIB)]), snapshot([CARD], [process(1, GIB + 5 * MIB)])
    row = process_row(diff(before, after, min_bytes=10 * MIB), 1)
    assert (row["status"], row["changes"]["vram_bytes"]["delta"]) == ("same", 5 * MIB)
    assert process_row(diff(before, after, min_bytes=5 * MIB), 1)["status"] == "changed"


def test_rows_come_biggest_change_first_within_their_card() -> None:
    before = snapshot([CARD], [process(1, GIB), process(2, 4 * GIB), process(3, GIB)])
    after = snapshot([CARD], [process(1, 2 * GIB), process(3, GIB), process(9, 2 * GIB, start_ticks=5)])
    assert [row["pid"] for row in diff(before, after)["processes"]] == [2, 9, 1, 3]


# --match program


def rerun(pid: int, script: str, vram: int = GIB, *, user: str | None = "alice", **more: object) -> Row:
    """A Python program; its start stamp is its pid, so that two runs never share one."""
    return process(
        pid,
        vram,
        name="python3.11",
        user=user,
        uid=None if user is None else 1000,
        exe="/usr/bin/python3.11",
        cmdline=["/usr/bin/python3.11", "-u", script, "--epochs", "3"],
        start_ticks=pid,
        **more,  # type: ignore[arg-type]
    )


def test_two_runs_of_a_pipeline_pair_by_program_only_when_asked() -> None:
    before = snapshot([CARD], [rerun(10, "/src/train.py", 4 * GIB)])
    after = snapshot([CARD], [rerun(20, "/src/train.py", 5 * GIB)])
    assert statuses(diff(before, after)) == {10: "exited", 20: "appeared"}
    (row,) = diff(before, after, match="program")["processes"]
    assert (row["status"], row["pid"], row["start_ticks"]) == ("replaced", 20, 20)
    assert row["replaces"] == {"pid": 10, "start_ticks": 10}
    assert row["changes"]["vram_bytes"]["delta"] == GIB


def test_another_script_user_or_card_is_another_program() -> None:
    before = snapshot([CARD], [rerun(10, "/src/train.py")])
    for other in (
        rerun(20, "/src/eval.py"),
        rerun(20, "/src/train.py", user="bob"),
        rerun(20, "/src/train.py", user=None),
    ):
        assert statuses(diff(before, snapshot([CARD], [other]), match="program")) == {10: "exited", 20: "appeared"}
    cards = [CARD, adapter(1, used=GIB)]
    before, after = snapshot(cards, [rerun(10, "a.py")]), snapshot(cards, [rerun(20, "a.py", on=1)])
    assert statuses(diff(before, after, match="program")) == {10: "exited", 20: "appeared"}


def test_programs_pair_across_a_reboot_but_not_across_machines() -> None:
    before = snapshot([CARD], [rerun(10, "a.py")])
    assert statuses(diff(before, snapshot([CARD], [rerun(20, "a.py")], boot="next"), match="program")) == {
        20: "replaced"
    }
    elsewhere = snapshot([CARD], [rerun(20, "a.py")], hostname="elsewhere")
    assert statuses(diff(before, elsewhere, match="program")) == {10: "unknown", 20: "unknown"}


def test_equal_command_lines_pair_first_then_the_largest() -> None:
    before = snapshot([CARD], [rerun(10, "a.py", 1 * GIB), rerun(11, "a.py", 8 * GIB)])
    other = rerun(20, "a.py", 7 * GIB)
    other["cmdline"] = [*other["cmdline"][:-1], "99"]
    after = snapshot([CARD], [other, rerun(21, "a.py", 2 * GIB)])
    result = diff(before, after, match="program")
    pairs = {row["pid"]: row["replaces"]["pid"] for row in result["processes"] if row["replaces"] is not None}
    # 21 has the words of both; the larger of them comes first. 20 gets what is left.
    assert pairs == {21: 11, 20: 10}


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (
            ["python3.11", "-m", "vllm.entrypoints.api"],
            ["python3.12", "-m", "vllm.entrypoints.api", "--port", "1"],
        ),
        (["java", "-Xmx4g", "-jar", "/opt/a.jar"], ["java", "-Xmx8g", "-jar", "/opt/a.jar"]),
        (["python", "-W", "ignore", "a.py"], ["python", "a.py"]),
    ],
)
def test_an_interpreters_program_is_its_script_or_module(words: list[str], same: list[str]) -> None:
    old, new = (process(pid, name=cmd[0], cmdline=cmd, start_ticks=pid) for pid, cmd in ((10, words), (20, same)))
    assert statuses(diff(snapshot([CARD], [old]), snapshot([CARD], [new]), match="program")) == {20: "replaced"}


def test_rows_that_nothing_names_are_nobodys_successor() -> None:
    nameless = {"name": "null:no-permission", "exe": "null:no-permission", "cmdline": "null:no-permission"}
    old, new = process(10, start_ticks=10, **nameless), process(20, start_ticks=20, **nameless)  # type: ignore[arg-type]
    result = diff(snapshot([CARD], [old]), snapshot([CARD], [new]), match="program")
    assert statuses(result) == {10: "exited", 20: "appeared"}
