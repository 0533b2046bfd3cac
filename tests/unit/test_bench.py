"""The bench measures what it says: known costs come out, and a wrong answer is not measured."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import chosen, found
from tests.bench.measure import (
    Cost,
    Crowd,
    Failed,
    built,
    dealt,
    environment,
    interleaved,
    medians,
    once,
    output_of,
)
from tests.bench.report import Bench


def test_peak_memory_is_the_commands_own_not_the_bench_s() -> None:
    ballast = bytearray(64 << 20)
    assert once(["true"], environment()).peak_mib < 8
    held = once([sys.executable, "-c", "x = b'x' * (100 << 20)"], environment()).peak_mib
    assert 100 <= held < 140
    del ballast


def test_cpu_is_told_from_waiting() -> None:
    waiting = once(["sleep", "0.3"], environment())
    assert waiting.cpu_ms < 100
    assert 300 <= waiting.wall_ms < 3000
    program = "import time\nwhile time.process_time() < 0.3: pass"
    assert once([sys.executable, "-c", program], environment()).cpu_ms >= 300


def test_bytecode_is_kept_whatever_the_caller_s_interpreter_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    program = "import sys; sys.exit(sys.dont_write_bytecode)"
    assert once([sys.executable, "-c", program], environment()).cpu_ms > 0


def test_a_command_that_fails_is_not_measured() -> None:
    with pytest.raises(Failed, match="exit code 3"):
        once([sys.executable, "-c", "raise SystemExit(3)"], environment())
    with pytest.raises(Failed, match=r"exit code 1: .*: boom"):
        output_of([sys.executable, "-c", "raise SystemExit('boom')"], environment())


def test_commands_run_in_turn(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = {name: ["sh", "-c", f"echo {name} >> {log}"] for name in "ab"}
    costs = interleaved(commands, environment(), 2)
    assert log.read_text().split() == ["a", "b", "a", "b", "a", "b"]
    assert [len(each) for each in costs.values()] == [2, 2]


def test_the_median_is_taken_by_column() -> None:
    assert medians([Cost(1, 30, 7), Cost(3, 10, 9), Cost(2, 20, 8)]) == Cost(2, 20, 8)


def test_a_bound_is_met_at_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(rounds=1)
    bench.bound("CPU", 0.75, at_most=0.75, aim=0.5)
    bench.bound("wall", 0.76, at_most=0.75)
    assert bench.verdicts == [("CPU", True), ("wall", False)]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "CPU: 0.75 × (at most 0.75: met, aim 0.5 not reached)"
    assert lines[1].strip() == "wall: 0.76 × (at most 0.75: NOT MET)"


def test_a_crowd_is_real_and_leaves_nothing_behind() -> None:
    with Crowd(3) as pids:
        programs = {Path(f"/proc/{pid}/exe").resolve() for pid in pids}
        assert (len(set(pids)), programs) == (3, {Path(shutil.which("sleep") or "").resolve()})
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_the_process_with_many_mappings_has_them() -> None:
    with Crowd(1, (built("mappings"), "4000"), announced=True) as (pid,):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    assert 4000 <= len(lines) < 4100
    assert sum(built("mappings") in line for line in lines) >= 2000


def test_pids_are_dealt_evenly() -> None:
    assert list(dealt(range(7), 3)) == [[0, 3, 6], [1, 4], [2, 5]]


def test_benches_are_chosen_by_the_beginning_of_their_name() -> None:
    benches = found()
    assert chosen(["snap_1"], benches) == ["snap_1_card"]
    assert chosen([], benches) == list(benches)
    assert all(function.__doc__ for function in benches.values())
    with pytest.raises(SystemExit, match="no bench begins with 'snip'"):
        chosen(["snip"], benches)
