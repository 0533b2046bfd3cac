"""tests/device/check.py, rehearsed: a whole life of processes on the stand-in card, through the real commands.

On a machine that has a real card the script is run by hand; here it must pass on a card that keeps good books, and
must notice one that does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.namespaces import needs_host_pids
from tests.standin import Card, Scenario
from tests.standin.ask import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def check(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tests/device/check.py")],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@needs_host_pids
def test_a_card_that_keeps_good_books_passes(tmp_path: Path) -> None:
    done = check(Scenario([Card(), Card()]).environment(tmp_path, cuda=True))
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert not [line for line in said if line.startswith("FAIL")]
    for wanted in (
        "ok   pid",
        "ok   diff shows 512 MiB more: 536870912",
        "ok   a child whose first thread has ended is a zombie: zombie",
        "ok   that still holds its memory",
        "ok   and all that it held as freed: -1610612736",
        "ok   nothing is left behind (diff --fail-above)",
        "ok   every NVML call was timed",
    ):
        assert [line for line in said if line.startswith(wanted)], wanted
    assert "nvmlDeviceGetMemoryInfo_v2" in done.stdout
    assert said[-1] == "all checks passed"


def test_a_card_whose_totals_do_not_add_up_fails(tmp_path: Path) -> None:
    card = Card()
    card.figures["memory.free"] = int(card.figures["memory.free"]) - (1 << 20)
    done = check(Scenario([card]).environment(tmp_path, cuda=True))
    assert done.returncode == 1
    assert "FAIL one of the two identities holds" in done.stdout


def test_without_a_card_it_says_so(tmp_path: Path) -> None:
    done = check({"LD_LIBRARY_PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert done.stdout.startswith("no NVIDIA card here: ")
