"""Ollama, both kinds of runner: `ollama runner --model BLOB` (until 2025) and `llama-server --model BLOB` (2026).

The runner holds the GPU, `ollama serve` above it holds the API and the settings. `/api/ps` repeats what ollama
estimated or parsed, and loses the larger of two caches (ollama#17251): it is a claim beside the measurement, never
one. `/api/show` is a POST and is not used: the manifest beside the blob says the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.flags import Flags
from gpusnap.llm.servers import llama_cpp
from gpusnap.llm.servers.llama_cpp_placing import VISIBLE, cache_type
from gpusnap.llm.workload import Workload

if TYPE_CHECKING:
    from gpusnap.llm.probe import Api
    from gpusnap.llm.program import Program

NAME = "ollama"
PATHS = ("/api/ps",)
DEFAULT_PORT = 11434
_SETTINGS = ("OLLAMA_",)


def recognise(program: Program) -> Workload | None:
    name, arguments = program.entry
    if name == "ollama":
        return _own_program(program, arguments)
    if name in ("llama-server", "ollama_llama_server") and _blob(arguments):
        return _runner(program, arguments)
    return None


def _own_program(program: Program, arguments: list[str]) -> Workload | None:
    if arguments[:1] == ["runner"]:
        return _runner(program, arguments[1:])
    workload = Workload(NAME)
    workload.role = "front"
    workload.settings_pid = program.pid
    workload.default_port = DEFAULT_PORT
    return workload


def _blob(arguments: list[str]) -> bool:
    return any("/blobs/sha256-" in word for word in arguments)


def _runner(program: Program, arguments: list[str]) -> Workload:
    environ = program.environ(*_SETTINGS)
    flags = Flags(arguments, environ)
    workload = Workload(NAME)
    workload.role = "runner"
    workload.settings_pid = program.pid
    for name, flag, short in (("type_k", "--cache-type-k", "-ctk"), ("type_v", "--cache-type-v", "-ctv")):
        found = flags.text("--kv-cache-type", flag, short, env="OLLAMA_KV_CACHE_TYPE")
        workload.put(name, cache_type(found))
    llama_cpp.read_flags(workload, flags)
    workload.visible = program.environ(*VISIBLE)
    # Both kinds of runner are told the pool's whole size and the number of requests in it.
    workload.put("sequences", flags.number(env="OLLAMA_NUM_PARALLEL"))
    workload.put("sequences", (1, "defaults:ollama"))
    workload.put("unified", (False, "defaults:ollama"))
    # `--port` is the runner's own: the API that is asked is that of `ollama serve`.
    workload.sources.pop("port", None)
    workload.runner_port = workload.port
    workload.output_counts = program.entry[0] != "ollama"
    workload.port = _served_port(environ)
    workload.default_port = DEFAULT_PORT
    workload.log_file = None
    return workload


def _served_port(environ: dict[str, str]) -> int | None:
    """OLLAMA_HOST: `0.0.0.0:11434`, `:8080`, `http://host`."""
    address = environ.get("OLLAMA_HOST", "").rpartition("://")[2].split("/", 1)[0]
    port = address.rpartition(":")[2] if ":" in address.rpartition("]")[2] else ""
    return int(port) if port.isascii() and port.isdigit() and 0 < int(port) < 65536 else None


def ask(api: Api, workload: Workload) -> None:
    """The row of `/api/ps` whose model file is this runner's; one row alone is it."""
    from gpusnap.llm.probe import positive, whole

    rows = api.json("/api/ps").get("models")
    if not isinstance(rows, list):
        return
    known = [row for row in rows if isinstance(row, dict)]
    mine = [row for row in known if row.get("name") in workload.model_names]
    # Another model's row is not this runner's, though it stands alone: this one may be on its way out.
    row = mine[0] if mine else known[0] if len(known) == 1 and not workload.model_names else None
    if row is None:
        return
    for key in ("size", "size_vram", "context_length"):
        value = whole(row.get(key))
        if value is not None:
            workload.api[key] = value
    claim = whole(row.get("size_vram"))
    if claim is not None:
        workload.claims["ollama /api/ps"] = claim
    for key in ("name", "expires_at"):
        if isinstance(row.get(key), str):
            workload.api[key] = row[key]
    length = positive(row.get("context_length"))
    if "context" not in workload.sources and length is not None and workload.sequences:
        workload.put("context", (length * workload.sequences, "api./api/ps"))
