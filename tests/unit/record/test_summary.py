"""Peak and left behind: figures by hand, nulls where a side was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from gpusnap.model import Summary
from gpusnap.record import summary as module
from gpusnap.record.summary import Peaks
from tests.builders import GIB, MIB, adapter, backend, process, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot


def seen(*docs: dict[str, Any]) -> Peaks:
    peaks = Peaks()
    for doc in docs:
        peaks.sampled(cast("Snapshot", doc))
        peaks.wrote(cast("Snapshot", doc), 1)
    return peaks


def pair(card: int, change: dict[str, Any] | None, status: str = "matched") -> dict[str, Any]:
    key = adapter(card)["id"]
    changes = {} if change is None else {"memory.used_bytes": change}
    return {"status": status, "before_id": key, "after_id": key, "changes": changes}


def difference(*pairs: dict[str, Any]) -> Diff:
    return cast("Diff", {"adapters": list(pairs)})


def doc(used: int | str, *rows: dict[str, Any], second: float = 0.0) -> dict[str, Any]:
    built: dict[str, Any] = cast("dict[str, Any]", snapshot([adapter(used=used)], list(rows)))
    built["taken_at"] = f"2026-11-30T12:00:{second:06.3f}Z"
    return built


def test_the_peak_is_the_largest_sample_with_its_time_and_its_processes() -> None:
    peaks = seen(
        doc(1 * GIB, process(1, GIB)),
        doc(12 * GIB, process(1, 2 * GIB), process(2, 9 * GIB, name="train.py"), second=10),
        doc(11 * GIB, process(1, GIB), process(2, 9 * GIB + 1, name="train.py"), second=20),
        doc(1 * GIB, process(1, GIB), second=30),
    )
    summary = peaks.summary("0.1.0", ["python", "train.py"], 0, 30.1234, difference(pair(0, None)))
    assert msgspec.convert(summary, Summary, strict=True) == summary
    assert summary == {
        "schema": "gpusnap.summary/1",
        "version": "0.1.0",
        "command": ["python", "train.py"],
        "exit_code": 0,
        "elapsed_seconds": 30.123,
        "samples": 4,
        "adapters": [
            {
                "id": "GPU-00000000-0000-4000-8000-000000000000",
                "model": "NVIDIA GeForce RTX 4080 SUPER",
                "peak_bytes": 12 * GIB,
                "peak_at": "2026-11-30T12:00:10.000Z",
                "left_bytes": 0,
                "processes": [
                    {"pid": 2, "start_ticks": 360_000, "name": "train.py", "peak_bytes": 9 * GIB + 1},
                    {"pid": 1, "start_ticks": 360_000, "name": "python", "peak_bytes": 2 * GIB},
                ],
            }
        ],
        "warnings": [],
    }


def test_a_pid_that_is_used_again_is_another_process() -> None:
    peaks = seen(doc(GIB, process(7, 8 * GIB, start_ticks=1000)), doc(GIB, process(7, GIB, start_ticks=9000)))
    rows = peaks.summary("0", [], 0, 1, difference(pair(0, None)))["adapters"][0]["processes"]
    assert [(row["start_ticks"], row["peak_bytes"]) for row in rows] == [(1000, 8 * GIB), (9000, GIB)]


def test_gpusnaps_own_row_and_unmeasured_rows_have_no_peak() -> None:
    peaks = seen(doc(GIB, process(1, GIB, self=True), process(2, "null:no-permission"), process(3, 0)))
    rows = peaks.summary("0", [], 0, 1, difference(pair(0, None)))["adapters"][0]["processes"]
    assert [(row["pid"], row["peak_bytes"]) for row in rows] == [(3, 0)]


def test_left_behind_is_the_diffs_growth_of_used() -> None:
    peaks = seen(doc(GIB), doc(GIB + 300 * MIB))
    grown = {"before": GIB, "after": GIB + 300 * MIB, "delta": 300 * MIB}
    assert peaks.summary("0", [], 0, 1, difference(pair(0, grown)))["adapters"][0]["left_bytes"] == 300 * MIB


def test_a_card_without_a_figure_has_no_peak_of_0_and_nothing_left_of_0() -> None:
    peaks = seen(doc("null:timeout"), doc("null:timeout"))
    summary = peaks.summary("0", [], 0, 1, difference(pair(0, None)))
    assert summary["adapters"][0]["peak_bytes"] is None
    assert summary["adapters"][0]["peak_at"] is None
    assert summary["adapters"][0]["left_bytes"] is None
    assert [warning["code"] for warning in summary["warnings"]] == ["peak-incomplete", "left-unknown"]


def test_a_sample_without_the_card_may_have_been_the_peak() -> None:
    """A driver that failed mid-run: the sample has no row of the card, and what it held then nobody knows."""
    failed = cast("dict[str, Any]", snapshot([], None, backends=[backend(status="failed")]))
    peaks = seen(doc(GIB), failed, failed, doc(GIB))
    (warning,) = peaks.summary("0", [], 0, 1, difference(pair(0, None)))["warnings"]
    assert warning["code"] == "peak-incomplete"
    assert warning["message"].startswith("2 samples have no figure")


def test_a_figure_that_is_known_on_one_side_only_leaves_the_rest_unknown() -> None:
    peaks = seen(doc("null:device-busy"), doc(GIB))
    change = {"before": None, "after": GIB, "delta": None}
    summary = peaks.summary("0", [], 0, 1, difference(pair(0, change)))
    assert summary["adapters"][0]["peak_bytes"] == GIB
    assert summary["adapters"][0]["left_bytes"] is None


def test_a_card_that_was_lost_leaves_an_unknown_not_zero() -> None:
    peaks = seen(doc(GIB), doc("null:device-lost"))
    summary = peaks.summary("0", [], 0, 1, difference(pair(0, None, status="lost")))
    assert summary["adapters"][0]["left_bytes"] is None


def test_without_a_second_sample_nothing_is_said_about_what_is_left() -> None:
    assert seen(doc(GIB)).summary("0", [], 0, 1, None)["adapters"][0]["left_bytes"] is None


def test_a_run_of_countless_processes_keeps_the_largest(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 10)
    peaks = seen(*[doc(GIB, process(pid, pid * MIB)) for pid in range(1, 26)])
    summary = peaks.summary("0", [], 0, 1, difference(pair(0, None)))
    kept = [row["pid"] for row in summary["adapters"][0]["processes"]]
    assert kept[:5] == [25, 24, 23, 22, 21]
    assert len(kept) <= 10
    assert [(w["code"], w["message"].split(" ")[0]) for w in summary["warnings"]] == [
        ("processes-left-out", str(25 - len(kept)))
    ]


def test_samples_counts_what_is_in_the_file() -> None:
    peaks = seen(doc(GIB))
    peaks.sampled(cast("Snapshot", doc(GIB)))
    peaks.failed("a.jsonl: No space left on device")
    assert peaks.samples == 1
