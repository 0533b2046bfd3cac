"""Values of a process's environment are settings: used, and never printed, whatever stands in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.llm.gguf_files import U16, gguf_file, pair, text_pair, value_pair
from tests.unit.llm.machine import GIB, Machine
from tests.unit.llm.models import qwen3_06b
from tests.unit.llm.test_explain_process import explained, text_of

if TYPE_CHECKING:
    from pathlib import Path

BASE = {
    "LLAMA_ARG_MODEL": "/m/q.gguf",
    "LLAMA_ARG_CTX_SIZE": "4096",
    "LLAMA_ARG_N_PARALLEL": "1",
    "LLAMA_ARG_N_GPU_LAYERS": "99",
}
BLOB = "/b/blobs/sha256-" + "ab" * 32
RUNNER = ["/usr/lib/ollama/llama-server", "--model", BLOB, "--port", "1", "-c", "4096", "-np", "1"]
PART = "/m/secret-00001-of-00003.gguf"


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (["llama-server"], BASE | {"LLAMA_ARG_OVERRIDE_TENSOR": "x=SecretBuffer"}),
        (["llama-server"], BASE | {"LLAMA_ARG_OVERRIDE_TENSOR": "secret"}),
        (["llama-server"], BASE | {"LLAMA_ARG_N_CPU_MOE": "secret"}),
        (["llama-server"], BASE | {"LLAMA_ARG_DEVICE": "SecretDevice9"}),
        (["llama-server"], BASE | {"LLAMA_ARG_CACHE_TYPE_K": "secret", "LLAMA_ARG_CACHE_TYPE_V": "secret"}),
        (
            ["llama-server"],
            BASE | {"LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K": "secret", "LLAMA_ARG_SPEC_DRAFT_MODEL": "/m/q.gguf"},
        ),
        (["llama-server"], BASE | {"LLAMA_ARG_SPEC_TYPE": "draft-secret", "LLAMA_ARG_MMPROJ": "/m/secret.gguf"}),
        (
            ["llama-server"],
            BASE
            | {
                "LLAMA_ARG_SPLIT_MODE": "secret",
                "LLAMA_ARG_TENSOR_SPLIT": "secret",
                "MTMD_BACKEND_DEVICE": "secret",
            },
        ),
        (["llama-server"], BASE | {"LLAMA_ARG_MODEL": "/m/secret-missing.gguf"}),
        (["llama-server"], BASE | {"LLAMA_ARG_MODEL": PART}),
        (["llama-server"], {"LLAMA_ARG_HF_REPO": "secret/repository", "LLAMA_ARG_ALIAS": "secret"}),
        (RUNNER, {"OLLAMA_KV_CACHE_TYPE": "secret", "OLLAMA_HOST": "secret:1", "CUDA_VISIBLE_DEVICES": "secret"}),
    ],
)
def test_no_value_is_printed(tmp_path: Path, words: list[str], environ: dict[str, str]) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, words, {0: 4 * GIB}, ppid=5, environ=environ | {"HOME": "/home/alice"})
    for path in ("/m/q.gguf", BLOB):
        machine.file(path, qwen3_06b())
    keys = [text_pair("general.architecture", "llama"), value_pair("llama.block_count", 1)]
    keys += [pair("split.count", U16, (3).to_bytes(2, "little")), pair("split.no", U16, bytes(2))]
    machine.file(PART, gguf_file(keys))
    found = explained(machine, 10)
    for said in (json.dumps(found.snapshot), json.dumps(found.document), text_of(found)):
        assert "secret" not in said.lower()


@pytest.mark.parametrize(("kind", "said"), [("q8_0", "q8_0"), ("Q8_0", "q8_0"), ("turbo4", None)])
def test_a_cache_type_of_the_environment_is_said_if_it_is_one(tmp_path: Path, kind: str, said: str | None) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    environ = BASE | {"LLAMA_ARG_CACHE_TYPE_K": kind, "LLAMA_ARG_CACHE_TYPE_V": kind}
    machine.process(10, ["llama-server"], {0: 4 * GIB}, ppid=5, environ=environ)
    machine.file("/m/q.gguf", qwen3_06b())
    (row,) = machine.snapshot()["processes"] or []
    llm: Any = row["llm"]
    assert llm["kv_type_k"] == said
    assert (llm["kv_cache_bytes"] is None) is (said is None)
