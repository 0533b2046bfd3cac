"""Each file of a kept machine in turn missing, unreadable, cut in half, garbage: what that does to the document.

`python -m tests.chaos [MACHINE ..]` writes the tables `chaos.json` anew; their diff is to be reviewed as code is:
a leaf that stands there needlessly is a figure that one bad file takes away.
"""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any, cast

from gpusnap.captured import CapturedHost
from gpusnap.captured_tree import Entry
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract, leaves

MACHINES = Path(__file__).parent / "machines"
GARBAGE = b"\xff\xfe\x00 not 42 anything: -7\nvram mem: x\n\tkey value\n"
# What the content of a file that nobody opens is cannot matter.
FAULTS = ("missing", "unreadable", "truncated", "garbage")
UNOPENED_FAULTS = ("missing", "unreadable")

Effect = dict[str, dict[str, list[str]]]  # null | change | gone | new -> row -> leaves


class FaultyHost(CapturedHost):
    """One file of the machine is faulty, at every sample."""

    def __init__(self, folder: Path, path: str, fault: str) -> None:
        super().__init__(folder)
        self._fault = (path, fault)
        self._break()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._break()

    def _break(self) -> None:
        path, fault = self._fault
        data = self.entries[path].data if path in self.entries else None
        if data is None and fault != "missing":
            return
        self.overlay({path: faulty(data or b"", fault)})


def faulty(data: bytes, fault: str) -> Entry | None:
    if fault == "missing":
        return None
    if fault == "unreadable":
        return Entry(error=errno.EACCES)
    return Entry(data=data[: len(data) // 2] if fault == "truncated" else GARBAGE)


def options_of(machine: Path) -> CollectOptions:
    path = machine / "options.json"
    return CollectOptions(**(json.loads(path.read_bytes()) if path.exists() else {}))


def document_of(host: CapturedHost) -> dict[str, Any]:
    return cast("dict[str, Any]", collect(host, options_of(host.folder)))


def rows_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every value of the document under `row`, `leaf`: rows are named by what they are, not by their place."""
    rows: dict[str, dict[str, Any]] = {}
    top = {key: value for key, value in document.items() if not isinstance(value, list)}
    top["processes"] = None if document["processes"] is None else "listed"
    rows["document"] = leaves({key: value for key, value in top.items() if key != "duration_seconds"})
    for backend in document["backends"]:
        rows[f"backend {backend['name']}"] = {k: v for k, v in backend.items() if k != "name"}
    for adapter in document["adapters"]:
        rows[adapter["id"]] = {k: v for k, v in leaves(adapter).items() if k != "provenance"}
    for process in document["processes"] or ():
        found = leaves(process)
        rows[f"{process['adapter']} {process['pid']}"] = {k: v for k, v in found.items() if k != "provenance"}
    for warning in document["warnings"]:
        rows[f"warning {warning['code']} {warning['adapter']} {warning['pid']}"] = {}
    return rows


def effect_of(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> Effect:
    """What became null, what became another value, which rows went and came."""
    effect: Effect = {}
    for row in before.keys() - after.keys():
        effect.setdefault("gone", {})[row] = []
    for row in after.keys() - before.keys():
        effect.setdefault("new", {})[row] = []
    for row in before.keys() & after.keys():
        for leaf, value in before[row].items():
            now = after[row].get(leaf)
            if now != value:
                kind = "null" if now is None else "change"
                effect.setdefault(kind, {}).setdefault(row, []).append(leaf)
    kinds = [kind for kind in ("null", "change", "gone", "new") if kind in effect]
    return {kind: {row: sorted(names) for row, names in sorted(effect[kind].items())} for kind in kinds}


def effects(machine: Path) -> dict[str, dict[str, Effect]]:
    """file -> fault -> effect, where there is one. Raises what gpusnap raises, and on a broken contract."""
    host = CapturedHost(machine)
    files = [path for path, entry in host.entries.items() if entry.data is not None]
    plain = rows_of(document_of(host))
    opened = set(host.opened)
    found: dict[str, dict[str, Effect]] = {}
    for path in sorted(files):
        for fault in FAULTS if path in opened else UNOPENED_FAULTS:
            document = document_of(FaultyHost(machine, path, fault))
            effect = effect_of(plain, rows_of(document))
            if effect:
                check_contract(json.loads(dumps(document)), shape=path not in found)
                found.setdefault(path, {})[fault] = effect
    return found


def table_of(found: dict[str, dict[str, Effect]]) -> dict[str, dict[str, Effect]]:
    """Faults of one file with the same effect share an entry: `"missing unreadable"`."""
    table: dict[str, dict[str, Effect]] = {}
    for path, by_fault in found.items():
        entry = table.setdefault(path, {})
        for fault, effect in by_fault.items():
            same = next((name for name, known in entry.items() if known == effect), None)
            if same is None:
                entry[fault] = effect
            else:
                entry[f"{same} {fault}"] = entry.pop(same)
    return table


def write(machine: Path) -> None:
    text = json.dumps(table_of(effects(machine)), indent=1, ensure_ascii=False)
    (machine / "chaos.json").write_text(text + "\n")


if __name__ == "__main__":
    for folder in sorted(MACHINES.iterdir()):
        if len(sys.argv) == 1 or folder.name in sys.argv[1:]:
            write(folder)
