"""Which GPU runtimes a process has loaded, from the names of the files it has mapped.

A loaded library is evidence, no proof of use: merely loading Vulkan is normal for a desktop program. Static
programs (llama.cpp built so, koboldcpp, llamafile) map the driver's `libcuda.so.1` alone. A PyTorch process has
thousands of mappings of a few hundred files, so the whole text is cut by one expression and each file looked at
once.
"""

from __future__ import annotations

import re

# In the order in which the document lists them: APIs first, then frameworks.
RUNTIMES = (
    "cuda",
    "rocm",
    "vulkan",
    "opengl",
    "opencl",
    "level-zero",
    "sycl",
    "metal",
    "cann",
    "d3d12",
    "musa",
    "ggml",
    "onnxruntime",
    "tensorrt",
    "openvino",
    "pytorch",
    "tensorflow",
    "jax",
    "paddle",
    "nccl",
)

# Library name up to `.so` -> runtime.
_NAMES = {
    b"libcuda": "cuda",
    b"libcudart": "cuda",
    b"libcublas": "cuda",
    b"libcublasLt": "cuda",
    b"libnccl": "nccl",
    b"librccl": "nccl",
    b"libamdhip64": "rocm",
    b"libhsa-runtime64": "rocm",
    b"librocblas": "rocm",
    b"libhipblas": "rocm",
    b"libhipblaslt": "rocm",
    b"libMIOpen": "rocm",
    b"libvulkan": "vulkan",
    b"libvulkan_radeon": "vulkan",
    b"libvulkan_intel": "vulkan",
    b"libvulkan_intel_hasvk": "vulkan",
    b"libvulkan_nouveau": "vulkan",
    b"libvulkan_lvp": "vulkan",
    b"libGL": "opengl",
    b"libGLX_nvidia": "opengl",
    b"libEGL": "opengl",
    b"libEGL_nvidia": "opengl",
    b"libEGL_mesa": "opengl",
    b"libGLX_mesa": "opengl",
    b"libGLESv2": "opengl",
    b"libOpenCL": "opencl",
    b"libnvidia-opencl": "opencl",
    b"libamdocl64": "opencl",
    b"libigdrcl": "opencl",
    b"libRusticlOpenCL": "opencl",
    b"libze_loader": "level-zero",
    b"libze_intel_gpu": "level-zero",
    b"libsycl": "sycl",
    b"libur_loader": "sycl",
    b"libpi_level_zero": "sycl",
    b"libascendcl": "cann",
    b"libacl_op_compiler": "cann",
    b"libtorch_npu": "cann",
    b"libd3d12": "d3d12",
    b"libd3d12core": "d3d12",
    b"libmusa": "musa",
    b"libmusart": "musa",
    b"libllama": "ggml",
    b"libmtmd": "ggml",
    b"koboldcpp_cublas": "ggml",
    b"koboldcpp_default": "ggml",
    b"koboldcpp_vulkan": "ggml",
    b"koboldcpp_hipblas": "ggml",
    b"libonnxruntime": "onnxruntime",
    b"libonnxruntime_providers_cuda": "onnxruntime",
    b"libonnxruntime_providers_tensorrt": "onnxruntime",
    b"libonnxruntime_providers_rocm": "onnxruntime",
    b"libtensorrt_llm": "tensorrt",
    b"libtorch_cuda": "pytorch",
    b"libtorch_hip": "pytorch",
    b"libtorch_cpu": "pytorch",
    b"libtorch_xpu": "pytorch",
    b"libc10_cuda": "pytorch",
    b"libtensorflow_framework": "tensorflow",
    b"libtensorflow_cc": "tensorflow",
    b"xla_cuda_plugin": "jax",
    b"libjax_common": "jax",
    b"libpaddle": "paddle",
}
# The same for families of many files; ggml's backends name the API below them as well.
_FAMILIES = (
    (b"libggml", "ggml"),
    (b"libcudnn", "cuda"),
    (b"libnvinfer", "tensorrt"),
    (b"libopenvino", "openvino"),
    (b"onnxruntime_pybind11_state", "onnxruntime"),  # `....cpython-311-x86_64-linux-gnu.so`
    (b"_pywrap_tensorflow_internal", "tensorflow"),
    (b"xla_extension", "jax"),
)
_FAMILY_STARTS = tuple(start for start, _ in _FAMILIES)
_GGML_BACKENDS = {
    b"libggml-cuda": "cuda",
    b"libggml-hip": "rocm",
    b"libggml-vulkan": "vulkan",
    b"libggml-sycl": "sycl",
    b"libggml-opencl": "opencl",
    b"libggml-cann": "cann",
    b"libggml-musa": "musa",
}
# `addr perms offset dev inode      /path`; the fields before hold no slash.
_PATHS = re.compile(rb" (/[^\n]+)")


def mapped_paths(maps: bytes) -> set[bytes]:
    """Every file of `/proc/PID/maps`, each once; a deleted one still ends in ` (deleted)`."""
    return set(_PATHS.findall(maps))


def loaded_runtimes(paths: set[bytes]) -> list[str]:
    """The runtimes whose libraries are among the mapped files."""
    stems = {path[path.rfind(b"/") + 1 :].split(b".so", 1)[0] for path in paths if b".so" in path}
    found = {_NAMES[stem] for stem in _NAMES.keys() & stems}
    for stem in stems:
        if stem.startswith(_FAMILY_STARTS):
            found.add(next(runtime for start, runtime in _FAMILIES if stem.startswith(start)))
            if stem in _GGML_BACKENDS:
                found.add(_GGML_BACKENDS[stem])
    return [runtime for runtime in RUNTIMES if runtime in found]
