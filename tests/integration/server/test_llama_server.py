"""A real llama-server on a real model, found, probed and explained end to end; the stand-in NVML reports its VRAM.

The engine runs on the CPU and logs what it allocated there; what gpusnap computes from header, flags and API must
be the same. At the engine's default verbosity its log has no sizes, so the computation stands alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gpusnap.llm.logs.lines import memory_lines
from gpusnap.llm.logs.llama_cpp import last_complete, read
from tests.integration.server.build import server
from tests.integration.setup_real import GEMMA
from tests.standin import Card, Proc, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
GIB = 1 << 30
HELD = 2 * GIB
# What the engine says of the file: 235.16 MiB of tensors.
WEIGHTS_MIB = 235.16
SETTINGS = {
    "plain": ["-c", "4096"],
    "without a context": [],
    "two slots, not unified": ["-c", "8192", "-np", "2"],
    "three slots, unified": ["-c", "6000", "-np", "3", "-kvu"],
    "quantised cache": ["-c", "4096", "-np", "1", "-ctk", "q8_0", "-ctv", "q8_0", "-fa", "on"],
    "automatic slots, not unified": ["-c", "40000", "-no-kvu", "-ub", "128"],
    "whole windows": ["-c", "4096", "-np", "1", "--swa-full"],
    "small batches": ["-c", "4096", "-np", "1", "-ub", "128"],
}


class Running(NamedTuple):
    pid: int
    port: int
    log: Path


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[Running]:
    """A server that answers; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "server.log"
    argv = [str(server()), "-m", str(GEMMA), "--host", "127.0.0.1", "--port", str(port), "-t", "1", "--no-warmup"]
    with log.open("wb") as out:
        process = subprocess.Popen([*argv, *flags], stdout=out, stderr=subprocess.STDOUT, cwd=folder)
    try:
        _wait(process, port, log)
        yield Running(process.pid, port, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as ok,
        ):
            if ok.status == 200:
                return
        assert process.poll() is None, log.read_text()[-2000:]
        time.sleep(0.1)
    raise TimeoutError(log.read_text()[-2000:])


def gpusnap(folder: Path, pid: int, *argv: str) -> Any:
    """The real command on a machine whose driver says that the server holds HELD bytes."""
    card = Card(processes=[Proc(pid, HELD)], used=HELD + GIB)
    environ = {**os.environ, **Scenario([card]).environment(folder), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "gpusnap", *argv]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=60, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in argv else done.stdout


def figures(document: Any) -> dict[str, Any]:
    return {figure["field"]: figure["value"] for figure in document["figures"]}


def logged(log: Path, kind: str) -> float:
    """The engine's own lines, by a plain expression: MiB."""
    return sum(map(float, re.findall(rf"CPU {kind} buffer size = *([\d.]+) MiB", log.read_text())))


@pytest.fixture(scope="module")
def engine_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What the engine itself allocates for each setting, by its log at -lv 4."""
    found = {}
    for name, flags in SETTINGS.items():
        folder = tmp_path_factory.mktemp("engine")
        with running(folder, "-lv", "4", *flags) as engine:
            found[name] = logged(engine.log, "KV")
            load = last_complete(read(memory_lines(engine.log.read_bytes())))
            assert load is not None
            assert load.total("kv") / MIB == pytest.approx(found[name])
            assert load.total("weights") / MIB >= WEIGHTS_MIB
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_cache_and_weights_are_the_engines_own(name: str, engine_cache: dict[str, float], tmp_path: Path) -> None:
    """Flags alone, or the API where they leave the context open."""
    with running(tmp_path, "-ngl", "99", *SETTINGS[name]) as engine:
        document = gpusnap(tmp_path, engine.pid, "explain", f"pid:{engine.pid}", "--json")
    found = figures(document)
    assert found["llm.kv_cache_bytes"] / MIB == pytest.approx(engine_cache[name], abs=0.02, rel=0.001)
    assert found["llm.weights_bytes"] / MIB == pytest.approx(WEIGHTS_MIB, abs=0.01)
    assert found["llm.overhead_bytes"] == HELD - found["llm.weights_bytes"] - found["llm.kv_cache_bytes"]
    assert [warning for warning in document["warnings"] if warning["pid"] == engine.pid] == []


def test_the_text_says_what_the_server_is(tmp_path: Path) -> None:
    with running(tmp_path, "-c", "4096", "-ngl", "99") as engine:
        text = gpusnap(tmp_path, engine.pid, "explain", f"pid:{engine.pid}")
    assert f"llama-server (pid {engine.pid}" in text
    assert "holds 2.0 GiB of GPU 0: model weights 0.2" in text
    assert "Gemma 3 270m · gemma3 · 268.1 M parameters · Q4_K_M · 18 layers · trained for 32,768 tokens" in text
    assert "/props: 4 slots of 4,096 tokens, build b1-0c1e57098 · agrees with the flags" in text
    assert "ggml loaded" in text
    assert "4,096 tokens" in text


def test_a_log_with_sizes_is_believed(tmp_path: Path) -> None:
    """At -lv 4 the engine says that all of it is in system memory: nothing of the model is on the card."""
    with running(tmp_path, "-c", "4096", "-lv", "4") as engine:
        found = figures(gpusnap(tmp_path, engine.pid, "explain", f"pid:{engine.pid}", "--json"))
    assert (found["llm.weights_bytes"], found["llm.kv_cache_bytes"]) == (0, 0)


def test_snap_asks_nobody_and_probe_asks_two_paths(tmp_path: Path) -> None:
    with running(tmp_path, "-c", "4096", "-ngl", "99", "-lv", "4") as engine:
        before = engine.log.read_text().count("GET")
        gpusnap(tmp_path, engine.pid, "snap")
        assert engine.log.read_text().count("GET") == before
        gpusnap(tmp_path, engine.pid, "snap", "--probe")
        time.sleep(0.2)
        asked = re.findall(r"(GET|POST|HEAD|PUT|DELETE) (/\S*)", engine.log.read_text()[-4000:])
    assert {path for method, path in asked if path != "/health"} <= {"/props", "/v1/models"}
    assert {method for method, _ in asked} <= {"GET"}


def test_a_key_is_asked_for_and_taken(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-test\n")
    with running(tmp_path, "-c", "4096", "-ngl", "99", "--api-key", "sk-test") as engine:
        without = gpusnap(tmp_path, engine.pid, "explain", f"pid:{engine.pid}")
        with_key = gpusnap(tmp_path, engine.pid, "explain", f"pid:{engine.pid}", "--api-key-file", str(key))
    assert "needs an API key (--api-key-file)" in without
    assert "/props: 4 slots of 4,096 tokens" in with_key
    assert "sk-test" not in without + with_key


def test_a_router_holds_no_model(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [str(server()), "--models-dir", str(GEMMA.parent), "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "router.log").open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT)
    try:
        _wait(process, port, tmp_path / "router.log")
        text = gpusnap(tmp_path, process.pid, "explain", f"pid:{process.pid}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert "it holds a context and no model: its children load the models" in text
