"""`explain PID` on Windows: what is committed beside what is resident, by `raw.2.json` of the kept machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpusnap.explain.committed import with_committed
from gpusnap.llm.aside import NOTHING
from gpusnap.reading import measured, null
from tests.builders import adapter, snapshot
from tests.snapping import run_gpusnap

MACHINE = Path(__file__).parents[2] / "machines" / "windows-nvidia-intel"
MIB, GIB = 1 << 20, 1 << 30
COMMITTED = ("committed_bytes", "committed_dedicated_bytes", "committed_shared_bytes")


def figures(pid: int) -> list[tuple[str, int | None, str]]:
    document = json.loads(run_gpusnap("explain", f"pid:{pid}", "--replay", str(MACHINE), "--json").stdout)
    return [
        (figure["field"], figure["value"], figure["provenance"])
        for figure in document["figures"]
        if figure["field"] in COMMITTED
    ]


def shown(pid: int) -> list[str]:
    text = run_gpusnap("explain", f"pid:{pid}", "--replay", str(MACHINE)).stdout.decode()
    return [line.strip() for line in text.splitlines() if "committed on" in line]


def test_each_cards_raw_counters_stand_behind_the_figures() -> None:
    source = "measured:pdh.GPU Process Memory."
    assert figures(4242) == [
        ("committed_bytes", 6 * GIB, f"{source}Total Committed"),
        ("committed_dedicated_bytes", 5 * GIB, f"{source}Dedicated Usage"),
        ("committed_shared_bytes", 1 * GIB, f"{source}Shared Usage"),
        ("committed_bytes", 12 * MIB, f"{source}Total Committed"),
        ("committed_dedicated_bytes", 0, f"{source}Dedicated Usage"),
        ("committed_shared_bytes", 12 * MIB, f"{source}Shared Usage"),
    ]
    assert shown(4242) == [
        "more       6.0 GiB  committed on GPU 0, in all (Windows' Total Committed)",
        "5.0 GiB  committed on GPU 0, dedicated, resident or not (Windows' Dedicated Usage)",
        "1.0 GiB  committed on GPU 0, shared system memory (Windows' Shared Usage)",
        "12 MiB  committed on GPU 1, in all (Windows' Total Committed)",
        "0 B  committed on GPU 1, dedicated, resident or not (Windows' Dedicated Usage)",
        "12 MiB  committed on GPU 1, shared system memory (Windows' Shared Usage)",
    ]


def test_systeminformer_2389_a_lying_counter_is_told_and_no_figure() -> None:
    """dwm at 14013 MiB on a card of 8051; its total is not believed then, its shared part is."""
    values = [(field, value, source.split(" ")[0]) for field, value, source in figures(1180)[:3]]
    assert values == [
        ("committed_bytes", None, "null:out-of-range"),
        ("committed_dedicated_bytes", None, "null:out-of-range"),
        ("committed_shared_bytes", 40 * MIB, "measured:pdh.GPU"),
    ]
    told = [line for line in shown(1180) if "Dedicated Usage says 14694000000, the adapter has 8442085376" in line]
    assert len(told) == 2


def test_a_process_that_only_nvml_lists_has_none() -> None:
    assert figures(5000) == []


@pytest.mark.parametrize("value", [0, None])
def test_nothing_committed_is_a_figure_and_a_failed_counter_is_a_sentence(value: int | None) -> None:
    reading = measured(0, "pdh.x") if value is not None else null("failed", "PDH 0xC0000BBD")
    document = snapshot([adapter(used=GIB)], [])
    (ident,) = [card["id"] for card in document["adapters"]]
    aside = with_committed(NOTHING, document, {ident: {"Shared Usage": reading}})
    assert [extra.reading.value for extra in aside.extras] == [value]
    assert len(aside.says) == (1 if value is None else 0)
    assert all("0xC0000BBD" in sentence for sentence in aside.says)
