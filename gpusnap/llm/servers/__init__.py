"""Model servers, one file each: how one is recognised, what its flags mean, what its local API tells.

A server file has
    NAME                   as the document says it: a short word in lower case
    PATHS                  the only paths of its API that are ever asked for, with GET
    recognise(program)     a Workload with the settings of flags and environment, or None: not mine
    ask(api, workload)     put what the API says into the workload (only with `--probe` and in `explain`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program
    from gpusnap.llm.workload import Workload


class Server(Protocol):
    @property
    def NAME(self) -> str: ...  # noqa: N802

    @property
    def PATHS(self) -> tuple[str, ...]: ...  # noqa: N802

    def recognise(self, program: Program) -> Workload | None: ...

    def ask(self, api: Api, workload: Workload) -> None: ...


def all_servers() -> tuple[Server, ...]:
    """In the order in which they are tried: ollama's runner is a llama-server, so ollama comes first."""
    from gpusnap.llm.servers import (
        comfyui,
        koboldcpp,
        llama_cpp,
        lmstudio,
        ollama,
        sglang,
        tabbyapi,
        text_generation_webui,
        tgi,
        vllm,
    )

    return (
        ollama,
        llama_cpp,
        vllm,
        sglang,
        koboldcpp,
        lmstudio,
        comfyui,
        tgi,
        tabbyapi,
        text_generation_webui,
    )


# A server's command line begins with a word that holds one of these; others are not shown to the ten files.
_HINTS = (
    *("llama", "vllm", "sglang", "kobold", "lm-studio", "lm studio", "lmstudio", "llmster", "comfy", "tabby"),
    *("text-generation", "multiprocessing", "ray::"),
)
# These say something only as a file's name: many folders are called so that hold anything at all.
_NAME_HINTS = ("server", "main", "start.py")
_FIRST_WORDS = 5


def may_be_server(words: Sequence[str]) -> bool:
    """A look at the beginning of argv, so cheap that it is made at every process."""
    first = [word.lower() for word in words[:_FIRST_WORDS]]
    beginning = " ".join(first)
    if any(hint in beginning for hint in _HINTS):
        return True
    names = " ".join(word.replace("\\", "/").rpartition("/")[2] for word in first)
    return any(hint in names for hint in _NAME_HINTS)


def recognise(program: Program) -> tuple[Server, Workload] | None:
    """The server that a process belongs to."""
    if not may_be_server(program.words):
        return None
    for server in all_servers():
        workload = server.recognise(program)
        if workload is not None:
            return server, workload
    return None
