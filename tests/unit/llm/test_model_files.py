"""Model files of a process, however they are spelled; caches, blobs, containers; its logs."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from gpusnap.live import LiveHost
from gpusnap.llm import hf_cache, model_files, ollama_models
from gpusnap.llm.files import ProcessFiles
from gpusnap.llm.logs import sources
from gpusnap.llm.program import Program
from gpusnap.llm.workload import Workload
from tests.unit.llm.machine import GIB, MIB, Machine, row_of, sources_of
from tests.unit.llm.models import qwen3_06b
from tests.unit.llm.test_split_published import QWEN_LOG

if TYPE_CHECKING:
    from pathlib import Path


def workload(model: str | None = None, **more: str) -> Workload:
    found = Workload("llama.cpp")
    found.put("model", (model, "cmdline") if model else None)
    for name, value in more.items():
        found.put(name, (value, "cmdline"))
    return found


def live(folder: Path) -> ProcessFiles:
    return ProcessFiles(LiveHost(), os.getpid(), str(folder))


def test_one_file_counts_once_however_it_is_spelled(tmp_path: Path) -> None:
    """A relative path, a link to it, its real path in the mappings, a second link: one inode."""
    (tmp_path / "store").mkdir()
    real = tmp_path / "store" / "a.gguf"
    real.write_bytes(b"x" * 10)
    (tmp_path / "link.gguf").symlink_to(real)
    os.link(real, tmp_path / "hard.gguf")
    mapped = [bytes(real), bytes(tmp_path / "hard.gguf")]
    found = model_files.find(live(tmp_path), mapped, workload("./store/../link.gguf"))
    assert [(file.role, file.size) for file in found] == [("model", 10)]
    assert found[0].how == "mapped"


def test_two_models_of_one_name_are_two(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.gguf").write_bytes(folder.encode() * 10)
    found = model_files.find(live(tmp_path / "a"), [bytes(tmp_path / "b" / "m.gguf")], workload("m.gguf"))
    assert [(file.role, file.path) for file in found] == [
        ("model", str(tmp_path / "a" / "m.gguf")),
        ("", str(tmp_path / "b" / "m.gguf")),
    ]


def test_without_a_flag_the_largest_file_is_the_model(tmp_path: Path) -> None:
    sizes = {"draft.gguf": 10, "big.gguf": 1000, "mmproj-big.gguf": 5000}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    found = model_files.find(live(tmp_path), [bytes(tmp_path / name) for name in sizes], workload())
    assert {file.path.rpartition("/")[2]: file.role for file in found} == {
        "big.gguf": "model", "draft.gguf": "", "mmproj-big.gguf": "mmproj",
    }  # fmt: skip


def test_a_deleted_file_is_read_through_its_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "gone.gguf"
    path.write_bytes(b"GGUF")
    with path.open("rb"):
        path.unlink()
        found = model_files.find(live(tmp_path), [bytes(path) + b" (deleted)"], workload(str(path)))
        (model,) = [file for file in found if file.role == "model"]
        assert model.deleted
        assert model.tree is not None
        assert model.tree.read(model.name) == b"GGUF"


def test_a_new_file_under_the_old_name_is_not_the_one_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"old")
    with path.open("rb"):
        path.unlink()
        path.write_bytes(b"a new one")
        found = model_files.find(live(tmp_path), [bytes(path) + b" (deleted)"], workload(str(path)))
        (model,) = [file for file in found if file.role == "model"]
        assert (model.deleted, model.size) == (True, 3)


@pytest.mark.parametrize(
    ("path", "cwd", "absolute"),
    [
        ("/m/a.gguf", "/x", "/m/a.gguf"),
        ("a.gguf", "/x/y", "/x/y/a.gguf"),
        ("../m/./a.gguf", "/x/y", "/x/m/a.gguf"),
        ("a.gguf", "", None),
        ("~/a.gguf", "/x", None),
    ],
)
def test_paths_are_relative_to_the_processs_folder(path: str, cwd: str, absolute: str | None) -> None:
    assert ProcessFiles(LiveHost(), os.getpid(), cwd).absolute(path) == absolute


KEPT = "models--ggml-org--gemma-3-4b-it-GGUF/snapshots/abc/gemma-3-4b-it-Q4_K_M.gguf"
CACHES = [
    ("{home}/.cache/huggingface/hub/" + KEPT, {}),
    ("{home}/hf/hub/" + KEPT, {"HF_HOME": "{home}/hf"}),
    ("{home}/h/" + KEPT, {"HF_HUB_CACHE": "{home}/h"}),
    ("{home}/.cache/llama.cpp/ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-Q4_K_M.gguf", {}),
    ("{home}/l/ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-Q4_K_M.gguf", {"LLAMA_CACHE": "{home}/l"}),
]  # fmt: skip


@pytest.mark.parametrize(("cached", "environ"), CACHES)
def test_a_repository_is_found_in_every_cache(tmp_path: Path, cached: str, environ: dict[str, str]) -> None:
    home = str(tmp_path)
    path = pathlib.Path(cached.format(home=home))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    (path.parent / "ggml-org_gemma-3-4b-it-GGUF_mmproj-f16.gguf").write_bytes(b"GGUF")
    variables = {"HOME": home} | {key: value.format(home=home) for key, value in environ.items()}
    found = hf_cache.find_gguf(live(tmp_path), "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", variables)
    assert found == str(path)
    assert hf_cache.find_gguf(live(tmp_path), "ggml-org/gemma-3-4b-it-GGUF:Q8_0", variables) is None
    assert hf_cache.find_gguf(live(tmp_path), "somebody/else", variables) is None


def test_two_files_that_fit_are_none(tmp_path: Path) -> None:
    folder = tmp_path / ".cache/huggingface/hub/models--u--r/snapshots/1"
    folder.mkdir(parents=True)
    for name in ("a-Q4_K_M.gguf", "b-Q4_K_M.gguf"):
        (folder / name).write_bytes(b"")
    assert hf_cache.find_gguf(live(tmp_path), "u/r:Q4_K_M", {"HOME": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("registry.ollama.ai/library/gemma3/4b", "gemma3:4b"),
        ("registry.ollama.ai/alice/mine/latest", "alice/mine:latest"),
        ("hf.co/ggml-org/gemma/Q4_K_M", "hf.co/ggml-org/gemma:Q4_K_M"),
    ],
)
def test_a_blob_has_the_name_of_its_manifest(tmp_path: Path, place: str, name: str) -> None:
    digest = "cd" * 32
    manifest = tmp_path / "manifests" / place
    manifest.parent.mkdir(parents=True)
    model = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    template = {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "ef" * 32}
    manifest.write_text(json.dumps({"layers": [template, model]}))
    (manifest.parent / "broken").write_text("{" + digest)
    files = live(tmp_path)
    assert ollama_models.names_of_blob(files, f"{tmp_path}/blobs/sha256-{digest}") == [name]
    assert ollama_models.names_of_blob(files, f"{tmp_path}/blobs/sha256-{'ef' * 32}") == []
    assert ollama_models.names_of_blob(files, "/models/a.gguf") == []


def test_a_container_sees_its_own_files(tmp_path: Path) -> None:
    """Its /models/a.gguf is below /proc/PID/root; the host's file of that name is another one."""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    words = ["llama-server", "-m", "/models/a.gguf", "-c", "4096", "-np", "1", "-ngl", "99"]
    machine.process(10, words, {0: 2 * GIB}, ppid=5)
    machine.entry("--- proc/10/ns/mnt -> mnt:[4026532700]\n--- proc/99999/ns/mnt -> mnt:[4026531841]\n")
    machine.file("/models/a.gguf", b"not this one")
    import base64

    machine.entry(f"--- proc/10/root/models/a.gguf base64\n{base64.b64encode(qwen3_06b()).decode()}\n")
    row = row_of(machine.snapshot(), 10)
    assert row["model"] is not None
    assert row["model"]["name"] == "Qwen3 0.6B"


def test_eight_workers_share_one_log_and_each_has_its_own_line(tmp_path: Path) -> None:
    """The worker's number in the log is that of its container: `NSpid` tells it."""
    machine = Machine(tmp_path)
    serve = ["/v/bin/python3", "/v/bin/vllm", "serve", "a/b", "-tp", "2"]
    lines = []
    for _ in range(2):
        machine.card(80 * GIB, "NVIDIA H100")
    machine.process(100, serve, ppid=5)
    for rank in range(2):
        pid = 201 + rank
        machine.process(pid, [f"VLLM::Worker_TP{rank}"], {rank: 70 * GIB}, ppid=100, links={"1": "/var/log/v.log"})
        machine.entry(
            f"--- proc/{pid}/status\nName:\tx\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t{pid}\t{51 + rank}\n"
        )
        prefix = f"(Worker_TP{rank} pid={51 + rank}) INFO 05-13 16:42:00 [r.py:1] "
        lines.append(f"{prefix}Model loading took {15.25 + rank} GiB memory and 2.1 seconds\n")
        lines.append(f"{prefix}Available KV cache memory: {50 + rank}.00 GiB\n")
    machine.file("/var/log/v.log", "".join(lines).encode())
    document = machine.snapshot()
    for rank in range(2):
        llm = row_of(document, 201 + rank, rank)["llm"]
        assert llm is not None
        assert (llm["weights_bytes"], llm["kv_cache_bytes"]) == (round((15.25 + rank) * GIB), (50 + rank) * GIB)
        model = row_of(document, 201 + rank, rank)["model"]
        assert model is not None
        assert model["name"] == "a/b"


def test_eight_workers_read_their_log_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(80 * GIB, "NVIDIA H100")
    machine.process(100, ["/v/bin/python3", "/v/bin/vllm", "serve", "a/b", "-tp", "8"], ppid=5)
    for rank in range(8):
        machine.process(201 + rank, [f"VLLM::Worker_TP{rank}"], {0: GIB}, ppid=100, links={"1": "/var/log/v.log"})
    machine.file("/var/log/v.log", b"(Worker_TP0 pid=201) INFO 05-13 16:42:00 [r.py:1] Model loading took 1 GiB\n")
    host = machine.host()
    machine.collector(host).sample()
    assert host.opened.count("root/var/log/v.log") == 1


def test_ollamas_runner_is_in_its_parents_log(tmp_path: Path) -> None:
    """Two runners, one log: the port tells whose load it is."""
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    blob = "/m/blobs/sha256-" + "ab" * 32
    start = 'time=2026-05-01T10:00:00Z level=INFO source=s.go:1 msg="starting llama-server" '
    start += 'cmd="llama-server --model {} --port {}"\n'
    loaded = QWEN_LOG.replace(b"/models/Qwen3-0.6B-Q8_0.gguf", blob.encode())
    other = loaded.replace(b"448.00", b"100.00").replace(b"ab" * 32, b"cd")
    log = start.format(blob, 40001).encode() + loaded + start.format("/m/blobs/sha256-cd", 40002).encode() + other
    machine.process(10, ["/usr/bin/ollama", "serve"], ppid=1, links={"2": "/var/log/ollama.log"})
    words = ["/usr/lib/ollama/llama-server", "--model", blob, "--port", "40001", "-c", "4096", "-np", "1"]
    machine.process(11, words, {0: 2 * GIB}, ppid=10, links={"2": "pipe:[5]"})
    machine.file(blob, qwen3_06b())
    machine.file("/var/log/ollama.log", log)
    document = machine.snapshot()
    llm = row_of(document, 11)["llm"]
    assert llm is not None
    assert (llm["kv_cache_bytes"], llm["compute_bytes"]) == (448 * MIB, round(30.01 * MIB))
    assert sources_of(document, row_of(document, 11))["llm.kv_cache_bytes"] == "reported:log"


def test_only_regular_files_are_opened_as_logs(tmp_path: Path) -> None:
    """A pipe, a terminal and a device are left alone: reading would take what another program waits for."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"load_tensors: CUDA0 model buffer size = 1.00 MiB\n")
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=write_end, stderr=subprocess.DEVNULL
    )
    try:
        host = LiveHost()
        program = Program(host, child.pid)
        found = sources.find(ProcessFiles(host, child.pid, "/"), program, None, None)
        assert not any(log.own for log in found)
    finally:
        child.communicate()
        os.close(write_end)
    assert os.read(read_end, 100).startswith(b"load_tensors")
    os.close(read_end)


def test_a_long_log_is_read_at_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "l.log"
    path.write_bytes(b"first\n" + b"x" * 79 + b"\n" + (b"y" * 79 + b"\n") * 100_000 + b"last\n")
    (log,) = sources.find(live(tmp_path), Program(LiveHost(), os.getpid(), []), "l.log", None)[:1]
    data = log.read()
    assert data.startswith(b"first\n")
    assert data.endswith(b"last\n")
    assert len(data) <= 2 * sources.PART + 1


def test_a_log_that_ended_before_the_process_began_is_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "l.log"
    path.write_bytes(b"MiB\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    program = Program(LiveHost(), os.getpid(), [])
    assert all(log.path != str(path) for log in sources.find(live(tmp_path), program, str(path), time.time()))
    assert any(log.path == str(path) for log in sources.find(live(tmp_path), program, str(path), 1_600_000_000.0))
