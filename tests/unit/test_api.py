"""The functions for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpusnap
from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.codec_read import DocumentError
from gpusnap.diff import diff

EXAMPLE = Path(__file__).parents[2] / "examples/machines/rtx4080-desktop"


def test_take_load_and_diff(tmp_path: Path) -> None:
    taken = gpusnap.take(host=CapturedHost(EXAMPLE))
    (tmp_path / "a.json").write_bytes(dumps(taken))
    loaded = gpusnap.load(str(tmp_path / "a.json"))
    assert loaded == taken
    assert {row["status"] for row in diff(loaded, taken)["processes"]} == {"same"}
    with pytest.raises(DocumentError, match="no such file"):
        gpusnap.load(str(tmp_path / "b.json"))


def test_take_reads_this_machine_by_default() -> None:
    assert gpusnap.take()["schema"] == "gpusnap.snapshot/1"
