"""vLLM: the API server, the engine core and one worker a rank, all of which may hold memory.

The front (`vllm serve MODEL`) has the flags; `VLLM::EngineCore` and `VLLM::Worker_TP0` renamed themselves and have
none, so the settings of a worker are its ancestors'. vLLM reserves a share of the card by policy
(`--gpu-memory-utilization`, 0.9): nearly all of it is the KV pool, whatever the model's size. API: `/metrics` has
the pool's blocks and how much of it is in use, `/v1/models` the longest request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload
from gpusnap.text import whole_number

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "vllm"
PATHS = ("/metrics", "/v1/models")
DEFAULT_PORT = 8000
DEFAULT_FRACTION = 0.9

_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "vllm.entrypoints.cli.main")
_TITLES = ("VLLM::", "vllm::")
# Compiled when an API was asked, not at each start.
_LABEL = r'(\w{1,64})="([^"]{0,256})"'
_METRIC = r"(?m)^vllm:(\w{1,64})(?:\{([^}]{0,4096})\})? ([0-9.eE+-]{1,32}|NaN)$"
_MAX_ANCESTORS = 4


def recognise(program: Program) -> Workload | None:
    workload = _front(program)
    if workload is not None:
        return workload
    titled = program.title.startswith(_TITLES)
    if not titled and not _is_spawned(program):
        return None
    front = None
    for ancestor in program.ancestors()[:_MAX_ANCESTORS]:
        front = _front(ancestor)
        if front is not None:
            break
    if not titled and front is None:
        return None
    workload = front or Workload(NAME)
    workload.role = "worker"
    workload.rank = program.title.partition("::")[2] if titled else None
    return workload


def _is_spawned(program: Program) -> bool:
    """`python -c from multiprocessing.spawn import ...`: how older versions start their workers."""
    return any("multiprocessing" in word for word in program.words[1:4]) or "ray::" in program.title


def _front(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name in _MODULES:
        pass
    elif name == "vllm" and arguments[:1] in (["serve"], ["bench"], ["run-batch"], ["chat"]):
        arguments = arguments[1:]
    else:
        return None
    flags = Flags(arguments, {})
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    put = workload.put
    if arguments and not arguments[0].startswith("-"):
        put("hf_model", (arguments[0], "cmdline"))
    put("hf_model", flags.text("--model"))
    put("model_name", flags.text("--served-model-name"))
    put("sequences", flags.number("--max-num-seqs"))
    put("type_k", flags.text("--kv-cache-dtype"))
    put("fraction", flags.fraction("--gpu-memory-utilization"))
    put("fraction", (DEFAULT_FRACTION, "defaults:vllm"))
    put("ranks", flags.number("--tensor-parallel-size", "-tp"))
    stages = flags.number("--pipeline-parallel-size", "-pp")
    workload.stages = stages[0] if stages is not None and stages[0] > 0 else 1
    engines = flags.number("--data-parallel-size", "-dp")
    apart = flags.has("--enable-expert-parallel", "-ep")
    workload.experts_apart = apart and engines is not None and engines[0] > 1
    put("port", flags.number("--port"))
    workload.default_port = DEFAULT_PORT
    return workload


def ask(api: Api, workload: Workload) -> None:
    from gpusnap.llm.probe import positive

    metrics = read_metrics(api.text("/metrics"))
    shares = metrics.pop("used_shares", {})
    if isinstance(shares, dict):
        share = _own_share(shares, workload.rank)
        if share is not None:
            metrics["used_share"] = share
    workload.api.update(metrics)
    models = api.json("/v1/models").get("data")
    if isinstance(models, list) and models and isinstance(models[0], dict):
        length, root = positive(models[0].get("max_model_len")), models[0].get("root")
        if length is not None:
            workload.api["max_model_len"] = length
        if isinstance(root, str):
            workload.put("hf_model", (root, "api./v1/models"))


def _own_share(shares: dict[str, float], rank: str | None) -> float | None:
    """Of several engines (data parallel) the one whose number is in the worker's title, `EngineCore_DP1`."""
    if len(shares) == 1:
        return next(iter(shares.values()))
    found = re.search(r"(?:^|_)DP(\d{1,5})(?:_|$)", rank or "")
    return shares.get(found[1]) if found is not None else None


def read_metrics(text: str) -> dict[str, object]:
    """`tokens` of the pool (blocks x block size), `used_shares` of it by engine, `preemptions` since the start.

    Blocks are "None" in some versions.
    """
    found: dict[str, object] = {}
    shares: dict[str, float] = {}
    for name, labels, value in re.findall(_METRIC, text[: 1 << 20]):
        if name == "cache_config_info":
            known = dict(re.findall(_LABEL, labels))
            blocks = whole_number(known.get("num_gpu_blocks", ""))
            size = whole_number(known.get("block_size", ""))
            if blocks is not None and size is not None and blocks * size < 1 << 40:
                found["tokens"] = blocks * size
            tokens = whole_number(known.get("kv_cache_size_tokens", ""))
            if tokens is not None and tokens < 1 << 40:
                found["tokens"] = tokens
            dtype = known.get("cache_dtype")
            if dtype:
                found["cache_dtype"] = dtype
            share = known.get("gpu_memory_utilization", "")
            if re.fullmatch(r"0?\.\d{1,4}|1(\.0{1,4})?", share):
                found["fraction"] = float(share)
        elif name == "num_preemptions_total" and value != "NaN" and 0 <= float(value) < 1 << 53:
            before = found.get("preemptions")  # one line for each engine
            found["preemptions"] = round(float(value)) + (before if isinstance(before, int) else 0)
        elif name in ("kv_cache_usage_perc", "gpu_cache_usage_perc") and value != "NaN" and 0 <= float(value) <= 1:
            engine = dict(re.findall(_LABEL, labels)).get("engine", "")
            shares[engine] = float(value)
            found["used_shares"] = shares
    return found
