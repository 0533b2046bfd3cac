"""Field by field: deltas only where both sides were measured, restarts said, sources said."""

from __future__ import annotations

import pytest

from gpusnap.diff import diff
from tests.builders import GIB, START, adapter, process, snapshot
from tests.unit.diff.helpers import card_row, change, codes, process_row

ID = adapter(0)["id"]
V1 = {"memory.used_bytes": "measured:nvml.MemoryInfo"}
V2 = {"memory.used_bytes": "measured:nvml.MemoryInfo_v2"}


def test_a_figure_that_became_unknown_has_no_delta_and_says_why() -> None:
    before = snapshot([adapter(0, used=GIB)], [process(1, GIB)])
    after = snapshot([adapter(0, used="null:timeout NVML_ERROR_TIMEOUT")], [process(1, "null:no-permission")])
    result = diff(before, after)
    used = change(card_row(result, ID), "memory.used_bytes")
    assert (used["before"], used["after"], used["delta"], used["reset"]) == (GIB, None, None, False)
    assert used["after_provenance"] == "null:timeout NVML_ERROR_TIMEOUT"
    assert change(process_row(result, 1), "vram_bytes")["after_provenance"] == "null:no-permission"


def test_a_figure_that_became_known_is_no_growth_from_zero() -> None:
    result = diff(snapshot([adapter(0, used="null:timeout")]), snapshot([adapter(0, used=GIB)]))
    used = change(card_row(result, ID), "memory.used_bytes")
    assert (used["before"], used["after"], used["delta"]) == (None, GIB, None)


def test_a_measured_zero_has_a_delta() -> None:
    result = diff(snapshot([adapter(0, used=0)]), snapshot([adapter(0, used=GIB)]))
    assert change(card_row(result, ID), "memory.used_bytes")["delta"] == GIB


def test_fractions_keep_their_decimals_without_float_noise() -> None:
    old, new = (adapter(0, leaves={"power.draw_watts": watts}) for watts in (40.1, 41.3))
    assert change(card_row(diff(snapshot([old]), snapshot([new])), ID), "power.draw_watts")["delta"] == 1.2


def test_booleans_and_names_have_no_delta() -> None:
    old, new = (adapter(0, leaves={"ecc.remap_pending": pending}) for pending in (False, True))
    result = diff(snapshot([old], [process(1, uid=0, ppid=900)]), snapshot([new], [process(1, uid=1000, ppid=1)]))
    assert change(card_row(result, ID), "ecc.remap_pending")["delta"] is None
    assert change(process_row(result, 1), "ppid") == {
        "before": 900,
        "after": 1,
        "delta": None,
        "reset": False,
        "before_provenance": None,
        "after_provenance": None,
    }
    assert change(process_row(result, 1), "uid")["delta"] is None


def test_report_028_growth_is_the_delta_of_the_aggregate_and_volatile_counters_restart() -> None:
    """wandb#9347: aggregate ECC keeps counting repaired errors, volatile restarts with the driver."""
    old = adapter(0, leaves={"ecc.corrected_aggregate": 37, "ecc.corrected_volatile": 5, "ecc.remapped_rows": 1})
    new = adapter(0, leaves={"ecc.corrected_aggregate": 40, "ecc.corrected_volatile": 3, "ecc.remapped_rows": 1})
    row = card_row(diff(snapshot([old]), snapshot([new], uptime=90_000.0)), ID)
    assert change(row, "ecc.corrected_aggregate")["delta"] == 3
    volatile = change(row, "ecc.corrected_volatile")
    assert (volatile["before"], volatile["after"], volatile["delta"], volatile["reset"]) == (5, 3, None, True)
    assert "ecc.remapped_rows" not in row["changes"]


def test_energy_that_fell_was_reset_and_so_was_all_of_it_by_a_boot() -> None:
    old, new = (adapter(0, leaves={"power.energy_joules": joules}) for joules in (5000.0, 700.0))
    row = card_row(diff(snapshot([old]), snapshot([new], uptime=90_000.0)), ID)
    assert change(row, "power.energy_joules")["reset"] is True
    # It grew, but from zero: the machine was booted in between.
    row = card_row(diff(snapshot([new], boot="one"), snapshot([old], boot="two")), ID)
    assert (change(row, "power.energy_joules")["delta"], change(row, "power.energy_joules")["reset"]) == (
        None,
        True,
    )


def test_a_counter_read_backwards_in_time_did_not_restart() -> None:
    early = snapshot([adapter(0, leaves={"power.energy_joules": 700.0})], uptime=1000.0)
    late = snapshot([adapter(0, leaves={"power.energy_joules": 900.0})], uptime=2000.0, at=START + 1000)
    assert change(card_row(diff(early, late), ID), "power.energy_joules")["delta"] == 200
    assert change(card_row(diff(late, early), ID), "power.energy_joules")["delta"] == -200


def test_a_level_that_fell_is_no_reset() -> None:
    old, new = (adapter(0, leaves={"temperature.gpu_celsius": degrees}) for degrees in (80, 40))
    row = card_row(diff(snapshot([old]), snapshot([new])), ID)
    assert change(row, "temperature.gpu_celsius") == {
        "before": 80,
        "after": 40,
        "delta": -40,
        "reset": False,
        "before_provenance": "measured:test",
        "after_provenance": "measured:test",
    }


def test_report_022_memory_that_another_call_counted_is_said_to_be() -> None:
    """gpustat#141: the first memory call counts the driver's reserve as used, the second does not."""
    old = adapter(0, used=308 << 20, provenance=V1)
    new = adapter(0, used=0, provenance=V2, leaves={"memory.reserved_bytes": 308 << 20})
    result = diff(snapshot([old]), snapshot([new]))
    used = change(card_row(result, ID), "memory.used_bytes")
    assert (used["before_provenance"], used["after_provenance"]) == (
        V1["memory.used_bytes"],
        V2["memory.used_bytes"],
    )
    assert codes(result) == ["source-changed"]
    assert "measured:nvml.MemoryInfo before, measured:nvml.MemoryInfo_v2 after" in result["warnings"][0]["message"]


def test_an_equal_figure_from_another_source_is_listed_but_decides_nothing() -> None:
    result = diff(
        snapshot([adapter(0, used=GIB)], [process(1, GIB, provenance={"vram_bytes": "measured:nvml.Compute"})]),
        snapshot([adapter(0, used=GIB)], [process(1, GIB, provenance={"vram_bytes": "measured:fdinfo.drm"})]),
    )
    row = process_row(result, 1)
    assert (row["status"], change(row, "vram_bytes")["delta"]) == ("same", 0)


def test_another_reason_for_a_null_is_listed_and_other_words_for_it_are_not() -> None:
    def one(reason: str) -> object:
        return snapshot([adapter(0)], [process(1, GIB, leaves={"spill_bytes": reason})])

    words = diff(one("null:failed errno 5"), one("null:failed errno 7"))  # type: ignore[arg-type]
    assert process_row(words, 1)["changes"] == {}
    reason = process_row(diff(one("null:failed"), one("null:no-permission")), 1)  # type: ignore[arg-type]
    assert (reason["status"], change(reason, "spill_bytes")["after_provenance"]) == ("same", "null:no-permission")


@pytest.mark.parametrize("index", [-1, 99])
def test_a_provenance_index_that_points_nowhere_is_no_reason_recorded(index: int) -> None:
    before, after = snapshot([adapter(0)], [process(1, GIB)]), snapshot([adapter(0)], [process(1, 2 * GIB)])
    assert after["processes"] is not None
    after["processes"][0]["provenance"] = index
    row = process_row(diff(before, after), 1)
    assert change(row, "vram_bytes")["delta"] == GIB
    assert change(row, "vram_bytes")["after_provenance"] is None


def test_report_010_a_clock_step_is_told_from_a_gap() -> None:
    """prestonbrown/helixscreen#1218: two samples 5 s apart, the wall clock says +879 s."""
    result = diff(snapshot([], uptime=1000.0), snapshot([], at=START + 879, uptime=1005.0))
    assert result["elapsed_seconds"] == 5.0
    assert codes(result) == ["clock-step"]
    assert "set by +874 s" in result["warnings"][0]["message"]
    assert codes(diff(snapshot([], uptime=1000.0), snapshot([], at=START + 5.4, uptime=1005.0))) == []


def test_snapshots_in_the_wrong_order_are_pointed_out() -> None:
    result = diff(snapshot([], uptime=1005.0, at=START + 5), snapshot([], uptime=1000.0))
    assert result["elapsed_seconds"] == -5.0
    assert codes(result) == ["reversed-order"]


def test_a_difference_names_both_sides() -> None:
    before = snapshot([], labels={"step": "load"})
    result = diff(before, snapshot([]), before_source="a.json", after_source="rec.jsonl@last")
    assert result["schema"] == "gpusnap.diff/1"
    assert result["before"] == {
        "source": "a.json",
        "taken_at": "2026-11-30T12:00:00.000Z",
        "boot_id": before["boot_id"],
        "hostname": "node12",
        "labels": {"step": "load"},
    }
    assert result["after"]["source"] == "rec.jsonl@last"
