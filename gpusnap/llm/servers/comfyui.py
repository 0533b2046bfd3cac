"""ComfyUI: a PyTorch process that keeps models in its allocator's cache after a workflow (ComfyUI#6597).

`/system_stats` tells what PyTorch has reserved on each card and how much of that is free for the next workflow:
with the driver's figure that leaves the CUDA context and what custom nodes took outside PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "comfyui"
PATHS = ("/system_stats",)
DEFAULT_PORT = 8188


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name == "main.py":
        script = next((word for word in program.words[1:] if word.endswith("main.py")), "")
        if "comfyui" not in f"{program.cwd}/{script}".lower():
            return None
    elif name not in ("comfyui", "ComfyUI", "comfy"):
        return None
    flags = Flags(arguments, {})
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    workload.put("port", flags.number("--port"))
    workload.default_port = DEFAULT_PORT
    return workload


def ask(api: Api, workload: Workload) -> None:
    from gpusnap.llm.probe import whole

    devices = api.json("/system_stats").get("devices")
    rows = [row for row in devices if isinstance(row, dict)] if isinstance(devices, list) else []
    cards = [row for row in rows if row.get("type") not in ("cpu", "mps")]
    if len(cards) != 1:
        return  # ComfyUI works on one; with several listed there is no telling which
    for key in ("torch_vram_total", "torch_vram_free", "vram_total", "vram_free"):
        value = whole(cards[0].get(key))
        if value is not None:
            workload.api[key] = value
