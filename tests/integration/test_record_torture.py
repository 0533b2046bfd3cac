"""kill -9, 500 times, with four writers on one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.torture import check, torture

pytestmark = pytest.mark.integration

BATCHES, KILLS = 10, 50


def test_500_kills_lose_and_merge_no_acknowledged_line(tmp_path: Path) -> None:
    acknowledged = torn = 0
    for batch in range(BATCHES):
        folder = tmp_path / str(batch)
        folder.mkdir()
        outcome = torture(folder, KILLS, seed=batch)
        check(outcome, (folder / "shared.jsonl").read_bytes())
        acknowledged += len(outcome.acknowledged)
        torn += len(outcome.torn)
        (folder / "shared.jsonl").unlink()
    print(f"{BATCHES * KILLS} kills, {acknowledged} samples acknowledged and found whole, {torn} lines torn")
    assert acknowledged > BATCHES * KILLS
