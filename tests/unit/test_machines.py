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


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
def test_an_adapter_asked_for_alone_has_the_row_that_it_has_among_all(machine: Path) -> None:
    """A card comes with its partitions: without them its account would leave out what stands on them."""
    options = options_of(machine)
    everything = json.loads(dumps(collect(CapturedHost(machine), options)))
    for card in everything["adapters"]:
        options.adapters = (card["id"],)
        document = json.loads(dumps(collect(CapturedHost(machine), options)))
        check_contract(document, shape=False)
        family = [row for row in everything["adapters"] if card["id"] in (row["id"], row["parent"])]
        assert [_without_sources(row) for row in document["adapters"]] == [_without_sources(r) for r in family]
        mine = {row["id"] for row in family}
        pids = [row["pid"] for row in everything["processes"] or () if row["adapter"] in mine]
        assert [row["pid"] for row in document["processes"] or ()] == pids
        assert {note["adapter"] for note in document["warnings"]} <= mine | {None}


def _without_sources(row: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in row.items() if key != "provenance"}
