"""Hugging Face's text-generation-inference: a launcher, a router with the API, a Python shard a rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "tgi"
PATHS = ("/info",)
DEFAULT_PORT = 3000
_PROGRAMS = ("text-generation-launcher", "text-generation-router", "text-generation-server")


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name not in _PROGRAMS:
        return None
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    if name == "text-generation-server":
        workload.role = "worker"
        if arguments[:1] == ["serve"] and len(arguments) > 1:
            workload.put("hf_model", (arguments[1], "cmdline"))
    for one in (program, *program.ancestors()[:2]):
        title, words = one.entry
        if title == "text-generation-launcher":
            flags = Flags(words, one.environ("MODEL_ID", "PORT"))
            workload.put("hf_model", flags.text("--model-id", env="MODEL_ID"))
            workload.put("port", flags.number("--port", "-p", env="PORT"))
            workload.put("ranks", flags.number("--num-shard"))
    workload.default_port = DEFAULT_PORT
    return workload


def ask(api: Api, workload: Workload) -> None:
    from gpusnap.llm.probe import positive

    info = api.json("/info")
    if isinstance(info.get("model_id"), str):
        workload.put("hf_model", (info["model_id"], "api./info"))
    for key in ("max_total_tokens", "max_batch_total_tokens"):
        value = positive(info.get(key))
        if value is not None:
            workload.api[key] = value
