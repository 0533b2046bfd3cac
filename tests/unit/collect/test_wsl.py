"""WSL2: public reports of what goes wrong at the border to the Windows host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract
from tests.snapping import run_gpusnap

MACHINE = Path(__file__).parents[2] / "machines" / "wsl2-nvidia"
ALL_ONES = 2**64 - 1
LIST = "nvmlDeviceGetComputeRunningProcesses_v3 0"


def machine(folder: Path, **calls: object) -> Path:
    """The machine with other answers; `list` is the compute list."""
    for path in MACHINE.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    nvml = json.loads((folder / "nvml.json").read_bytes())
    for name, answer in calls.items():
        nvml["calls"][LIST if name == "list" else f"{name} 0"] = answer
    (folder / "nvml.json").write_text(json.dumps(nvml))
    return folder


def taken(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collect(CapturedHost(folder), CollectOptions())))
    check_contract(document)
    return document


def test_report_094_the_sentinel_is_no_size() -> None:
    """nvtop#432: 17179869184 GiB for pid 79, then an assertion on the percentage."""
    document = taken(MACHINE)
    row = document["processes"][0]
    assert (row["pid"], row["vram_bytes"]) == (79, None)
    sources = document["provenance"][row["provenance"]]
    assert sources["vram_bytes"] == "null:wsl NVML_VALUE_NOT_AVAILABLE"
    (card,) = document["adapters"]
    assert card["memory"]["used_bytes"] == 14360 << 20
    assert card["accounting"]["attributed_bytes"] == 0
    assert str(ALL_ONES) not in json.dumps(document)
    shown = run_gpusnap("ps", "--replay", str(MACHINE)).stdout.decode()
    assert "14.0 of 16.0 GiB used" in shown
    assert "17179869184" not in shown


def test_nvtop_109_load_that_an_old_driver_does_not_tell_is_null_with_a_hint() -> None:
    """microsoft/WSL#7162 too: `ERR!`."""
    document = taken(MACHINE)
    (card,) = document["adapters"]
    assert card["load"]["gpu_percent"] is None
    entry = document["provenance"][card["provenance"]]["load.gpu_percent"]
    assert entry.startswith("null:not-supported NVML_ERROR_NOT_SUPPORTED")
    assert "newer" in entry


def test_nvitop_49_no_process_of_the_guest_lends_its_name() -> None:
    """The guest has a bash with this number, which even holds /dev/dxg: still nobody knows whose it is."""
    document = taken(MACHINE)
    assert [(row["pid"], row["name"], row["pid_namespace"]) for row in document["processes"]] == [
        (79, None, "unknown"),
        (30412, None, "unknown"),
    ]


def test_a_list_that_fails_is_no_empty_list(tmp_path: Path) -> None:
    failed = {"error": 999}
    document = taken(machine(tmp_path, list=failed, nvmlDeviceGetGraphicsRunningProcesses_v3=failed))
    (card,) = document["adapters"]
    assert document["processes"] is None
    entry = document["provenance"][card["provenance"]]["processes_listed"]
    assert entry == "null:failed NVML_ERROR_UNKNOWN"


def test_an_empty_list_says_nothing_of_the_host(tmp_path: Path) -> None:
    document = taken(machine(tmp_path, list=[]))
    (card,) = document["adapters"]
    assert document["processes"] is None
    assert document["provenance"][card["provenance"]]["processes_listed"].startswith("null:wsl")
    assert card["accounting"]["unattributed_bytes"] is None
    assert card["memory"]["used_bytes"] == 14360 << 20


@pytest.mark.parametrize("cards", [1, 2])
def test_the_scope_is_said_once_a_card(tmp_path: Path, cards: int) -> None:
    folder = machine(tmp_path)
    nvml = json.loads((folder / "nvml.json").read_bytes())
    calls = nvml["calls"]
    calls["nvmlDeviceGetCount"] = cards
    for key, answer in [(k, v) for k, v in calls.items() if k.endswith(" 0")]:
        calls[f"{key[:-1]}1"] = answer
    calls["nvmlDeviceGetUUID 1"] = "GPU-bbbbbbbb-0000-4000-8000-000000000094"
    calls["nvmlDeviceGetPciInfo_v3 1"] = {"busId": "00000000:02:00.0"}
    (folder / "nvml.json").write_text(json.dumps(nvml))
    document = taken(folder)
    noted = [note["adapter"] for note in document["warnings"] if note["code"] == "whole-host-scope"]
    assert noted == [row["id"] for row in document["adapters"]]
    assert len(noted) == cards
