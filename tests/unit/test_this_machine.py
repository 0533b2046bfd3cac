"""A snapshot of whatever machine the tests run on: Linux, Windows or a Mac, with a GPU or without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from gpusnap.live import LiveHost
from tests.contract import check_contract
from tests.snapping import run_gpusnap

if TYPE_CHECKING:
    from pathlib import Path

PLATFORMS = {"win32": ("windows",), "darwin": ("macos",), "linux": ("linux", "wsl")}
OWN_BACKEND = {"win32": "wddm", "darwin": "apple", "linux": "nvml"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    taken: dict[str, Any] = json.loads(dumps(collect(LiveHost(), CollectOptions(window=0.1))))
    return taken


def test_it_keeps_the_contract(document: dict[str, Any]) -> None:
    check_contract(document)
    assert document["host"]["platform"] in PLATFORMS[sys.platform]
    assert document["boot_id"] is not None
    assert document["uptime_seconds"] > 0


def test_the_platforms_own_source_was_asked(document: dict[str, Any]) -> None:
    """Its library or tool is there: `pdh.dll`, `ioreg`. Without a GPU it is absent; it never fails."""
    row = next(row for row in document["backends"] if row["name"] == OWN_BACKEND[sys.platform])
    assert row["status"] in ("ok", "absent"), row
    assert "Unsupported" not in str(row["detail"])


def test_two_snapshots_are_of_one_boot(document: dict[str, Any]) -> None:
    again = json.loads(dumps(collect(LiveHost(), CollectOptions())))
    assert again["boot_id"] == document["boot_id"]
    assert again["uptime_seconds"] >= document["uptime_seconds"]


def test_this_program_is_described_by_the_platforms_table() -> None:
    from gpusnap.collect.processes import open_table

    table = open_table(LiveHost(), CollectOptions())
    facts = table.facts(os.getpid(), "here", lambda _: True)
    assert facts["self"].value is True
    assert "python" in str(facts["exe"].value).lower()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert table.facts(child.pid, "here", lambda _: True)["ppid"].value == os.getpid()
        child.communicate(b"\n")
    assert isinstance(facts["rss_bytes"].value, int)
    assert facts["rss_bytes"].value > 1 << 20
    assert isinstance(facts["start_ticks"].value, int)


def test_the_commands_run(tmp_path: Path) -> None:
    recording = str(tmp_path / "rec.jsonl")
    for words in (
        ["snap", "-o", str(tmp_path / "a.json")],
        ["ps"],
        ["record", recording],
        ["record", recording, "--count", "2", "--every", "0.1"],
        ["diff", recording],
        ["explain"],
        ["explain", recording],
        ["record", recording, "--", sys.executable, "-c", "pass"],
    ):
        done = run_gpusnap(*words, this_machine=True)
        assert done.returncode == 0, (words, done.stderr)
    with open(recording, "rb") as lines:
        assert [json.loads(line)["recording"]["sequence"] for line in lines] == [1, 1, 2, 1, 2]
