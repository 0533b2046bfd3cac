"""`python -m llama_cpp.server`: llama.cpp behind Python, with names and defaults of its own.

As `llama_cpp/server/settings.py` of llama-cpp-python 0.3.36 has them: flags are the fields' names, variables
the same in capitals, a configuration file stands for all. Without `--n_gpu_layers` no layer is on the card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.servers.llama_cpp_placing import ALL_LAYERS, VISIBLE
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.program import Program

MODULE = "llama_cpp.server"
NAME = "llama-cpp-python"
DEFAULT_PORT = 8000
_DEFAULT = f"defaults:{NAME}"
_FIELDS = (
    *("model", "model_alias", "n_gpu_layers", "split_mode", "main_gpu", "tensor_split", "rpc_servers", "n_ctx"),
    *("n_batch", "n_ubatch", "offload_kqv", "flash_attn", "lora_path", "clip_model_path", "type_k", "type_v"),
    *("port", "config_file"),
)
# enum ggml_type and enum llama_split_mode (ggml.h, llama.h), as the integers that these fields take.
_CACHE_TYPES = {
    0: "f32",
    1: "f16",
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    20: "iq4_nl",
    30: "bf16",
}
_SPLIT_MODES = {0: "none", 1: "layer", 2: "row"}


def read_settings(program: Program, arguments: list[str]) -> Workload:
    flags = Flags(arguments, program.environ(*(field.upper() for field in _FIELDS)))
    workload = Workload(NAME)
    workload.settings_pid = program.pid
    workload.default_port = DEFAULT_PORT
    if _text(flags, "config_file") is not None:  # its words are not read, so nothing is known
        return workload
    put = workload.put
    put("model", _text(flags, "model"))
    put("mmproj", _text(flags, "clip_model_path"))
    lora = _text(flags, "lora_path")
    workload.lora = [] if lora is None else [lora[0]]
    put("port", _number(flags, "port"))
    _read_context(workload, flags)
    _read_placement(workload, flags)
    workload.visible = program.environ(*VISIBLE)
    return workload


def _read_context(workload: Workload, flags: Flags) -> None:
    put = workload.put
    context = _number(flags, "n_ctx") or (2048, _DEFAULT)
    if context[0] > 0:
        put("context", context)
    put("sequences", (1, _DEFAULT))
    put("unified", (False, _DEFAULT))
    for setting in ("type_k", "type_v"):
        put(setting, _named(_number(flags, setting), _CACHE_TYPES))
    put("flash_attention", _switch(flags, "flash_attn") or (False, _DEFAULT))
    put("ubatch", _number(flags, "n_ubatch"))


def _read_placement(workload: Workload, flags: Flags) -> None:
    put = workload.put
    layers = _number(flags, "n_gpu_layers") or (0, _DEFAULT)
    put("gpu_layers", (ALL_LAYERS, layers[1]) if layers[0] < 0 else layers)
    put("split_mode", _named(_number(flags, "split_mode"), _SPLIT_MODES))
    put("main_gpu", _number(flags, "main_gpu"))
    shares = flags.several("--tensor-split")
    put("tensor_split", (",".join(shares), "cmdline") if shares else None)
    put("kv_offload", _switch(flags, "offload_kqv"))
    workload.remote_devices = _text(flags, "rpc_servers") is not None


def _named(found: tuple[int, str] | None, names: dict[int, str]) -> tuple[str, str] | None:
    return None if found is None or found[0] not in names else (names[found[0]], found[1])


def _text(flags: Flags, field: str) -> tuple[str, str] | None:
    return flags.text(_flag(field), env=field.upper())


def _number(flags: Flags, field: str) -> tuple[int, str] | None:
    return flags.number(_flag(field), env=field.upper())


def _switch(flags: Flags, field: str) -> tuple[bool, str] | None:
    return flags.switch((_flag(field),), env=field.upper())


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")  # as Flags keeps them; argparse takes the underscores only
