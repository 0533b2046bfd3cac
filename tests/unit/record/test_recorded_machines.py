"""Kept machines through the real collector and writer, on their own clocks."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from gpusnap.record.loop import Recorder, record_series
from gpusnap.record.writer import RecordFile
from tests.contract import check_contract
from tests.unit.record.fakes import Quiet

ROOT = Path(__file__).parents[3]
DESKTOP = ROOT / "examples" / "machines" / "rtx4080-desktop"


def recorded(host: CapturedHost, path: Path, every: float, count: int) -> list[dict[str, Any]]:
    collector = Collector(host, CollectOptions())
    recorder = Recorder(collector.sample, dumps, RecordFile(str(path)))
    record_series(recorder, host, Quiet().as_signals(), every, count=count)
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class StepsItsWallClock(CapturedHost):
    """NTP finds in the first sleep that the clock was 874 s behind."""

    stepped = False

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._wall += 0.0 if self.stepped else 874.0
        self.stepped = True


def test_report_010_a_clock_step_is_in_the_record_as_wall_time_beside_a_boot_clock_that_went_on(
    tmp_path: Path,
) -> None:
    docs = recorded(StepsItsWallClock(DESKTOP), tmp_path / "a.jsonl", every=5.0, count=3)
    from gpusnap.timefmt import parse_rfc3339

    wall = [parse_rfc3339(doc["taken_at"]) for doc in docs]
    boot = [doc["uptime_seconds"] for doc in docs]
    assert [later - sooner for sooner, later in pairwise(wall)] == [879.0, 5.0]
    assert [later - sooner for sooner, later in pairwise(boot)] == [5.0, 5.0]
    assert [doc["recording"]["missed_ticks"] for doc in docs] == [0, 0, 0]
    assert len({doc["boot_id"] for doc in docs}) == 1
    assert [doc["window_seconds"] for doc in docs] == [None, 5.0, 5.0]


class MustNotBeWoken(CapturedHost):
    def nvml(self) -> Any:
        raise AssertionError("nvmlInit wakes the card")


def test_report_074_sleeping_cards_are_recorded_as_asleep_and_never_woken(tmp_path: Path) -> None:
    host = MustNotBeWoken(ROOT / "tests" / "machines" / "nvidia-laptop-suspended")
    docs = recorded(host, tmp_path / "a.jsonl", every=10.0, count=3)
    assert len(docs) == 3
    for doc in docs:
        card = next(card for card in doc["adapters"] if card["vendor"] == "nvidia")
        assert card["power_state"] == "suspended"
        assert card["memory"]["used_bytes"] is None
        source = doc["provenance"][card["provenance"]]["memory.used_bytes"]
        assert source.startswith("null:device-suspended")


def test_every_recorded_line_keeps_the_contract(tmp_path: Path) -> None:
    for doc in recorded(CapturedHost(DESKTOP), tmp_path / "a.jsonl", every=10.0, count=3):
        check_contract(doc)


def test_a_card_that_is_pulled_out_mid_run_is_a_sample_without_it(tmp_path: Path) -> None:
    """`--adapter` names it: wrong at the start, but not when it was there."""

    class Unplugged(CapturedHost):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            self.nvml_answers = {}

    host = Unplugged(DESKTOP)
    collector = Collector(host, CollectOptions(adapters=("0",)))
    sink = RecordFile(str(tmp_path / "a.jsonl"))
    record_series(Recorder(collector.sample, dumps, sink), host, Quiet().as_signals(), 10.0, count=2)
    docs = [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()]
    assert [len(doc["adapters"]) for doc in docs] == [1, 0]
