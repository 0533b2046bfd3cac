"""Whatever a document holds, explaining it ends in a valid explanation: every captured machine, every null."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusnap import fields
from gpusnap.captured import CapturedHost
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from gpusnap.explain.explanation import Explained, explain_history, explain_snapshot
from gpusnap.explain.history import History
from gpusnap.explain.view import Surroundings, Viewer
from gpusnap.model import Explanation, Snapshot
from gpusnap.render.explain import explain_lines
from gpusnap.render.html import html_page
from gpusnap.render.openmetrics import openmetrics
from gpusnap.render.prometheus import prometheus_text
from gpusnap.render.screen import Screen
from tests.builders import GIB, START, adapter, holder, llm_facts, process, set_leaf, snapshot

MACHINES = sorted(path.parent for path in (Path(__file__).parents[2] / "machines").glob("*/expected.json"))


def check(explained: Explained) -> None:
    assert msgspec.convert(explained.document, Explanation, strict=True) == explained.document
    assert explained.document["answer"].endswith(".")
    for width in (None, 60):
        assert explain_lines(explained, Screen(width), sources=True)
    for finding in explained.document["findings"]:
        for line in (finding["title"], *finding["evidence"], *finding["advice"]):
            assert "None" not in line
            assert line.strip()


@pytest.mark.parametrize("folder", MACHINES, ids=[folder.name for folder in MACHINES])
def test_a_captured_machine_is_explained(folder: Path) -> None:
    document = collect(CapturedHost(folder), CollectOptions(holders=True))
    for viewer in (Viewer(), Viewer(0, "root"), Viewer(1000, "alice")):
        check(explain_snapshot(document, viewer=viewer, around=Surroundings(listening=frozenset())))
    assert prometheus_text(document)


def everything() -> dict[str, Any]:
    """A card and rows with a value in every leaf that a rule looks at."""
    card = adapter(
        total=16 * GIB,
        used=15 * GIB,
        holders=[holder(4711), holder(4712, state="zombie")],
        leaves={
            **{leaf: 1 for leaf in fields.ADAPTER_FIGURES if leaf.startswith(("ecc.", "clocks.", "temperature."))},
            "clocks.throttle_reasons": ["hw_slowdown"],
            "load.memory_bandwidth_percent": 95,
            "ecc.remap_pending": True,
        },
    )
    llm = llm_facts(server="vllm", weights_bytes=GIB, kv_cache_bytes=6 * GIB, kv_cache_used_bytes=6 * GIB)
    rows = [
        process(1, 8 * GIB, ppid=1, llm=llm, runtimes=["pytorch"], cpu_percent=99.0),
        process(2, 300 * 1024**2, state="disk-sleep", spill_bytes=GIB),
        process(3, 2 * GIB, name="null:exited", start_ticks=None),
    ]
    return {"card": card, "rows": rows}


CARD_LEAVES = (
    *fields.ADAPTER_FIGURES,
    *("model", "kind", "uuid", "pci_address", "driver", "index", "holders", "unreadable_pids", "memory.kind"),
)
ROW_LEAVES = (
    *fields.PROCESS_FIGURES,
    *("start_ticks", "started_at", "ppid", "name", "exe", "cmdline", "cwd", "uid", "user", "state", "type"),
    *("shared_with", "role", "runtimes", "llm"),
)


@pytest.mark.parametrize("leaf", CARD_LEAVES)
def test_any_null_of_a_card(leaf: str) -> None:
    parts = copy.deepcopy(everything())
    set_leaf(parts["card"], leaf, "null:failed words")
    check(explain_snapshot(snapshot([parts["card"]], parts["rows"])))


@pytest.mark.parametrize("leaf", ROW_LEAVES)
def test_any_null_of_a_process(leaf: str) -> None:
    parts = copy.deepcopy(everything())
    for row in parts["rows"]:
        set_leaf(row, leaf, "null:failed words")
    check(explain_snapshot(snapshot([parts["card"]], parts["rows"])))


@pytest.mark.parametrize("seed", range(12))
def test_a_recording_of_anything(seed: int) -> None:
    """Cards that come and go, nulls at random, clocks that jump, reboots: pictures and metrics too."""
    rng = random.Random(seed)
    documents: list[Snapshot] = []
    wall, uptime, boot = START, 1000.0, 0
    for _ in range(60):
        wall += rng.choice((10, 10, 10, 300, -50))
        uptime += rng.choice((10, 10, 10, 300, 0))
        if rng.random() < 0.05:
            boot, uptime = boot + 1, 20.0
        cards, rows = [], []
        for index in range(rng.randrange(0, 3)):
            parts = copy.deepcopy(everything())
            card = adapter(index, total=16 * GIB, used=rng.choice((15 * GIB, 0, "null:device-busy")))
            for leaf in rng.sample(CARD_LEAVES, 3):
                set_leaf(card, leaf, "null:failed")
            for row in parts["rows"][: rng.randrange(0, 4)]:
                row["adapter"] = card["id"]
                for leaf in rng.sample(ROW_LEAVES, 3):
                    set_leaf(row, leaf, "null:failed")
                rows.append(row)
            cards.append(card)
        documents.append(
            snapshot(cards, rows if rng.random() < 0.9 else None, at=wall, uptime=uptime, boot=f"boot-{boot}")
        )
    explained = explain_history(History(pictures=True).feed(documents), source="x.jsonl")
    check(explained)
    assert "</html>" in html_page(explained)
    assert b"".join(openmetrics(documents)).endswith(b"# EOF\n")
