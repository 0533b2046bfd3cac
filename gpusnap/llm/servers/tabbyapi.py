"""TabbyAPI (ExLlama): `main.py` or `start.py` of a folder of that name; its settings are in a file of its own.

`/v1/model` needs a key unless the server was started without (`disable_auth`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "tabbyapi"
PATHS = ("/v1/model",)
DEFAULT_PORT = 5000


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name in ("main.py", "start.py"):
        script = next((word for word in program.words[1:] if word.endswith(name)), "")
        if "tabbyapi" not in f"{program.cwd}/{script}".lower():
            return None
    elif name.lower() != "tabbyapi":
        return None
    flags = Flags(arguments, {})
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    workload.put("hf_model", flags.text("--model-name"))
    workload.put("port", flags.number("--port"))
    workload.default_port = DEFAULT_PORT
    return workload


def ask(api: Api, workload: Workload) -> None:
    """`cache_size` is the tokens of the whole pool, `max_seq_len` of one sequence."""
    from gpusnap.llm.probe import positive

    found = api.json("/v1/model")
    if isinstance(found.get("id"), str):
        workload.put("model_name", (found["id"], "api./v1/model"))
    parameters = found.get("parameters")
    if not isinstance(parameters, dict):
        return
    size = positive(parameters.get("cache_size", parameters.get("max_seq_len")))
    if size is not None:
        workload.put("context", (size, "api./v1/model"))
    mode = parameters.get("cache_mode")
    if isinstance(mode, str):
        workload.api["cache_mode"] = mode
