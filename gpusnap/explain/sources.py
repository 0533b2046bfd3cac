"""Where numbers come from, in words, and the six layers behind everything that gpusnap can know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.reading import reason_of
from gpusnap.render.reasons import in_words

if TYPE_CHECKING:
    from gpusnap.model import Figure

# Prefix of a provenance's source -> (layer, words).
_SOURCES = (
    ("nvml", 1, "NVIDIA's driver library (NVML)"),
    ("npu-smi", 1, "Huawei's driver tool (npu-smi)"),
    ("dcmi", 1, "Huawei's driver library (DCMI)"),
    ("ioreg", 1, "Apple's driver registry (ioreg)"),
    ("ioreport", 1, "Apple's energy counters (IOReport)"),
    ("pdh", 1, "Windows' performance counters"),
    ("dxgi", 1, "Windows' graphics kernel"),
    ("dxcore", 1, "Windows' graphics kernel"),
    ("task_vm_info", 2, "the Mac kernel's ledger of the process"),
    ("sysctl", 2, "the Mac kernel (sysctl)"),
    ("psutil", 2, "the system's process table (psutil)"),
    ("fdinfo", 2, "the kernel's /proc/PID/fdinfo"),
    ("kfd", 2, "the kernel's compute driver (KFD)"),
    ("sysfs", 2, "the kernel's sysfs"),
    ("hwmon", 2, "the kernel's sensors"),
    ("i915", 2, "the kernel's i915 driver"),
    ("xe", 2, "the kernel's xe driver"),
    ("amdgpu", 2, "the kernel's amdgpu driver"),
    ("proc", 2, "the kernel's /proc"),
    ("cgroup", 2, "the process's cgroup"),
    ("pci", 2, "the PCI bus"),
    ("maps", 3, "libraries mapped by the process"),
    ("libraries", 3, "libraries mapped by the process"),
    ("program", 3, "the program's name and path"),
    ("gguf", 5, "the model file's header"),
    ("safetensors", 5, "the model file's header"),
    ("config", 5, "the model's configuration file"),
    ("cmdline", 4, "the command line"),
    ("environ", 4, "the program's environment"),
    ("file", 4, "the model file that the process has mapped"),
    ("stat", 4, "the model file's size"),
    ("log", 5, "the server's own log"),
    ("api", 5, "the server's local interface"),
    ("/", 5, "the server's local interface"),
)
LAYERS = (
    "the driver: memory, load and processes as the vendor's own library counts them",
    "kernel counters: fdinfo, sysfs, cgroups, /proc",
    "loaded libraries: what a process is (CUDA, ROCm, PyTorch, ggml ..)",
    "model files, by what the process has mapped and by its command line",
    "headers of model files, server logs and local interfaces: a model's own split",
    "what no running system can tell: which tensor lies where, what an allocator keeps free inside, past peaks",
)
_WITHIN_REACH = frozenset(
    {
        *("no-permission", "other-pid-namespace", "device-lost", "device-suspended", "device-busy", "timeout"),
        *("needs-two-samples", "not-requested", "not-probed", "failed", "exited", "partitioned"),
    }
)
_KINDS = {
    "measured": "measured",
    "reported": "reported by the program itself",
    "computed": "computed",
    "inferred": "inferred",
    "estimated": "an estimate",
}


def layer_of(provenance: str) -> int:
    """1 to 6; sums of measured figures stand with the driver's layer, nulls with what can't be told."""
    kind, _, source = provenance.partition(":")
    if kind == "null":
        return 6
    for prefix, layer, _words in _SOURCES:
        if source.startswith(prefix):
            return layer
    return 1 if kind in ("measured", "computed") else 3


def says(provenance: str) -> str:
    """`measured: NVIDIA's driver library (NVML), MemoryInfo_v2`."""
    kind, _, source = provenance.partition(":")
    if kind == "null":
        return f"not known: {in_words(provenance)}"
    said = _KINDS.get(kind, kind)
    for prefix, _layer, words in _SOURCES:
        if source.startswith(prefix):
            detail = source[len(prefix) :]
            # An option of a command line keeps its dash: "gguf -ngl 99".
            detail = detail.lstrip() if detail.startswith(" ") else detail.lstrip(".:+-")
            return f"{said}: {words}" + (f", {detail}" if detail else "")
    return f"{said}: {source}" if source else said


def by_layer(figures: list[Figure]) -> list[tuple[str, list[Figure]]]:
    """Each layer's title with the figures that rest on it."""
    told = [figure for figure in figures if not _is_within_reach(figure)]
    return [
        (title, [figure for figure in told if layer_of(figure["provenance"]) == number])
        for number, title in enumerate(LAYERS, start=1)
    ]


def within_reach(figures: list[Figure]) -> list[Figure]:
    """Figures that are unknown here and now only: no layer lacks them."""
    return [figure for figure in figures if _is_within_reach(figure)]


def _is_within_reach(figure: Figure) -> bool:
    return reason_of(figure["provenance"]) in _WITHIN_REACH
