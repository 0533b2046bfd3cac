"""Servers by their command lines, titles and parents; settings from flags and environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusnap.llm.program import Program
from gpusnap.llm.servers import may_be_server, recognise
from gpusnap.llm.servers.llama_cpp import take_slots
from tests.unit.llm.machine import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from gpusnap.llm.workload import Workload

SPAWNED = ["/opt/v/bin/python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"]


def workload_of(
    folder: Path, pid: int = 10, *processes: tuple[int, int, list[str]], **more: object
) -> Workload | None:
    machine = Machine(folder)
    for number, parent, words in processes:
        machine.process(number, words, ppid=parent, **(more if number == pid else {}))  # type: ignore[arg-type]
    found = recognise(Program(machine.host(), pid))
    return found[1] if found is not None else None


@pytest.mark.parametrize(
    ("words", "server", "role"),
    [
        (["/opt/llama.cpp/build/bin/llama-server", "-m", "a.gguf"], "llama.cpp", "server"),
        (["llama-cli", "-m", "a.gguf", "-p", "hi"], "llama.cpp", "cli"),
        (["./server", "-m", "a.gguf"], "llama.cpp", "server"),
        (["llama-server", "--models-dir", "/models"], "llama.cpp", "router"),
        (["/models/gemma.llamafile", "--server"], "llama.cpp", "cli"),
        (["python3", "-m", "llama_cpp.server", "--model", "a.gguf"], "llama-cpp-python", "server"),
        (["/usr/local/bin/ollama", "serve"], "ollama", "front"),
        (["/usr/bin/ollama", "runner", "--model", "/m/blobs/sha256-ab", "--port", "4"], "ollama", "runner"),
        (["/usr/lib/ollama/llama-server", "--model", "/m/blobs/sha256-ab", "--port", "4"], "ollama", "runner"),
        (["/opt/v/bin/python3", "/opt/v/bin/vllm", "serve", "Qwen/Qwen3-8B"], "vllm", "server"),
        (["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "a/b"], "vllm", "server"),
        (["VLLM::EngineCore"], "vllm", "worker"),
        (["VLLM::Worker_TP0"], "vllm", "worker"),
        (["python3", "-m", "sglang.launch_server", "--model-path", "a/b"], "sglang", "server"),
        (["sglang::scheduler_TP1"], "sglang", "worker"),
        (["/opt/koboldcpp-linux-x64", "--model", "a.gguf"], "koboldcpp", "server"),
        (["python3", "/opt/koboldcpp/koboldcpp.py", "a.gguf"], "koboldcpp", "server"),
        (["/opt/lm-studio/lm-studio", "--type=utility"], "lmstudio", "server"),
        (["/home/alice/.lmstudio/bin/llmster"], "lmstudio", "server"),
        (["python3", "/srv/ComfyUI/main.py", "--listen"], "comfyui", "server"),
        (["/opt/conda/bin/python3", "/opt/conda/bin/text-generation-server", "serve", "a/b"], "tgi", "worker"),
        (["python3", "/srv/tabbyAPI/main.py"], "tabbyapi", "server"),
        (["python3", "/srv/text-generation-webui/server.py", "--model", "a"], "text-generation-webui", "server"),
    ],
)  # fmt: skip
def test_a_server_is_known_by_its_command_line(tmp_path: Path, words: list[str], server: str, role: str) -> None:
    workload = workload_of(tmp_path, 10, (10, 1, words))
    assert workload is not None
    assert (workload.server, workload.role) == (server, role)


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/bin/firefox", "-contentproc", "llama-server"],
        ["python3", "train.py", "--model", "vllm"],
        ["python3", "/home/alice/main.py"],  # a main.py of something else
        ["python3", "server.py"],
        ["./server", "--port", "80"],
        ["/usr/bin/less", "ollama.log"],
        ["nvidia-smi"],
        ["vllm-bench-plotter"],
        ["grep", "llama-server"],
        ["sh", "-c", "llama-server -m a.gguf"],
        ["VLLMish"],
        SPAWNED,
        [""],
    ],
)  # fmt: skip
def test_a_near_miss_is_no_server(tmp_path: Path, words: list[str]) -> None:
    assert workload_of(tmp_path, 10, (10, 1, words)) is None


@pytest.mark.parametrize(
    "program", ["/srv/main/.venv/bin/python3", "/home/ann/server/bin/python3", r"C:\Main\server\python.exe"]
)
def test_a_folders_plain_name_makes_no_server(program: str) -> None:
    """A checkout in a folder `main` once had every Python process looked at by ten server files."""
    assert not may_be_server([program, "-c", "input()"])


def test_comfyui_is_known_by_its_folder(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, 10, (10, 1, ["python3", "main.py"]), cwd="/home/alice/ComfyUI")
    assert workload is not None
    assert workload.server == "comfyui"


def test_a_vllm_worker_has_its_parents_settings(tmp_path: Path) -> None:
    serve = ["/v/bin/python3", "/v/bin/vllm", "serve", "Qwen/Qwen3-32B", "--port", "8100", "-tp", "2"]
    serve += ["--gpu-memory-utilization", "0.85", "--max-num-seqs", "64"]
    workload = workload_of(
        tmp_path, 12, (10, 1, serve), (11, 10, ["VLLM::EngineCore"]), (12, 11, ["VLLM::Worker_TP1"])
    )
    assert workload is not None
    assert (workload.role, workload.rank, workload.hf_model) == ("worker", "Worker_TP1", "Qwen/Qwen3-32B")
    assert (workload.port, workload.fraction, workload.sequences, workload.ranks) == (8100, 0.85, 64, 2)
    assert workload.sources["fraction"] == "cmdline"


def test_an_old_vllm_worker_is_known_by_its_parent(tmp_path: Path) -> None:
    serve = ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "facebook/opt-125m"]
    workload = workload_of(tmp_path, 11, (10, 1, serve), (11, 10, SPAWNED))
    assert workload is not None
    assert (workload.hf_model, workload.fraction, workload.sources["fraction"]) == (
        "facebook/opt-125m", 0.9, "defaults:vllm",
    )  # fmt: skip


def test_an_orphaned_vllm_worker_is_still_one(tmp_path: Path) -> None:
    """vllm#55510: the parent is gone; comm is cut to 15 characters."""
    workload = workload_of(tmp_path, 12, (12, 1, ["VLLM::Worker_TP0"]))
    assert workload is not None
    assert (workload.server, workload.hf_model, workload.fraction) == ("vllm", None, None)


def test_llama_servers_flags(tmp_path: Path) -> None:
    words = [
        "llama-server",
        "-m",
        "/m/a.gguf",
        "-c",
        "8192",
        "-np",
        "2",
        "-ctk",
        "q8_0",
        "-ctv",
        "q4_0",
        "-ngl",
        "20",
    ]
    words += [
        "-fa",
        "on",
        "-ub",
        "1024",
        "-md",
        "/m/d.gguf",
        "--mmproj",
        "/m/p.gguf",
        "--lora",
        "/m/l1.gguf,/m/l2.gguf",
    ]
    words += ["--no-kv-offload", "--port", "9090", "--ctx-size", "16384", "--n_cpu_moe", "4", "--swa-full"]
    workload = workload_of(tmp_path, 10, (10, 1, words))
    assert workload is not None
    assert (workload.model, workload.draft, workload.mmproj) == ("/m/a.gguf", "/m/d.gguf", "/m/p.gguf")
    assert workload.lora == ["/m/l1.gguf", "/m/l2.gguf"]
    assert (workload.sequences, workload.unified, workload.gpu_layers) == (2, False, 20)
    assert (workload.type_k, workload.type_v, workload.ubatch) == ("q8_0", "q4_0", 1024)
    assert (workload.kv_offload, workload.port, workload.swa_full) == (False, 9090, True)
    assert workload.overrides == [("experts", "4")]


def test_automatic_slots_have_one_pool_whatever_else_is_said(tmp_path: Path) -> None:
    """llama-server b9400: "n_parallel is set to auto, using n_parallel = 4 and kv_unified = true"."""
    workload = workload_of(tmp_path, 10, (10, 1, ["llama-server", "-m", "a.gguf", "-no-kvu", "-np", "-1"]))
    assert workload is not None
    take_slots(workload, 4, 32768)
    assert (workload.sequences, workload.unified) == (4, True)


def test_llama_cpp_pythons_server_has_names_and_defaults_of_its_own(tmp_path: Path) -> None:
    """As its settings.py of 0.3.36 has them: without `--n_gpu_layers` the card holds no layer, 2,048 tokens."""
    plain = workload_of(tmp_path, 10, (10, 1, ["python3", "-m", "llama_cpp.server", "--model", "/m/a.gguf"]))
    assert plain is not None
    assert (plain.model, plain.gpu_layers, plain.context, plain.sequences) == ("/m/a.gguf", 0, 2048, 1)
    assert plain.sources["gpu_layers"] == "defaults:llama-cpp-python"
    words = "python3 -m llama_cpp.server --model /m/a.gguf --n_gpu_layers -1 --n_ctx 8192 --type_k 8 --type_v 2"
    words += " --tensor_split 3 1 --offload_kqv false --flash_attn true --main_gpu 1 --split_mode 1"
    (tmp_path / "told").mkdir()
    told = workload_of(tmp_path / "told", 10, (10, 1, words.split()))
    assert told is not None
    assert (told.gpu_layers, told.context, told.type_k, told.type_v) == (-2, 8192, "q8_0", "q4_0")
    assert (told.tensor_split, told.split_mode, told.main_gpu) == ("3,1", "layer", 1)
    assert (told.kv_offload, told.flash_attention) == (False, True)


def test_llama_cpp_pythons_environment_counts_and_its_configuration_file_hides_all(tmp_path: Path) -> None:
    words = ["python3", "-m", "llama_cpp.server"]
    environ = {"MODEL": "/m/e.gguf", "N_GPU_LAYERS": "20", "N_CTX": "4096"}
    told = workload_of(tmp_path, 10, (10, 1, words), environ=environ)
    assert told is not None
    assert (told.model, told.gpu_layers, told.context) == ("/m/e.gguf", 20, 4096)
    (tmp_path / "file").mkdir()
    hidden = workload_of(tmp_path / "file", 10, (10, 1, [*words, "--config_file", "c.json"]), environ=environ)
    assert hidden is not None
    assert (hidden.model, hidden.gpu_layers, hidden.context) == (None, None, None)


def test_the_command_line_overrules_the_environment(tmp_path: Path) -> None:
    environ = {
        "LLAMA_ARG_CTX_SIZE": "2048",
        "LLAMA_ARG_N_PARALLEL": "8",
        "LLAMA_ARG_CACHE_TYPE_K": "q8_0",
        "LLAMA_ARG_MODEL": "/m/e.gguf",
        "LLAMA_ARG_NO_KV_OFFLOAD": "1",
        "HF_TOKEN": "hf_secret",
        "LLAMA_API_KEY": "sk-secret",
    }
    words = ["llama-server", "-c", "4096"]
    workload = workload_of(tmp_path, 10, (10, 1, words), environ=environ)
    assert workload is not None
    assert (workload.context, workload.sequences, workload.type_k, workload.model) == (
        4096,
        8,
        "q8_0",
        "/m/e.gguf",
    )
    assert workload.kv_offload is False
    assert workload.sources["context"] == "cmdline"
    assert workload.sources["sequences"] == "environ"
    said = [str(getattr(workload, name, "")) for name in workload.__slots__]
    assert not any("secret" in text for text in said)


@pytest.mark.parametrize(
    ("flag", "layers"), [("99", 99), ("-1", -1), ("auto", -1), ("all", -2), ("0", 0), ("lots", None)]
)  # fmt: skip
def test_layers_on_the_card_are_a_number_or_a_word(tmp_path: Path, flag: str, layers: int | None) -> None:
    workload = workload_of(tmp_path, 10, (10, 1, ["llama-server", "-m", "a.gguf", "-ngl", flag]))
    assert workload is not None
    assert workload.gpu_layers == layers


def test_a_context_of_zero_is_the_models_and_not_known(tmp_path: Path) -> None:
    for words in (["llama-server", "-m", "a.gguf", "-c", "0"], ["llama-server", "-m", "a.gguf"]):
        folder = tmp_path / str(len(words))
        folder.mkdir()
        workload = workload_of(folder, 10, (10, 1, words))
        assert workload is not None
        assert workload.context is None


def test_ollamas_runner_of_either_kind(tmp_path: Path) -> None:
    blob = "/usr/share/ollama/.ollama/models/blobs/sha256-" + "ab" * 32
    environ = {"OLLAMA_HOST": "0.0.0.0:11500", "OLLAMA_KV_CACHE_TYPE": "q8_0"}
    new = ["/usr/lib/ollama/llama-server", "--model", blob, "--port", "40001", "-c", "81920", "-np", "10"]
    old = [
        "/usr/bin/ollama",
        "runner",
        "--model",
        blob,
        "--ctx-size",
        "81920",
        "--parallel",
        "10",
        "--port",
        "40001",
    ]
    for number, words in enumerate((new, old)):
        folder = tmp_path / str(number)
        folder.mkdir()
        workload = workload_of(folder, 11, (10, 1, ["ollama", "serve"]), (11, 10, words), environ=environ)
        assert workload is not None
        assert (workload.context, workload.sequences, workload.model) == (81920, 10, blob)
        assert (workload.port, workload.runner_port, workload.type_k) == (11500, 40001, "q8_0")
        assert workload.output_counts is (number == 0)


def test_koboldcpps_own_names(tmp_path: Path) -> None:
    words = ["koboldcpp", "--model", "/m/g.gguf", "--contextsize", "16384", "--gpulayers", "99", "--quantkv", "1"]
    workload = workload_of(tmp_path, 10, (10, 1, words))
    assert workload is not None
    assert (workload.context, workload.gpu_layers, workload.type_k) == (16384, 99, "q8_0")
    assert (workload.windows, workload.flash_attention) == (False, False)


@pytest.mark.parametrize("word", ["\u00b2", "9" * 5000, "-\u00b2", "--", "", "1.5"])
def test_a_number_of_layers_that_is_none_is_not_taken(tmp_path: Path, word: str) -> None:
    """Whoever may start a process may write anything behind its flags: no snapshot fails of it."""
    workload = workload_of(tmp_path, 10, (10, 1, ["llama-server", "-m", "a.gguf", "-ngl", word]))
    assert workload is not None
    assert workload.gpu_layers is None
