"""A fault while one model is read costs that process's model, not the snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.captured_tree import CapturedTree
from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract

EXAMPLE = Path(__file__).parents[3] / "examples/machines/rtx4080-desktop"


class BreakingTree(CapturedTree):
    """Reading the mappings of pid 4711 ends in something that nobody expected."""

    def read(self, path: str, limit: int = 65536) -> bytes:
        if path == "4711/maps":
            raise ZeroDivisionError(path)
        return super().read(path, limit)


def test_a_fault_in_one_models_reading_costs_that_model_only(capsys: pytest.CaptureFixture[str]) -> None:
    host = CapturedHost(EXAMPLE)
    host.proc = BreakingTree(host, "proc")
    document = json.loads(dumps(Collector(host, CollectOptions()).sample()))
    check_contract(document)
    rows = {row["pid"]: row for row in document["processes"]}
    server = rows[4711]
    entries = document["provenance"][server["provenance"]]
    assert entries["model"] == entries["llm"] == "null:failed internal error: ZeroDivisionError"
    assert server["vram_bytes"] == 14817427456
    assert rows[3120]["runtimes"] is not None
    assert [(note["code"], note["pid"]) for note in document["warnings"]] == [("internal-error", 4711)]
    assert capsys.readouterr().err == ""
