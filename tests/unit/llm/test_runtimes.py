"""Runtimes by the libraries that a process has mapped: names as the packages ship them."""

from __future__ import annotations

import time

import pytest

from gpusnap.llm.runtimes import loaded_runtimes, mapped_paths


def maps(*paths: str) -> bytes:
    rows = [f"7f{i:010x}-7f{i + 1:010x} r-xp 00000000 fe:00 {i + 10}   {path}\n" for i, path in enumerate(paths)]
    rows += ["7ffc0000-7ffd0000 rw-p 00000000 00:00 0      [stack]\n", "10000-20000 rw-p 00000000 00:00 0 \n"]
    return "".join(rows).encode()


@pytest.mark.parametrize(
    ("paths", "runtimes"),
    [
        (["/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14"], ["cuda"]),
        (["/usr/lib/wsl/lib/libcuda.so.1.1", "/usr/lib/wsl/lib/libd3d12.so"], ["cuda", "d3d12"]),
        (["/opt/v/nvidia/cudnn/lib/libcudnn_ops_infer.so.8", "/opt/v/libcublasLt.so.12"], ["cuda"]),
        (["/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libhsa-runtime64.so.1.13"], ["rocm"]),
        (["/usr/lib/ollama/libggml-base.so", "/usr/lib/ollama/cuda_v12/libggml-cuda.so"], ["cuda", "ggml"]),
        (["/b/libggml-base.so.0.25.3", "/b/libggml-cpu.so.0.25.3", "/b/libllama.so.0.5.0"], ["ggml"]),
        (["/b/libggml-vulkan.so", "/usr/lib/libvulkan.so.1.3.275"], ["vulkan", "ggml"]),
        (["/v/torch/lib/libtorch_cuda.so", "/v/torch/lib/libc10_cuda.so"], ["pytorch"]),
        (["/v/onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so"], ["onnxruntime"]),
        (["/v/jaxlib/xla_extension.cpython-312-x86_64-linux-gnu.so", "/v/jax/xla_cuda_plugin.so"], ["jax"]),
        (["/v/tensorflow/python/_pywrap_tensorflow_internal.so"], ["tensorflow"]),
        (["/v/tensorrt_libs/libnvinfer.so.10", "/v/libnvinfer_plugin.so.10"], ["tensorrt"]),
        (["/usr/lib/libze_loader.so.1.16", "/opt/intel/libsycl.so.7"], ["level-zero", "sycl"]),
        (["/opt/ov/libopenvino_intel_gpu_plugin.so", "/usr/lib/libOpenCL.so.1.0.0"], ["opencl", "openvino"]),
        (["/usr/local/Ascend/lib64/libascendcl.so"], ["cann"]),
        (["/usr/lib/libGL.so.1.7.0", "/usr/lib/libEGL_mesa.so.0"], ["opengl"]),
        (["/opt/koboldcpp/koboldcpp_cublas.so", "/usr/lib/libcuda.so.1"], ["cuda", "ggml"]),
        (["/v/nvidia/nccl/lib/libnccl.so.2 (deleted)"], ["nccl"]),
        (["/home/u/libcudasomething.so", "/home/u/notlibcuda.so.1", "/x/libcuda.so/readme", "/m.gguf"], []),
        ([], []),
    ],
)  # fmt: skip
def test_libraries_tell_the_runtime(paths: list[str], runtimes: list[str]) -> None:
    assert loaded_runtimes(mapped_paths(maps(*paths))) == runtimes


def test_every_file_is_taken_once_with_its_blanks_and_its_end() -> None:
    found = mapped_paths(maps("/models/my model.gguf", "/models/my model.gguf", "/gone.gguf (deleted)"))
    assert found == {b"/models/my model.gguf", b"/gone.gguf (deleted)"}


def test_four_thousand_mappings_take_a_few_milliseconds() -> None:
    text = maps(*(f"/opt/venv/lib/python3.11/torch/lib/lib{n % 600}.so.{n % 7}" for n in range(4000)))
    took = []
    for _ in range(5):
        began = time.process_time()
        loaded_runtimes(mapped_paths(text))
        took.append(time.process_time() - began)
    assert min(took) < 0.010
