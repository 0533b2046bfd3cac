"""A model server on Windows and on a Mac: its file is found by its own path, without `/proc`."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.captured import CapturedHost
from tests.unit.collect.pdh_machine import GIB, memory, pdh, used, windows
from tests.unit.collect.taking import source, taken
from tests.unit.collect.test_apple import accelerator, client, mac
from tests.unit.llm.models import qwen3_06b

if TYPE_CHECKING:
    from pathlib import Path


def with_file(folder: Path, path: str) -> CapturedHost:
    content = base64.encodebytes(qwen3_06b()).decode()
    (folder / "tree.txt").write_text(f"--- root/{path} base64\n{content}")
    return CapturedHost(folder)


@pytest.mark.parametrize(
    ("model", "cwd"),
    [
        ("D:\\models\\qwen.gguf", "C:\\llama"),
        ("D:/models/qwen.gguf", None),
        ("qwen.gguf", "D:\\models\\"),
        ("..\\models\\qwen.gguf", "D:\\llama"),
    ],
)
def test_on_windows(tmp_path: Path, model: str, cwd: str | None) -> None:
    facts: dict[str, Any] = {"create_time": 1796030000.0, "name": "llama-server.exe", "ppid": 2000, "cwd": cwd}
    facts |= {
        "exe": "C:\\llama\\llama-server.exe",
        "cmdline": ["C:\\llama\\llama-server.exe", "-m", model, "-c", "4096", "-ngl", "99"],
    }
    windows(tmp_path, {"pdh": pdh(memory(7, 2 * GIB), used(3 * GIB)), "process 7": facts})
    document = taken(with_file(tmp_path, "D:/models/qwen.gguf"))
    (row,) = document["processes"]
    assert row["llm"]["server"] == "llama.cpp"
    assert row["model"]["path"] == "D:/models/qwen.gguf"
    assert row["model"]["architecture"] == "qwen3"
    assert row["llm"]["context_tokens"] == 4096
    # 28 layers, 8 heads of keys and of values of 128, two bytes each.
    assert row["llm"]["kv_cache_bytes"] == 28 * 2 * 8 * 128 * 2 * 4096
    assert source(document, row, "runtimes").startswith("null:not-exposed")


def test_on_a_mac(tmp_path: Path) -> None:
    facts = {
        "create_time": 1796030000.0,
        "name": "llama-server",
        "ppid": 1,
        "cwd": "/Users/alice",
        "exe": "/opt/homebrew/bin/llama-server",
        "cmdline": ["llama-server", "-m", "models/qwen.gguf", "-c", "4096"],
    }
    mac(tmp_path, accelerator(client(1, "pid 42, llama-server", 100)), process_42=facts)
    document = taken(with_file(tmp_path, "Users/alice/models/qwen.gguf"))
    (row,) = document["processes"]
    assert row["llm"]["server"] == "llama.cpp"
    assert row["model"]["path"] == "/Users/alice/models/qwen.gguf"
    assert json.dumps(row["model"]["quantization"]) != "null"
    # Nothing is measured that the parts could be taken from.
    assert row["llm"]["overhead_bytes"] is None
