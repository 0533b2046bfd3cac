"""vLLM's start-up log, 0.4 to the V1 engine: what each rank took for weights, cache and the rest.

Everything is per rank. "GB" in the old wordings is GiB (`14.9888 GB` of 16.06e9 bytes). The prefix
`(Worker_TP0 pid=52)` says whose line it is; the last start of an engine in the log is the one that counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.llm.logs.lines import Line

GIB = 1 << 30
_GIB = r"(\d{1,6}(?:\.\d{1,6})?) ?Gi?B"
_START = re.compile(r"Initializing (?:a|an) (?:V1 )?LLM engine \(v?[\w.+-]{1,64}\)")
_WEIGHTS = (
    re.compile(r"Model loading took " + _GIB),
    re.compile(r"Loading model weights took " + _GIB),
)
_PARTS = (
    ("kv_bytes", re.compile(r"Available KV cache memory: " + _GIB)),
    ("graph_bytes", re.compile(r"Graph capturing finished in \d+ secs, took " + _GIB)),
)
_TOKENS = re.compile(r"GPU KV cache size: (\d{1,3}(?:,\d{3}){0,4}|\d{1,12}) tokens")
# Of the scheduler, until V1; the first and then every fiftieth.
_PREEMPTED = re.compile(
    r"Sequence group \S{1,256} is preempted by .{1,400} total_num_cumulative_preemption=(\d{1,12})$"
)
_PROFILE = re.compile(r"Memory profiling results: total_gpu_memory=")
_BUDGET = re.compile(
    r"the current vLLM instance can use total_gpu_memory \(" + _GIB + r"\) x (?:gpu_memory_utilization )?"
    r"\(?(\d\.\d{1,4})\)? = " + _GIB
)
_TAKES = re.compile(
    rf"model weights take {_GIB}; non_torch_memory takes {_GIB}; PyTorch activation peak memory takes {_GIB}; "
    rf"the rest of the memory reserved for KV Cache is {_GIB}"
)
_ACTUAL = re.compile(
    rf"Free memory on device .{{1,64}}Desired GPU memory utilization is \((\d\.\d{{1,4}}), {_GIB}\)\. "
    rf"Actual usage(?: is)?:? {_GIB} for weights?, {_GIB} for peak activation, {_GIB} for non-torch memory"
)


class Rank:
    """One worker's figures in bytes; None was not said."""

    __slots__ = (
        "activation_bytes",
        "budget_bytes",
        "graph_bytes",
        "kv_bytes",
        "non_torch_bytes",
        "preemptions",
        "tag",
        "tokens",
        "utilization",
        "weights_bytes",
    )

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.weights_bytes: int | None = None
        self.kv_bytes: int | None = None
        self.tokens: int | None = None
        self.activation_bytes: int | None = None
        self.graph_bytes: int | None = None
        self.non_torch_bytes: int | None = None
        self.budget_bytes: int | None = None
        self.utilization: float | None = None
        self.preemptions: int | None = None


def read(lines: Iterable[Line]) -> dict[str, Rank]:
    """Tag (`pid:52`, or empty) -> the rank's last start."""
    ranks: dict[str, Rank] = {}
    for line in lines:
        if _START.match(line.text):
            ranks = {line.tag: Rank(line.tag)}
            continue
        rank = ranks.get(line.tag) or Rank(line.tag)
        if _take(rank, line.text):
            ranks[line.tag] = rank
    return ranks


def _take(rank: Rank, text: str) -> bool:
    for pattern in _WEIGHTS:
        found = pattern.match(text)
        if found is not None:
            rank.weights_bytes = _bytes(found[1])
            return True
    for name, pattern in _PARTS:
        found = pattern.match(text)
        if found is not None:
            setattr(rank, name, _bytes(found[1]))
            return True
    return _take_counts(rank, text) or _take_profile(rank, text)


def _take_counts(rank: Rank, text: str) -> bool:
    for name, pattern in (("tokens", _TOKENS), ("preemptions", _PREEMPTED)):
        found = pattern.match(text)
        if found is not None:
            setattr(rank, name, int(found[1].replace(",", "")))
            return True
    return False


def _take_profile(rank: Rank, text: str) -> bool:
    """The three wordings of the memory profile: one line of `name=1.2GiB`, two sentences, one sentence (2026)."""
    if _PROFILE.match(text):
        values = dict(re.findall(r"(\w{1,40})=(\d{1,6}(?:\.\d{1,6})?)(?:GiB)?", text))
        for name, key in (("non_torch_bytes", "non_torch_memory"), ("kv_bytes", "kv_cache_size")):
            if key in values:
                setattr(rank, name, _bytes(values[key]))
        if "gpu_memory_utilization" in values and "total_gpu_memory" in values:
            rank.utilization = float(values["gpu_memory_utilization"])
            rank.budget_bytes = round(_bytes(values["total_gpu_memory"]) * rank.utilization)
        return True
    found = _BUDGET.match(text)
    if found is not None:
        rank.utilization, rank.budget_bytes = float(found[2]), _bytes(found[3])
        return True
    found = _TAKES.match(text)
    if found is not None:
        rank.weights_bytes, rank.non_torch_bytes = _bytes(found[1]), _bytes(found[2])
        rank.activation_bytes, rank.kv_bytes = _bytes(found[3]), _bytes(found[4])
        return True
    found = _ACTUAL.match(text)
    if found is not None:
        rank.utilization, rank.budget_bytes = float(found[1]), _bytes(found[2])
        rank.activation_bytes, rank.non_torch_bytes = _bytes(found[4]), _bytes(found[5])
        return True
    return False


def _bytes(text: str) -> int:
    return round(float(text) * GIB)
