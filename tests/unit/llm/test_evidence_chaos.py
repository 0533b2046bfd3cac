"""Every file that the split rests on, in turn missing, unreadable, garbage or cut: a reason, never a fault."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.captured_tree import Entry
from gpusnap.codec import dumps
from tests.contract import check_contract
from tests.unit.llm.machine import Machine
from tests.unit.llm.test_explain_process import explained, qwen3_14b_server, text_of
from tests.unit.llm.test_split_published import QWEN_LOG, qwen_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusnap.captured import CapturedHost

GARBAGE = b"\xff\0GGUF\n" * 40
DAMAGE: dict[str, Callable[[Entry], Entry | None]] = {
    "missing": lambda _: None,
    "unreadable": lambda _: Entry(error=errno.EACCES),
    "a broken device": lambda _: Entry(error=errno.EIO),
    "gone while reading": lambda _: Entry(error=errno.ESRCH),
    "garbage": lambda _: Entry(data=GARBAGE),
    "empty": lambda _: Entry(data=b""),
    "cut": lambda entry: Entry(data=(entry.data or b"")[: len(entry.data or b"") // 2]),
}


def touched(host: CapturedHost) -> list[str]:
    """Entries of the process and the files that belong to it."""
    return sorted(path for path in host.entries if path.startswith(("proc/4711/", "root/")))


def document_of(machine: Machine, host: CapturedHost, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dumps(machine.collector(host, **options).sample()))
    check_contract(found)
    return found


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("probe", [False, True])
def test_a_damaged_file_costs_its_figures_only(tmp_path: Path, damage: str, probe: bool) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "api").mkdir()
    machines = (qwen_machine(tmp_path / "log", log=QWEN_LOG), qwen3_14b_server(tmp_path / "api"))
    for machine in machines:
        sound = document_of(machine, machine.host(), probe=probe)
        for path in touched(machine.host()):
            host = machine.host()
            host.overlay({path: DAMAGE[damage](host.entries[path])})
            document = document_of(machine, host, probe=probe)
            assert [card["memory"] for card in document["adapters"]] == [
                card["memory"] for card in sound["adapters"]
            ]
            (row,), (before,) = document["processes"], sound["processes"]
            assert row["vram_bytes"] == before["vram_bytes"]
            llm = row["llm"] or {}
            for leaf in ("weights_bytes", "kv_cache_bytes", "compute_bytes"):
                # The same figure, though by another witness (the log rounds), or none.
                found = llm.get(leaf)
                assert found is None or found == pytest.approx(before["llm"][leaf], rel=1e-3), (path, leaf)


def test_explain_survives_them_too(tmp_path: Path) -> None:
    machine = qwen3_14b_server(tmp_path)
    for path in touched(machine.host()):
        if path.endswith("/stat"):
            continue
        machine.tree.append(f"--- {path} !EACCES\n")
        assert "holds 13.8 GiB of GPU 0" in text_of(explained(machine, 4711, probe=True))
        machine.tree.pop()
