"""systemd's own check of the shipped units."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.recorder import ROOT

pytestmark = pytest.mark.integration

UNITS = ROOT / "examples" / "systemd"


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    names = sorted(path.name for path in UNITS.iterdir())
    assert names == ["gpusnap-record.service", "gpusnap-sample.service", "gpusnap-sample.timer"]
    for name in names:  # it asks for programs that exist
        text = (UNITS / name).read_text().replace("/usr/local/bin/gpusnap", "/bin/true")
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in names]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
