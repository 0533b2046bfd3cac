"""Texts of the NVIDIA driver are others' bytes as any: none drives a terminal, none costs more than itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract
from tests.standin import Card, Partition, Scenario
from tests.standin.snaps import snaps

GIB = 1 << 30
MACHINE = Path(__file__).parents[2] / "machines/nvidia-gh200-mps"


def test_a_name_with_control_characters_is_escaped(tmp_path: Path) -> None:
    """WSL with driver 555 answers garbage (nvitop#127); garbage may well be valid UTF-8."""
    part = Partition(uuid="MIG-\x07", gpu_instance=1, name="A100 MIG 1g\x1b[2J.5gb")
    card = Card(name=b"RTX\x1b]0;gotcha\x07 4080", uuid="GPU-\x1b[31m", partitions={0: part})
    (document,) = snaps(tmp_path, [Scenario([card], driver="575\x1b[1m.57")])
    check_contract(document)
    whole, slice_ = document["adapters"]
    assert whole["model"] == "RTX\\x1b]0;gotcha\\x07 4080"
    assert whole["uuid"] == whole["id"] == slice_["parent"] == "GPU-\\x1b[31m"
    assert slice_["partition"]["profile"] == "1g\\x1b[2J.5gb"
    assert (whole["driver_version"], slice_["uuid"]) == ("575\\x1b[1m.57", "MIG-\\x07")


def test_a_driver_version_that_is_not_utf8_costs_the_version_only(tmp_path: Path) -> None:
    (document,) = snaps(tmp_path, [Scenario([Card(used=GIB)], driver=b"\xf8\x95")])
    check_contract(document)
    (row,) = document["adapters"]
    backend = next(row for row in document["backends"] if row["name"] == "nvml")
    assert (backend["status"], backend["driver_version"]) == ("ok", None)
    assert row["memory"]["used_bytes"] == GIB
    assert document["provenance"][row["provenance"]]["driver_version"] == "null:not-exposed"


@pytest.mark.parametrize(
    "address", ["", "not an address", "zzzz:01:00.0", "0000:\x1b[m:00.0", "0000:01:00:0", "1"]
)
def test_an_address_that_is_none_costs_the_address_only(tmp_path: Path, address: str) -> None:
    answers = json.loads((MACHINE / "nvml.json").read_bytes())
    answers["calls"]["nvmlDeviceGetPciInfo_v3 0"] = {"busId": address}
    shutil.copytree(MACHINE, tmp_path / "machine")
    (tmp_path / "machine/nvml.json").write_text(json.dumps(answers))
    good, document = (
        json.loads(dumps(collect(CapturedHost(folder), CollectOptions())))
        for folder in (MACHINE, tmp_path / "machine")
    )
    check_contract(document)
    (row,) = document["adapters"]
    entry = document["provenance"][row["provenance"]]["pci_address"]
    assert (row["pci_address"], entry) == (None, "null:unknown-format nvml.PciInfo_v3")
    assert (row["memory"], row["accounting"]) == (good["adapters"][0]["memory"], good["adapters"][0]["accounting"])
