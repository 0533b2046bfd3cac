"""What `explain PID` says of a model server: one whole answer, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.explain.explanation import Explained, explain_snapshot
from gpusnap.explain.subject import Chosen
from gpusnap.render.explain import explain_lines
from gpusnap.render.screen import Screen
from tests.unit.llm.machine import GIB, Machine
from tests.unit.llm.models import qwen3_14b
from tests.unit.llm.test_split_published import QWEN_LOG, qwen_machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MODEL = "/home/alice/models/Qwen3-14B-Q4_K_M.gguf"
PROPS = {"default_generation_settings": {"n_ctx": 32768}, "total_slots": 1, "build_info": "b9400-abc"}


def explained(machine: Machine, pid: int, contexts: Sequence[int] = (), **options: Any) -> Explained:
    collector = machine.collector(**options)
    document = collector.sample()
    aside = collector.models.describer.aside(pid)
    return explain_snapshot(document, Chosen("process", pid=pid), contexts=contexts, aside=aside)


def text_of(found: Explained) -> str:
    return "\n".join(explain_lines(found, Screen(), command="4711"))


def says(found: Explained, field: str) -> str:
    return next(figure["says"] for figure in found.document["figures"] if figure["field"] == field)


def value(found: Explained, field: str) -> object:
    return next(figure["value"] for figure in found.document["figures"] if figure["field"] == field)


def qwen3_14b_server(folder: Path, *flags: str) -> Machine:
    machine = Machine(folder)
    machine.card(16 * GIB, used=round(15.9 * GIB))
    words = ["llama-server", "--model", MODEL, "--ctx-size", "32768", "-np", "1", "-ngl", "99", *flags]
    machine.process(4711, words, {0: round(13.8 * GIB)}, ppid=100)
    machine.file(MODEL, qwen3_14b(), size=9_001_752_960)
    machine.listen(4711, 8080, inode=4242)
    machine.http = {
        "127.0.0.1:8080/props": {"body": PROPS},
        "127.0.0.1:8080/v1/models": {"body": {"data": []}},
    }
    return machine


def test_a_whole_answer(tmp_path: Path) -> None:
    text = text_of(explained(qwen3_14b_server(tmp_path), 4711, probe=True))
    assert text.startswith("llama-server (pid 4711, alice, up ")
    assert "holds 13.8 GiB of GPU 0: model weights 7.3, KV cache 5.0, its context 1.5." in text
    assert "Qwen3 14B · qwen3 · 14.8 B parameters · Q4_K_M · 40 layers · trained for 40,960 tokens" in text
    assert f"{MODEL} (8.4 GiB)" in text
    assert "tensor table of the GGUF header, by layers (-ngl 99)" in text
    assert "40 layers × 8 heads × (128 + 128) × f16 × 32,768 tokens, 1 sequence" in text
    assert "start" not in text.split("the rest")[1].split("\n")[0]
    assert "llama-server does with -lv 4" in text
    assert "160 KiB a token: 16k 2.5 GiB · 32k 5.0 GiB (now) · 64k 10.0 GiB does not fit (102 MiB free)" in text
    assert "/props: 1 slot of 32,768 tokens, build b9400-abc · agrees with the flags" in text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-np", "4", "-kvu"], "32,768 tokens, 4 sequences in one pool"),
        (["-np", "4"], "32,768 tokens, 4 sequences of 8,192"),
        (["-np", "-1"], "32,768 tokens, 4 sequences in one pool"),  # automatic
    ],
)
def test_slots_share_one_pool_or_have_their_parts(tmp_path: Path, flags: list[str], said: str) -> None:
    found = explained(qwen3_14b_server(tmp_path, *flags), 4711)
    assert says(found, "llm.kv_cache_bytes").endswith(said)
    kept = explain_snapshot(found.snapshot, Chosen("process", pid=4711))  # a document does not say which
    assert says(kept, "llm.kv_cache_bytes").endswith("32,768 tokens, 4 sequences")


def test_the_published_example_and_what_32k_would_take(tmp_path: Path) -> None:
    """Weights 604 MiB, KV 448 MiB at 112 KiB a token, compute 30 MiB from the log, 259 MiB; 32k: 3.50 GiB."""
    found = explained(qwen_machine(tmp_path, log=QWEN_LOG), 4711, contexts=[8192, 32768])
    text = text_of(found)
    for line in ("weights   604 MiB", "KV cache  448 MiB", "compute    30 MiB", "the rest  259 MiB"):
        assert line in text
    assert says(found, "llm.weights_bytes") == "the server's own log"
    assert found.document["context"] == [
        {"tokens": 8192, "kv_cache_bytes": 896 << 20, "fits": True},
        {"tokens": 32768, "kv_cache_bytes": 3584 << 20, "fits": True},
    ]
    assert "112 KiB a token: 8k 896 MiB · 32k 3.5 GiB" in text


def test_a_file_gives_the_same_contexts_as_a_straight_line(tmp_path: Path) -> None:
    """Without the header: a snapshot that was kept."""
    document = qwen_machine(tmp_path, log=QWEN_LOG).snapshot()
    found = explain_snapshot(document, Chosen("process", pid=4711), contexts=[8192, 32768, 1000])
    assert [row["kv_cache_bytes"] for row in found.document["context"]] == [112 << 20, 896 << 20, 3584 << 20]


@pytest.mark.parametrize(
    ("props", "agreement"),
    [
        (PROPS, "agrees with the flags"),
        ({**PROPS, "total_slots": 4}, "the flags say 1 slot"),
        ({**PROPS, "default_generation_settings": {"n_ctx": 65536}}, "the flags say 32,768 tokens in all"),
    ],
)
def test_the_api_and_the_flags_side_by_side(tmp_path: Path, props: dict[str, Any], agreement: str) -> None:
    machine = qwen3_14b_server(tmp_path)
    machine.http["127.0.0.1:8080/props"] = {"body": props}
    assert agreement in text_of(explained(machine, 4711, probe=True))


def test_a_server_that_wants_a_key_says_so_and_gets_one(tmp_path: Path) -> None:
    machine = qwen3_14b_server(tmp_path)
    machine.http["127.0.0.1:8080/props"] = {"body": PROPS, "key": "sk-1"}
    machine.http["127.0.0.1:8080/v1/models"] = {"body": {"data": []}, "key": "sk-1"}
    machine.file("/home/alice/key", b"sk-1\n")
    without = text_of(explained(machine, 4711, probe=True))
    assert "needs an API key (--api-key-file)" in without
    with_key = text_of(explained(machine, 4711, probe=True, api_key_file="/home/alice/key"))
    assert "agrees with the flags" in with_key
    assert "sk-1" not in with_key


def test_without_probe_nobody_is_asked(tmp_path: Path) -> None:
    machine = qwen3_14b_server(tmp_path)
    host = machine.host()
    machine.collector(host).sample()
    assert host.requests == []
