"""llama.cpp's flags that say what is on which card: layers, devices, tensors by hand, the draft model's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.kv.settings import CACHE_TYPES, UNKNOWN_TYPE
from gpusnap.text import whole_number

if TYPE_CHECKING:
    from gpusnap.llm.flags import Flags
    from gpusnap.llm.workload import Drafting, Workload

# All layers, as `cpu_experts` and its kin take it.
EVERY_LAYER = "all"
ALL_LAYERS = -2
_WORDS = {"all": ALL_LAYERS, "auto": -1}
# Which cards a program may see, and in which order: the environment that the runtimes read.
VISIBLE = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GGML_VK_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "ZE_AFFINITY_MASK",
)


def cache_type(found: tuple[str, str] | None) -> tuple[str, str] | None:
    """A type that is none and comes from the environment is not repeated: its values are not printed."""
    if found is not None and found[1] == "environ" and found[0].lower() not in CACHE_TYPES:
        return UNKNOWN_TYPE, found[1]
    return found


def read_placement(workload: Workload, flags: Flags) -> None:
    put = workload.put
    put("gpu_layers", _layers(flags, "-ngl", "--gpu-layers", "--n-gpu-layers", env="LLAMA_ARG_N_GPU_LAYERS"))
    put("split_mode", flags.text("-sm", "--split-mode", env="LLAMA_ARG_SPLIT_MODE"))
    put("tensor_split", flags.text("-ts", "--tensor-split", env="LLAMA_ARG_TENSOR_SPLIT"))
    put("main_gpu", flags.number("-mg", "--main-gpu", env="LLAMA_ARG_MAIN_GPU"))
    put("devices", flags.text("-dev", "--device", env="LLAMA_ARG_DEVICE"))
    workload.remote_devices = flags.text("--rpc", env="LLAMA_ARG_RPC") is not None
    kept = flags.switch(("-kvo", "--kv-offload"), ("-nkvo", "--no-kv-offload"), "LLAMA_ARG_KV_OFFLOAD")
    put("kv_offload", kept)
    projector = flags.switch(("--mmproj-offload",), ("--no-mmproj-offload",), "LLAMA_ARG_MMPROJ_OFFLOAD")
    put("mmproj_offload", projector)
    put("mmproj_device", flags.text("-mmdev", "--mmproj-device", env="MTMD_BACKEND_DEVICE"))
    workload.overrides = _overrides(flags)


def _layers(flags: Flags, *names: str, env: str = "") -> tuple[int, str] | None:
    found = flags.text(*names, env=env)
    if found is None:
        return None
    text = found[0].strip().lower()
    if text in _WORDS:
        return _WORDS[text], found[1]
    count = whole_number(text.removeprefix("-"))
    return None if count is None else (-count if text.startswith("-") else count, found[1])


def _overrides(flags: Flags) -> list[tuple[str, str]]:
    """The environment is read first; every occurrence counts, and the first that fits a tensor decides."""
    found = []
    for kind, env in (("pattern", "OVERRIDE_TENSOR"), ("experts", "N_CPU_MOE"), ("ffn", "N_CPU_FFN")):
        value = flags.text(env=f"LLAMA_ARG_{env}")
        if value is not None:
            found.append((kind, value[0]))
        if kind == "pattern" and flags.switch((), env="LLAMA_ARG_CPU_MOE") == (True, "environ"):
            found.append(("experts", EVERY_LAYER))
    return found + _given(
        flags,
        {"-ot": "pattern", "--override-tensor": "pattern", "-cmoe": "all", "--cpu-moe": "all"}
        | {"-ncmoe": "experts", "--n-cpu-moe": "experts", "-ncffn": "ffn", "--n-cpu-ffn": "ffn"},
    )


def _given(flags: Flags, kinds: dict[str, str]) -> list[tuple[str, str]]:
    found = []
    for name, value in flags.in_order(*kinds):
        kind = kinds[name]
        found.append(("experts", EVERY_LAYER) if kind == "all" else (kind, value or ""))
    return found


def read_drafting(workload: Workload, flags: Flags) -> None:
    drafting = workload.drafting
    workload.put(
        "draft", flags.text("-md", "--model-draft", "--spec-draft-model", env="LLAMA_ARG_SPEC_DRAFT_MODEL")
    )
    kinds = [value for _, value in flags.in_order("--spec-type") if value is not None]
    said = flags.text(env="LLAMA_ARG_SPEC_TYPE")
    kinds += [said[0]] if said is not None else []
    drafting.kinds = [kind for text in kinds for kind in text.split(",")]
    workload.drafts = flags.has("--mtp") or any("mtp" in kind for kind in drafting.kinds)
    repository = flags.text(
        "-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf", env="LLAMA_ARG_SPEC_DRAFT_HF_REPO"
    )
    drafting.repository = repository[0] if repository is not None else None
    _read_draft_sizes(drafting, flags)


def _read_draft_sizes(drafting: Drafting, flags: Flags) -> None:
    context = flags.number("-cd", "--ctx-size-draft", env="LLAMA_ARG_CTX_SIZE_DRAFT")
    drafting.context = context[0] if context is not None and context[0] > 0 else None
    depth = flags.number(
        *("--spec-draft-n-max", "--draft-max", "--draft", "--draft-n"), env="LLAMA_ARG_SPEC_DRAFT_N_MAX"
    )
    depth = depth or flags.number(env="LLAMA_ARG_DRAFT_MAX")
    drafting.depth = depth[0] if depth is not None and depth[0] >= 0 else None
    for name, short, word in (("type_k", "-ctkd", "k"), ("type_v", "-ctvd", "v")):
        env = f"LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_{word.upper()}"
        found = cache_type(flags.text(short, f"--cache-type-{word}-draft", f"--spec-draft-type-{word}", env=env))
        if found is not None:
            setattr(drafting, name, found[0].lower())
    layers = _layers(
        flags,
        *("-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl"),
        env="LLAMA_ARG_N_GPU_LAYERS_DRAFT",
    )
    drafting.gpu_layers = layers[0] if layers is not None else None
    device = flags.text("-devd", "--device-draft", "--spec-draft-device")
    drafting.device = device[0] if device is not None else None
    drafting.overrides = _given(
        flags,
        dict.fromkeys(("-otd", "--override-tensor-draft", "--spec-draft-override-tensor"), "pattern")
        | dict.fromkeys(("-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe"), "all")
        | dict.fromkeys(
            ("-ncmoed", "--n-cpu-moe-draft", "--spec-draft-n-cpu-moe", "--spec-draft-ncmoe"), "experts"
        ),
    )
