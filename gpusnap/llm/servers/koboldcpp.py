"""KoboldCpp: a static program or `koboldcpp.py`, its own flag names over llama.cpp's engine.

Its sliding-window cache is full size unless `--useswa` is given (before 1.114), which is why a Gemma takes eight
times the cache of llama-server (koboldcpp#2235). The API has no bytes: only the context and the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "koboldcpp"
PATHS = ("/api/extra/true_max_context_length", "/api/extra/version")
DEFAULT_PORT = 5001
_QUANTS = {0: "f16", 1: "q8_0", 2: "q4_0"}


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if not name.lower().startswith("koboldcpp"):
        return None
    flags = Flags(arguments, {})
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    put = workload.put
    put("model", flags.text("--model", "-m"))
    if arguments and not arguments[0].startswith("-"):
        put("model", (arguments[0], "cmdline"))
    put("mmproj", flags.text("--mmproj"))
    put("draft", flags.text("--draftmodel"))
    put("context", flags.number("--contextsize", "-c"))
    put("gpu_layers", flags.number("--gpulayers", "--gpu-layers", "-ngl"))
    put("sequences", (1, "defaults:koboldcpp"))
    put("unified", (False, "defaults:koboldcpp"))
    quant = flags.number("--quantkv")
    if quant is not None and quant[0] in _QUANTS:
        put("type_k", (_QUANTS[quant[0]], quant[1]))
        put("type_v", (_QUANTS[quant[0]], quant[1]))
    workload.windows = flags.has("--useswa")
    if not flags.has("--flashattention", "-fa"):
        put("flash_attention", (False, "defaults:koboldcpp"))
    put("ubatch", flags.number("--blasbatchsize", "--batchsize"))
    put("ubatch", (512, "defaults:koboldcpp"))
    put("port", flags.number("--port"))
    workload.default_port = DEFAULT_PORT
    _read_placement(workload, flags)
    return workload


def _read_placement(workload: Workload, flags: Flags) -> None:
    """As `gpttype_adapter.cpp` hands it on to llama.cpp."""
    shares = flags.several("--tensor-split", "--tensorsplit")
    workload.put("tensor_split", (",".join(shares), "cmdline") if shares else None)
    backend = [word.lower() for word in flags.several("--usecublas", "--usecuda", "--usehipblas")]
    if "lowvram" in backend or flags.has("--lowvram"):
        workload.put("kv_offload", (False, "cmdline"))
    if "rowsplit" in backend:
        workload.put("split_mode", ("row", "cmdline"))
    for value in flags.several("--overridetensors", "--override-tensor", "-ot")[:1]:
        workload.overrides.append(("pattern", value))
    if flags.has("--moecpu"):
        layers = flags.several("--moecpu")
        workload.overrides.append(("experts", layers[0] if layers else "all"))


def ask(api: Api, workload: Workload) -> None:
    from gpusnap.llm.probe import positive

    value = positive(api.json("/api/extra/true_max_context_length").get("value"))
    if value is not None:
        workload.api["context"] = value
        workload.put("context", (value, "api./api/extra/true_max_context_length"))
    version = api.json("/api/extra/version").get("version")
    if isinstance(version, str):
        workload.api["build_info"] = version
