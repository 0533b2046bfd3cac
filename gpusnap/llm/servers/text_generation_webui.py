"""text-generation-webui (oobabooga): `server.py` of a folder of that name, several engines behind it.

With its llama.cpp loader a `llama-server` of its own is the process on the card, and is recognised as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "text-generation-webui"
PATHS = ("/v1/internal/model/info",)
DEFAULT_PORT = 5000


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name != "server.py":
        return None
    script = next((word for word in program.words[1:] if word.endswith("server.py")), "")
    place = f"{program.cwd}/{script}".lower()
    if "text-generation-webui" not in place and "textgen" not in place:
        return None
    flags = Flags(arguments, {})
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    model = flags.text("--model")
    workload.put("model_name", model)
    workload.put("context", flags.number("--ctx-size", "--n-ctx"))
    workload.put("gpu_layers", flags.number("--gpu-layers", "--n-gpu-layers"))
    workload.put("type_k", flags.text("--cache-type"))
    workload.put("type_v", flags.text("--cache-type"))
    workload.put("port", flags.number("--api-port"))
    workload.default_port = DEFAULT_PORT
    return workload


def ask(api: Api, workload: Workload) -> None:
    info = api.json("/v1/internal/model/info")
    for name, key in (("model_name", "model_name"), ("loader", "loader")):
        value = info.get(key)
        if isinstance(value, str) and value != "None":
            if name == "model_name":
                workload.put(name, (value, "api./v1/internal/model/info"))
            else:
                workload.api[name] = value
