"""SGLang: the launcher has the flags and the API, `sglang::scheduler_TP0` the memory.

Its `/server_info` is the best source of all servers: weights, KV pool and graphs of each rank. It also repeats the
server's arguments, keys among them, so nothing of it but the memory figures is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "sglang"
PATHS = ("/server_info", "/get_server_info")
DEFAULT_PORT = 30000
GIB = 1 << 30

_TITLE = "sglang::"
_MAX_ANCESTORS = 4


def recognise(program: Program) -> Workload | None:
    workload = _front(program)
    if workload is not None:
        return workload
    if not program.title.startswith(_TITLE):
        return None
    front = None
    for ancestor in program.ancestors()[:_MAX_ANCESTORS]:
        front = _front(ancestor)
        if front is not None:
            break
    workload = front or Workload(NAME)
    workload.role = "worker"
    # `sglang::scheduler_TP0`, `sglang::scheduler_DP1_TP3`
    words = program.title[len(_TITLE) :].split("_")
    workload.rank = next((word for word in words if word.startswith("TP") and word[2:].isdigit()), None)
    return workload


def _front(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name == "sglang" and arguments[:1] == ["serve"]:
        arguments = arguments[1:]
    elif name != "sglang.launch_server":
        return None
    flags = Flags(arguments, {})
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    put = workload.put
    put("hf_model", flags.text("--model-path", "--model"))
    put("model_name", flags.text("--served-model-name"))
    put("sequences", flags.number("--max-running-requests"))
    put("type_k", flags.text("--kv-cache-dtype"))
    put("fraction", flags.fraction("--mem-fraction-static"))
    put("ranks", flags.number("--tp-size", "--tp", "--tensor-parallel-size"))
    stages = flags.number("--pp-size", "--pipeline-parallel-size")
    workload.stages = stages[0] if stages is not None and stages[0] > 0 else 1
    put("port", flags.number("--port"))
    workload.default_port = DEFAULT_PORT
    return workload


def ask(api: Api, workload: Workload) -> None:
    from gpusnap.llm.probe import Silent, whole

    try:
        info = api.json("/server_info")
    except Silent:
        info = api.json("/get_server_info")
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    usage = state.get("memory_usage")
    if not isinstance(usage, dict):
        return
    for name, keys in (("weights", ("weight",)), ("kv", ("kvcache",)), ("graph", ("graph", "cuda_graph"))):
        value = next((usage[key] for key in keys if type(usage.get(key)) in (int, float)), None)
        if value is not None and 0 <= value < 1 << 20:
            workload.api[f"{name}_bytes"] = round(value * GIB)  # "GB" there are GiB
    tokens = whole(usage.get("token_capacity"))
    if tokens is not None:
        workload.api["tokens"] = tokens
