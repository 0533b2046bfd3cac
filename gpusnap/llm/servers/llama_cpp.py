"""llama.cpp: llama-server, llama-cli and its other tools, and what takes their flags (ik_llama.cpp, llamafile).

Flags and `LLAMA_ARG_*` as `common/arg.cpp` reads them, b9400. Defaults as of then: `-np` auto, which is four slots
in one unified pool; `-c` the model's whole context, which `--fit` (on) may reduce, and then nothing in the command
line tells; `-ngl` auto. API: only `/props` and `/v1/models`, without parameters: `/slots` wakes a sleeping server,
`/metrics` resets the averages of whoever else scrapes it, `/props?model=` loads a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.servers import llama_cpp_python
from gpusnap.llm.servers.llama_cpp_placing import VISIBLE, cache_type, read_drafting, read_placement
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "llama.cpp"
PATHS = ("/props", "/v1/models")
DEFAULT_PORT = 8080
AUTO_SLOTS = 4

_TOOLS = frozenset(
    {
        "llama-server", "llama-cli", "llama-completion", "llama-run", "llama-bench", "llama-perplexity",
        "llama-mtmd-cli", "llama-embedding", "llama-batched-bench", "llama-speculative", "llama-swap",
        "llama-tts", "llama-imatrix", "llama-parallel", "llamafile",
    }
)  # fmt: skip
# Builds before 2023-06 and local ones called them so, with a model argument of a llama.cpp kind.
_OLD_NAMES = frozenset({"server", "main"})


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name == llama_cpp_python.MODULE:
        return llama_cpp_python.read_settings(program, arguments)
    if not _is_llama_cpp(name, arguments):
        return None
    environ = program.environ("LLAMA_ARG_", "LLAMA_LOG_FILE", "MTMD_BACKEND_DEVICE")
    workload = read_flags(Workload(NAME), Flags(arguments, environ))
    workload.visible = program.environ(*VISIBLE)
    workload.settings_pid = program.pid
    is_server = name in ("llama-server", "server", "llamafile")
    workload.role = "server" if is_server else "cli"
    if is_server:
        workload.default_port = DEFAULT_PORT
        if _is_router(program, workload, Flags(arguments, environ)):
            workload.role = "router"  # no model of its own: its children load them
    return workload


def _is_router(program: Program, workload: Workload, flags: Flags) -> bool:
    if workload.model is not None or "hf_model" in workload.sources:
        return False
    if flags.text("--models-dir", "--models-preset") is not None:
        return True
    elsewhere = (
        (("-mu", "--model-url"), "LLAMA_ARG_MODEL_URL"),
        (("-dr", "--docker-repo"), "LLAMA_ARG_DOCKER_REPO"),
    )
    named = any(flags.text(*names, env=env) is not None for names, env in elsewhere)
    return program.environ_is_known and not named


def _is_llama_cpp(name: str, arguments: list[str]) -> bool:
    if name in _TOOLS or name.endswith(".llamafile"):
        return True
    return name in _OLD_NAMES and any(word.endswith(".gguf") for word in arguments)


def read_flags(workload: Workload, flags: Flags) -> Workload:
    """What llama-server's command line says; also ollama's runners and other programs that take its flags."""
    put = workload.put
    put("model", flags.text("-m", "--model", env="LLAMA_ARG_MODEL"))
    put("hf_model", flags.text("-hf", "-hfr", "--hf-repo", env="LLAMA_ARG_HF_REPO"))
    put("model_name", flags.text("-a", "--alias"))  # not LLAMA_ARG_ALIAS: the environment's values are not printed
    put("mmproj", flags.text("-mm", "--mmproj", env="LLAMA_ARG_MMPROJ"))
    auto = flags.switch(("--mmproj-auto",), ("--no-mmproj", "--no-mmproj-auto"), "LLAMA_ARG_MMPROJ_AUTO")
    workload.mmproj_auto = auto is None or auto[0]
    for lora in (flags.text("--lora"), flags.text("--lora-scaled")):
        if lora is not None:
            workload.lora += [part for part in lora[0].split(",") if part]
    put("port", flags.number("--port", env="LLAMA_ARG_PORT"))
    workload.runner_port = workload.port
    put("log_file", flags.text("--log-file", env="LLAMA_ARG_LOG_FILE"))
    _read_context(workload, flags)
    _read_slots(workload, flags)
    read_placement(workload, flags)
    read_drafting(workload, flags)
    return workload


def _read_context(workload: Workload, flags: Flags) -> None:
    context = flags.number("-c", "--ctx-size", env="LLAMA_ARG_CTX_SIZE")
    if context is not None and context[0] > 0:
        workload.put("context", context)
    put = workload.put
    put("type_k", cache_type(flags.text("-ctk", "--cache-type-k", env="LLAMA_ARG_CACHE_TYPE_K")))
    put("type_v", cache_type(flags.text("-ctv", "--cache-type-v", env="LLAMA_ARG_CACHE_TYPE_V")))
    put("swa_full", flags.switch(("--swa-full",), env="LLAMA_ARG_SWA_FULL"))
    flash = flags.text("-fa", "--flash-attn", env="LLAMA_ARG_FLASH_ATTN")
    if flash is not None and flash[0].lower() in ("off", "disabled", "0", "false"):
        put("flash_attention", (False, flash[1]))
    batch = flags.number("-b", "--batch-size", env="LLAMA_ARG_BATCH")
    ubatch = flags.number("-ub", "--ubatch-size", env="LLAMA_ARG_UBATCH")
    if ubatch is not None or (batch is not None and batch[0] < 512):
        value = min(one[0] for one in (ubatch or (512, ""), batch or (2048, "")))
        put("ubatch", (value, (ubatch or batch or (0, "cmdline"))[1]))


def _read_slots(workload: Workload, flags: Flags) -> None:
    slots = flags.number("-np", "--parallel", env="LLAMA_ARG_N_PARALLEL")
    if slots is None or slots[0] <= 0:
        return  # with automatic slots the pool is one, whatever -no-kvu says
    workload.put("sequences", slots)
    unified = flags.switch(("-kvu", "--kv-unified"), ("-no-kvu", "--no-kv-unified"), "LLAMA_ARG_KV_UNIFIED")
    workload.put("unified", unified)
    workload.put("unified", (False, workload.sources["sequences"]))  # -np N switches it off


def ask(api: Api, workload: Workload) -> None:
    from gpusnap.llm.probe import positive, whole

    props = api.json("/props")
    if props.get("role") == "router":
        workload.role = "router"
        return
    settings = props.get("default_generation_settings")
    slot = positive(settings.get("n_ctx")) if isinstance(settings, dict) else None
    slots = positive(props.get("total_slots"))
    if slots is not None:
        take_slots(workload, slots, slot)
    for key in ("build_info", "is_sleeping", "model_ftype", "model_path"):
        if isinstance(props.get(key), str | bool):
            workload.api[key] = props[key]
    models = api.json("/v1/models").get("data")
    meta = models[0].get("meta") if isinstance(models, list) and models and isinstance(models[0], dict) else None
    if isinstance(meta, dict):
        for key in ("n_params", "size", "n_ctx_train"):
            value = whole(meta.get(key))
            if value is not None:
                workload.api[key] = value


def take_slots(workload: Workload, slots: int, slot_context: int | None) -> None:
    """A slot's context is not the pool's: with one pool for all (`-kvu`, or no `-np`) each slot may use all of it,
    capped to what the model was trained for; else it is the pool's share of each slot.
    """
    workload.api["total_slots"] = slots
    if slot_context is not None:
        workload.api["slot_context"] = slot_context
    if "sequences" not in workload.sources:
        # Nobody said -np: four slots are the automatic choice, which comes with one pool; others an older build's.
        workload.put("sequences", (slots, "api./props"))
        workload.put("unified", (slots == AUTO_SLOTS, "api./props"))
    if "context" not in workload.sources and slot_context is not None:
        total = slot_context if workload.unified else slot_context * (workload.sequences or slots)
        workload.put("context", (total, "api./props"))
