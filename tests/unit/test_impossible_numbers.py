"""Numbers that no machine has, wherever a file holds one: no figure of them, no document beyond 2^53, no crash.

JSON readers round what passes 2^53 (contract, rule 3), and a folder that `--replay` reads may hold anything.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.captured_tree import Entry
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract

MACHINES = sorted(folder for folder in (Path(__file__).parents[1] / "machines").iterdir() if folder.is_dir())
NUMBERS = (b"9007199254740993", b"99999999999999999999999", b"-1")
WHOLE = re.compile(rb"(?<![\w.])\d+(?![\w.])")
TOO_LARGE_ANSWERS = (2**53 + 1, 2**60, -(2**60))


def document_of(host: CapturedHost) -> None:
    document = json.loads(dumps(collect(host, CollectOptions(window=0.25))))
    check_contract(document, shape=False)
    assert [note for note in document["warnings"] if note["code"] == "internal-error"] == []


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
def test_no_number_in_a_file_breaks_the_document(machine: Path) -> None:
    whole = CapturedHost(machine)
    collect(whole, CollectOptions(window=0.25))
    kinds = {re.sub(r"\d+", "N", path): path for path in whole.opened if path in whole.entries}
    for path in kinds.values():
        data = whole.entries[path].data or b""
        for number in NUMBERS if WHOLE.search(data) else ():
            host = CapturedHost(machine)
            host.overlay({path: Entry(data=WHOLE.sub(number, data))})
            document_of(host)


@pytest.mark.parametrize("machine", [m for m in MACHINES if (m / "nvml.json").exists()], ids=lambda m: m.name)
@pytest.mark.parametrize("number", TOO_LARGE_ANSWERS)
def test_no_number_of_the_driver_breaks_the_document(machine: Path, number: int) -> None:
    kept = json.loads((machine / "nvml.json").read_bytes())
    for call, answer in kept.get("calls", {}).items():
        host = CapturedHost(machine)
        host.nvml_answers = {**kept, "calls": {**kept["calls"], call: _with(answer, number)}}
        document_of(host)


def _with(answer: object, number: int) -> object:
    if isinstance(answer, dict):
        return answer if "error" in answer else {key: _with(value, number) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_with(item, number) for item in answer]
    return number if isinstance(answer, int) else answer
