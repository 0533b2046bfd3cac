"""LM Studio: an Electron program or the headless `llmster`; a worker process of its own name loads the model.

Flags say nothing of the model; its API says which is loaded, with which context, and no bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "lmstudio"
PATHS = ("/api/v0/models",)
DEFAULT_PORT = 1234
_NAMES = ("lm-studio", "lm studio", "lmstudio", "llmster")
_FOLDERS = ("/.lmstudio/", "/lm-studio/", "/lm studio.app/", "/.cache/lm-studio/")


def recognise(program: Program) -> Workload | None:
    place = program.title.lower()
    if not program.name.lower().startswith(_NAMES) and not any(folder in place for folder in _FOLDERS):
        return None
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    workload.default_port = DEFAULT_PORT
    workload.put("sequences", (1, "defaults:lmstudio"))
    workload.put("unified", (False, "defaults:lmstudio"))
    return workload


def ask(api: Api, workload: Workload) -> None:
    """Loaded models only; with several there is no telling which one is this process's."""
    from gpusnap.llm.probe import positive

    rows = api.json("/api/v0/models").get("data")
    loaded = (
        [row for row in rows if isinstance(row, dict) and row.get("state") == "loaded"]
        if isinstance(rows, list)
        else []
    )
    if len(loaded) != 1:
        return
    row = loaded[0]
    if isinstance(row.get("id"), str):
        workload.put("model_name", (row["id"], "api./api/v0/models"))
    length = positive(row.get("loaded_context_length"))
    if length is not None:
        workload.put("context", (length, "api./api/v0/models"))
