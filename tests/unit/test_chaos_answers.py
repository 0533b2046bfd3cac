"""Chaos for answers of tools and libraries: a bad one costs the figures that come from it, and makes none.

Whatever npu-smi, ioreg, sysctl, pdh.dll, DXGI, psutil or libdcmi.so answer instead: the document keeps the
contract, no backend breaks, and a figure that still bears the same provenance is still the same figure.
"""

from __future__ import annotations

import copy
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.fields import ADAPTER_FIGURES, PROCESS_FIGURES
from tests.contract import check_contract, leaves
from tests.unit.test_machines import MACHINES, options_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSWERED = [m for m in MACHINES if (m / "raw.json").exists() or (m / "commands.json").exists()]
FIGURES = frozenset(ADAPTER_FIGURES) | frozenset(PROCESS_FIGURES)
# So many that numbers are cut in their middle.
CUTS = 31
GARBAGE = "\u0000\ufffd| 0 | x | <plist> -1 99999999999999999999 {]\n" * 3


def _command_faults(answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    text = answer.get("stdout", "")
    yield "gone", None
    yield "hangs", {"timeout": True}
    yield "silent", {"stdout": ""}
    yield "fails", {"stdout": "", "stderr": "ret is -8005", "returncode": 1}
    yield "garbage", {"stdout": GARBAGE}
    yield "doubled", {"stdout": text + text}
    for share in range(1, CUTS):
        yield f"cut after {share}/{CUTS} of its letters", {"stdout": text[: len(text) * share // CUTS]}


def _raw_faults(key: str, answer: Any) -> Iterator[tuple[str, Any]]:
    yield "gone", None
    yield "not there", {"unsupported": "its library: not found"}
    for word in ("EIO", "EACCES", "ESRCH", "ETIMEDOUT"):
        yield word, {"errno": word}
    if key == "pdh" and "counters" in answer:
        yield from _counter_faults(answer)
    if key == "adapters":
        yield "none", []
        for leaf in set(answer[0]) - {"luid"}:
            yield f"no {leaf}", [{**adapter, leaf: None} for adapter in answer]
    if key.startswith("process ") and "create_time" in answer:
        others = set(answer) - {"create_time"}
        yield "all denied", {**answer, **{leaf: {"error": "access-denied"} for leaf in others}}
        yield "all missing", {"create_time": answer["create_time"]}
    if key == "energy" and "channels" in answer:
        yield from _energy_faults(answer)
    if key.startswith("footprint "):
        for leaf in answer:
            yield f"{leaf} missing", {name: value for name, value in answer.items() if name != leaf}


def _energy_faults(answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for leaf in answer:
        yield f"{leaf} missing", {name: value for name, value in answer.items() if name != leaf}
    yield "another clock", {**answer, "numer": 1, "denom": 1, "now": answer["now"] * 125 // 3}
    yield "none of the GPU's", {**answer, "channels": []}
    yield "twice", {**answer, "channels": answer["channels"] * 2}
    for leaf, other in (("unit", "pJ"), ("unit", ""), ("stamp", None), ("stamp", 0), ("value", -(1 << 63))):
        yield f"{leaf} {other!r}", {**answer, "channels": [{**row, leaf: other} for row in answer["channels"]]}


def _counter_faults(answer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for path, rows in answer["counters"].items():
        for name, other in (
            ("missing", None),
            ("failed", {"error": 0xC0000BBD}),
            ("denied", {"error": 0xC0000BDB}),
            ("without rows", []),
            ("invalid", [[row[0], 0xC0000BBA, None] for row in rows] if isinstance(rows, list) else rows),
            ("null", [[row[0], 0, None] for row in rows] if isinstance(rows, list) else rows),
            ("foreign names", [["_total", 0, 5], ["", 0, 5]]),
        ):
            changed = copy.deepcopy(answer)
            changed["counters"].pop(path)
            if other is not None:
                changed["counters"][path] = other
            yield f"{path} {name}", changed


def _faults(machine: Path) -> Iterator[tuple[str, str, str, Any]]:
    """(file, key, fault, other answer) of every answer in every sample."""
    for kind in ("commands", "raw"):
        for path in sorted(machine.glob(f"{kind}*.json")):
            for key, answer in json.loads(path.read_bytes()).items():
                found = _command_faults(answer) if kind == "commands" else _raw_faults(key, answer)
                for fault, other in found:
                    # Without an answer at the second sample the first one's holds.
                    if other is not None or path.name.count(".") == 1:
                        yield path.name, key, fault, other


def _taken(machine: Path, like: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collect(CapturedHost(machine), options_of(like))))
    return document


def _figures(document: dict[str, Any]) -> dict[tuple[str, str, str], object]:
    """(row, leaf, provenance) -> value, of every measured figure; sums over rows change with the rows."""
    found: dict[tuple[str, str, str], object] = {}
    for kind, rows in (("adapter", document["adapters"]), ("process", document["processes"] or [])):
        for row in rows:
            sources = document["provenance"][row["provenance"]]
            name = f"{kind} {row['id']}" if kind == "adapter" else f"{kind} {row['adapter']} {row['pid']}"
            for leaf, value in leaves(row).items():
                if leaf in FIGURES and value is not None:
                    found[name, leaf, sources[leaf]] = value
    return found


@pytest.mark.parametrize("machine", ANSWERED, ids=lambda folder: folder.name)
def test_a_bad_answer_makes_no_figure(machine: Path, tmp_path: Path) -> None:
    good = _figures(_taken(machine, machine))
    folder = tmp_path / "machine"
    shutil.copytree(machine, folder)
    tried = 0
    for file, key, fault, other in _faults(machine):
        answers = json.loads((machine / file).read_bytes())
        if other is None:
            del answers[key]
        else:
            answers[key] = other
        (folder / file).write_text(json.dumps(answers))
        document = _taken(folder, machine)
        (folder / file).write_bytes((machine / file).read_bytes())
        where = f"{file} {key}: {fault}"
        check_contract(document)
        assert [note for note in document["warnings"] if note["code"] == "internal-error"] == [], where
        for figure, value in _figures(document).items():
            assert good.get(figure, value) == value, (where, figure)
        tried += 1
    assert tried >= 6
