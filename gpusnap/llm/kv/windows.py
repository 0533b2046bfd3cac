"""Sliding windows: which layers keep only the last tokens, and how many.

Each model's `load_arch_hparams`; the pattern as `load_swa_pattern`: an array in the header says it for each layer,
a number is the period, else the period is the architecture's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv.facts import Unsettled

if TYPE_CHECKING:
    from gpusnap.llm.kv.facts import Facts

# period; dense_first: the first layer of a period sees everything, else the last one does.
_PERIODS = {
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "gpt-oss": (2, False),
    "cohere2": (4, False),
    "cohere2moe": (4, True),
    "llama4": (4, False),
    "olmo2": (4, False),
    "exaone4": (4, False),
    "exaone-moe": (4, False),
    "afmoe": (4, False),
    "mellum": (4, False),
    "muse-glimmer": (4, False),
    "plamo3": (8, False),
    "smallthinker": (4, True),
    "laguna": (4, True),
}
_ARRAY_NEEDED = frozenset({"gemma4", "mimo2", "step35", "granite_swa", "dots3note", "spark2_5", "maple"})

# Without a window in the header these have none; the others don't load.
_OPTIONAL = frozenset({"gemma3", "olmo2", "afmoe", "mellum", "plamo3", "smallthinker", "laguna", "lfm2"})
_DEFAULT_WINDOW = {"gemma2": 4096, "exaone4": 4096}
_FORCED_WINDOW = {"llama4": 8192, "smallthinker": 4096}

_WINDOW = "attention.sliding_window"
_PATTERN = "attention.sliding_window_pattern"


def window(facts: Facts) -> int | None:
    """Tokens that a windowed layer looks back; None where no layer is windowed."""
    name = facts.architecture
    if name not in _PERIODS and name not in _ARRAY_NEEDED and name not in ("lfm2", "deepseek4"):
        return None  # phi3 too: it has the key, and llama.cpp ignores it
    if name == "exaone4" and facts.layers - facts.number("nextn_predict_layers", 0) != 64:
        return None  # only the 32B model
    if name == "llama4":
        return None if facts.has(_WINDOW) and facts.number(_WINDOW, 0) == 0 else _FORCED_WINDOW[name]
    if name in _OPTIONAL:
        found = facts.number(_WINDOW, 0)
        return _FORCED_WINDOW.get(name, found) if found > 0 else None
    if name in _DEFAULT_WINDOW:
        return facts.number(_WINDOW, _DEFAULT_WINDOW[name])
    return facts.needed(_WINDOW)


def windowed_layers(facts: Facts, trunk: int) -> list[bool]:
    """For every layer, where `window` is not None; draft layers behind `trunk` are windowed only by an array."""
    name = facts.architecture
    if name == "deepseek4":
        return [True] * facts.layers
    if name == "lfm2":
        heads = facts.per_layer("attention.head_count_kv", [1] * facts.layers)
        return [layer < trunk and heads[layer] > 0 for layer in range(facts.layers)]
    listed = facts.array(_PATTERN)
    if listed is not None:
        return [bool(element) for element in listed]
    if name in _ARRAY_NEEDED:
        raise Unsettled("unknown-format", f"the header has no array {_PATTERN}")
    period, dense_first = _PERIODS[name]
    period = facts.number(_PATTERN, period)
    return [layer < trunk and _is_windowed(layer, period, dense_first) for layer in range(facts.layers)]


def _is_windowed(layer: int, period: int, dense_first: bool) -> bool:
    if period == 0:
        return True
    return layer % period != 0 if dense_first else layer % period < period - 1
