"""The numbers of an explanation, each with its provenance and where that is, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.rows import entry_of
from gpusnap.explain.sources import says
from gpusnap.fields import ACCOUNTING, LLM_FIGURES, MODEL_FIGURES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from gpusnap.model import Adapter, Figure, Process, Snapshot

    Unit = Literal["bytes", "percent", "celsius", "watts", "joules", "mhz", "tokens", "count", "text"]

CARD_LEAVES = (
    "memory.total_bytes",
    "memory.used_bytes",
    "memory.free_bytes",
    "memory.reserved_bytes",
    "memory.shared_used_bytes",
    "load.gpu_percent",
    "load.memory_bandwidth_percent",
    "temperature.gpu_celsius",
    "power.draw_watts",
    *(f"accounting.{leaf}" for leaf in ACCOUNTING),
)
PROCESS_LEAVES = (
    "vram_bytes",
    "spill_bytes",
    "paged_bytes",
    "vram_shared_bytes",
    "gpu_percent",
    "cpu_percent",
    "rss_bytes",
    *(f"model.{leaf}" for leaf in MODEL_FIGURES),
    *(f"llm.{leaf}" for leaf in LLM_FIGURES),
)
_UNITS: tuple[tuple[str, Unit], ...] = (
    ("bytes_per_token", "bytes"),
    ("_bytes", "bytes"),
    ("_percent", "percent"),
    ("_celsius", "celsius"),
    ("_watts", "watts"),
    ("_joules", "joules"),
    ("_mhz", "mhz"),
    ("_tokens", "tokens"),
    ("context_trained", "tokens"),
)


def card_figures(document: Snapshot, card: Adapter) -> list[Figure]:
    entry = entry_of(document, card)
    return [_figure(leaf, value_at(card, leaf), entry) for leaf in CARD_LEAVES]


def process_figures(document: Snapshot, row: Process) -> list[Figure]:
    """A process's own; the model's where there is one."""
    entry = entry_of(document, row)
    return [
        _figure(leaf, value_at(row, leaf), entry)
        for leaf in PROCESS_LEAVES
        if not (leaf.startswith(("model.", "llm.")) and row[leaf.partition(".")[0]] is None)  # type: ignore[literal-required]
    ]


def value_at(row: Mapping[str, object], leaf: str) -> object:
    value: object = row
    for key in leaf.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def unit_of(leaf: str) -> Unit:
    for ending, unit in _UNITS:
        if leaf.endswith(ending):
            return unit
    return "count"


def _figure(leaf: str, value: object, entry: Mapping[str, str]) -> Figure:
    provenance = entry.get(leaf)
    if provenance is None:
        provenance = "null:not-exposed" if value is None else "computed:sum"
    return {
        "field": leaf,
        "value": value if isinstance(value, int | float | str) else None,
        "unit": unit_of(leaf),
        "provenance": provenance,
        "says": says(provenance),
    }
