"""The sentences of `record`: units and nulls by hand; the first case is the README's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gpusnap.render.recording import progress_line, run_lines
from tests.builders import GIB, MIB, adapter, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot, Summary


def card(number: int = 0, **more: Any) -> dict[str, Any]:
    row = {
        "id": adapter(number)["id"],
        "model": "NVIDIA GeForce RTX 4080 SUPER",
        "peak_bytes": 0,
        "peak_at": "2026-11-30T12:31:07.250Z",
        "left_bytes": 0,
        "processes": [],
    }
    return {**row, **more}


def process(name: str | None, peak: int, pid: int = 4711) -> dict[str, Any]:
    return {"pid": pid, "start_ticks": 1, "name": name, "peak_bytes": peak}


def summary(*cards: dict[str, Any], **more: Any) -> Summary:
    base = {
        "schema": "gpusnap.summary/1",
        "version": "0",
        "command": ["python", "train.py"],
        "exit_code": 0,
        "elapsed_seconds": 2472.0,
        "samples": 249,
        "adapters": list(cards),
        "warnings": [],
    }
    return cast("Summary", {**base, **more})


def last(cards: int = 1) -> Snapshot:
    return snapshot([adapter(number) for number in range(cards)], [])


def gib(figure: float) -> int:
    return round(figure * GIB)


def test_the_end_of_a_run_on_one_card_is_one_sentence() -> None:
    trained = card(peak_bytes=gib(21.7), processes=[process("train.py", gib(21.2))])
    assert run_lines(summary(trained), None, last(), "run.jsonl") == [
        "python train.py: exit 0 after 41 min 12 s. GPU 0: peak 21.7 GiB (train.py 21.2) at 12:31:07Z; "
        "left behind 0 B. 249 samples in run.jsonl"
    ]


def test_several_cards_take_a_line_each_and_idle_ones_are_counted() -> None:
    cards = [
        card(0, peak_bytes=GIB, processes=[process("a", MIB)]),
        card(1, peak_bytes=GIB, left_bytes=MIB),
        card(2),
    ]
    assert run_lines(summary(*cards, exit_code=137, samples=1), None, last(3), "run.jsonl") == [
        "python train.py: exit 137 after 41 min 12 s. 1 sample in run.jsonl",
        "  GPU 0: peak 1.0 GiB (a <0.1) at 12:31:07Z; left behind 0 B",
        "  GPU 1: peak 1.0 GiB at 12:31:07Z; left behind 1 MiB",
        "  nothing on 1 other card",
    ]


def test_what_was_not_measured_is_unknown_and_never_0() -> None:
    (line,) = run_lines(summary(card(peak_bytes=None, peak_at=None, left_bytes=None)), None, last(), "r")
    assert "GPU 0: peak unknown; left behind: unknown." in line


def test_less_than_before_is_not_a_negative_rest() -> None:
    (line,) = run_lines(summary(card(peak_bytes=GIB, left_bytes=-300 * MIB)), None, last(), "r")
    assert "left behind 0 B (300 MiB less than before)." in line


def test_who_stayed_is_named_with_its_memory() -> None:
    def row(name: str | None, status: str, after: int | None, number: int = 0) -> dict[str, Any]:
        changes = {"vram_bytes": {"before": None, "after": after, "delta": after}}
        return {"status": status, "adapter": adapter(number)["id"], "pid": 12, "name": name, "changes": changes}

    rows = [row("worker", "appeared", GIB), row("old", "changed", GIB), row(None, "appeared", 2 * GIB)]
    rows += [row("idle", "appeared", 0), row("x", "appeared", GIB, 1), row("hidden", "appeared", None)]
    found = cast("Diff", {"processes": rows})
    (line,) = run_lines(summary(card(left_bytes=3 * GIB)), found, last(), "r")
    assert "left behind 3.0 GiB (pid 12 2.0 GiB, worker 1.0 GiB)." in line


def test_a_long_or_hostile_command_is_cut_and_cleaned() -> None:
    (line,) = run_lines(summary(card(), command=["sh", "-c", "\x1b[2J" + "x" * 500]), None, last(), "r")
    assert line.startswith("sh -c \\x1b[2Jxxx")
    assert len(line) < 200


def test_progress_names_samples_bytes_and_each_cards_last_figure() -> None:
    doc = snapshot([adapter(0, used=gib(15.6), total=16 * GIB), adapter(1, used="null:timeout")], [])
    assert (
        progress_line(doc, 12, 48 * 1024, 200)
        == "12 samples, 48 KiB   GPU 0 15.6 of 16.0 GiB   GPU 1 - of 16.0 GiB"
    )
    assert progress_line(doc, 1, 0, 20) == "1 sample, 0 B   GPU…"
