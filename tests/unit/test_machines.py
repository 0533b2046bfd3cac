"""Every captured machine against its hand-written `expected.json` and the contract's invariants."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract, differences

ROOT = Path(__file__).parents[2]
MACHINES = sorted(
    folder
    for place in ("tests/machines", "examples/machines")
    for folder in (ROOT / place).iterdir()
    if folder.is_dir()
)


def options_of(machine: Path) -> CollectOptions:
    """`options.json` of a machine holds keyword arguments of CollectOptions."""
    path = machine / "options.json"
    return CollectOptions(**(json.loads(path.read_bytes()) if path.exists() else {}))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
def test_machine_gives_what_was_expected_by_hand(machine: Path) -> None:
    document = json.loads(dumps(collect(CapturedHost(machine), options_of(machine))))
    expected = json.loads((machine / "expected.json").read_bytes())
    assert differences(expected, document, document) == []


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
@pytest.mark.parametrize("window", [0.0, 0.25])
def test_machine_keeps_the_contract(machine: Path, window: float) -> None:
    options = options_of(machine)
    options.window = window
    options.holders = True
    check_contract(json.loads(dumps(collect(CapturedHost(machine), options))))
