"""kill -9 at random moments with four writers on one file; the long run is in tests/integration."""

from __future__ import annotations

from pathlib import Path

from tests.cli.torture import check, torture


def test_report_119_what_was_acknowledged_is_whole_in_the_file_whoever_is_killed(tmp_path: Path) -> None:
    outcome = torture(tmp_path, 10, seed=1)
    check(outcome, (tmp_path / "shared.jsonl").read_bytes())
    assert len(outcome.acknowledged) > 10
