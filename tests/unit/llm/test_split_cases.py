"""The split under every kind of evidence: what is on the card, what is not known, what contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.llm.machine import GIB, MIB, Machine, facts, row_of, sources_of
from tests.unit.llm.models import qwen3_06b

if TYPE_CHECKING:
    from pathlib import Path

QWEN = "/m/Qwen3-0.6B-Q8_0.gguf"
LAYER = 28 * 8 * 256 * 2  # KV bytes of a token, all layers


def serve(
    folder: Path,
    *flags: str,
    held: dict[int, int] | None = None,
    data: bytes | None = None,
    cards: tuple[str, ...] = ("NVIDIA A40",),
    log: bytes | None = None,
    **more: Any,
) -> Machine:
    machine = Machine(folder)
    for name in cards:
        machine.card(48 * GIB, name)
    if log is not None:
        machine.file("/var/log/l.log", log)
        more["links"] = {"2": "/var/log/l.log"}
    machine.process(10, ["llama-server", "-m", QWEN, *flags], held or {0: 2 * GIB}, ppid=5, **more)
    machine.file(QWEN, data if data is not None else qwen3_06b())
    return machine


def llm_of(machine: Machine, adapter: int = 0, **options: Any) -> tuple[dict[str, Any], dict[str, str]]:
    document = machine.snapshot(**options)
    row = row_of(document, 10, adapter)
    assert row["llm"] is not None
    return dict(row["llm"]), sources_of(document, row)


def test_all_layers_are_inferred_where_everything_fits(tmp_path: Path) -> None:
    """The default -ngl is "as many as fit": nobody says how many that were."""
    llm, sources = llm_of(serve(tmp_path, "-c", "4096"))
    assert round(llm["weights_bytes"] / MIB, 2) == 604.15
    assert sources["llm.weights_bytes"] == "inferred:gguf all layers fit"
    assert sources["llm.kv_cache_bytes"].startswith("inferred:gguf+cmdline+defaults:llama.cpp")
    assert (llm["sequences"], llm["kv_cache_bytes"]) == (4, 448 * MIB)  # four slots share one pool


def test_a_part_in_system_memory_is_not_guessed(tmp_path: Path) -> None:
    """Held less than the header's weights: partial offload is certain, how much is not."""
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", held={0: 500 * MIB}))
    assert facts(llm, "weights_bytes", "kv_cache_bytes", "overhead_bytes") == dict.fromkeys(
        ("weights_bytes", "kv_cache_bytes", "overhead_bytes")
    )
    assert sources["llm.weights_bytes"].startswith("null:ambiguous part of the model is in system memory")


def test_the_last_layers_are_on_the_card(tmp_path: Path) -> None:
    """-ngl 20 of 28 layers: 19 repeating ones and the output."""
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "20"))
    assert llm["kv_cache_bytes"] == 4096 * 19 * 8 * 256 * 2
    block = (1024 * 2048 * 2 + 2 * 1024 * 1024 + 3 * 1024 * 3072) * 34 // 32 + (2 * 1024 + 2 * 128) * 4
    output = 1024 * 151936 * 34 // 32 + 1024 * 4  # tied: the embeddings once more, and the last norm
    assert llm["weights_bytes"] == 19 * block + output
    assert sources["llm.weights_bytes"] == "computed:gguf -ngl 20"


def test_nothing_on_the_card_is_zero_and_not_null(tmp_path: Path) -> None:
    llm, _ = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "0", held={0: 300 * MIB}))
    assert (llm["weights_bytes"], llm["kv_cache_bytes"], llm["overhead_bytes"]) == (0, 0, 300 * MIB)


def test_a_cache_that_stays_in_system_memory_is_none_of_the_card(tmp_path: Path) -> None:
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "99", "-nkvo"))
    assert (llm["kv_cache_bytes"], sources["llm.kv_cache_bytes"]) == (0, "computed:cmdline -nkvo")


def test_no_context_no_cache(tmp_path: Path) -> None:
    llm, sources = llm_of(serve(tmp_path, "-ngl", "99"))
    assert (llm["context_tokens"], llm["kv_cache_bytes"], llm["kv_bytes_per_token"]) == (None, None, None)
    assert sources["llm.context_tokens"].startswith("null:ambiguous")
    assert sources["llm.kv_cache_bytes"].startswith("null:ambiguous")
    assert round(llm["weights_bytes"] / MIB, 2) == 604.15


def test_a_context_that_only_the_api_knows(tmp_path: Path) -> None:
    machine = serve(tmp_path, "-ngl", "99", held={0: 4 * GIB})
    machine.listen(10, 8080, inode=5)
    props = {"default_generation_settings": {"n_ctx": 16384}, "total_slots": 4, "build_info": "b9400-x"}
    machine.http = {
        "127.0.0.1:8080/props": {"body": props},
        "127.0.0.1:8080/v1/models": {"body": {"data": []}},
    }
    llm, sources = llm_of(machine, probe=True)
    assert (llm["context_tokens"], llm["sequences"]) == (16384, 4)
    assert llm["kv_cache_bytes"] == 16384 * LAYER
    assert sources["llm.context_tokens"] == "reported:api./props"


def test_a_context_that_only_the_log_knows(tmp_path: Path) -> None:
    """At the default verbosity the slots are the only line that helps."""
    log = b"""0.00.006.190 I srv    load_model: loading model '/m/Qwen3-0.6B-Q8_0.gguf'
0.00.998.025 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'
0.01.000.460 I srv  llama_server: model loaded
"""
    llm, sources = llm_of(serve(tmp_path, "-ngl", "99", log=log))
    assert (llm["context_tokens"], llm["sequences"], llm["kv_cache_bytes"]) == (8192, 4, 8192 * LAYER)
    assert sources["llm.context_tokens"] == "reported:log"
    assert sources["llm.compute_bytes"].startswith("null:not-exposed")


def test_a_part_larger_than_the_measurement_is_a_contradiction(tmp_path: Path) -> None:
    machine = serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "99", held={0: 500 * MIB})
    document = machine.snapshot()
    row = row_of(document, 10)
    assert row["llm"] is not None
    assert row["llm"]["weights_bytes"] is None
    sources = sources_of(document, row)
    assert sources["llm.weights_bytes"].startswith("null:contradiction")
    assert sources["llm.overhead_bytes"].startswith("null:contradiction")
    (warning,) = [w for w in document["warnings"] if w["code"] == "contradiction"]
    assert "weights would be 0.6 GiB" in warning["message"]
    assert (warning["pid"], warning["adapter"]) == (10, row["adapter"])


def test_parts_that_are_more_together_leave_a_contradiction_as_the_rest(tmp_path: Path) -> None:
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "99", held={0: 700 * MIB}))
    assert llm["weights_bytes"] is not None
    assert (llm["kv_cache_bytes"], llm["overhead_bytes"]) == (448 * MIB, None)
    assert sources["llm.overhead_bytes"].startswith("null:contradiction the parts are ")


def test_a_cache_type_of_a_fork_has_no_size(tmp_path: Path) -> None:
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "99", "-ctk", "turbo4"))
    assert (llm["kv_type_k"], llm["kv_cache_bytes"]) == ("turbo4", None)
    assert sources["llm.kv_cache_bytes"].startswith("null:unknown-format")


TWO = b"""llama_prepare_model_devices: using device CUDA0 (NVIDIA A40) (0000:02:00.0) - 46000 MiB free
llama_prepare_model_devices: using device CUDA1 (NVIDIA A40) (0000:01:00.0) - 46000 MiB free
load_tensors: offloaded 29/29 layers to GPU
load_tensors:   CPU_Mapped model buffer size =   157.65 MiB
load_tensors:        CUDA0 model buffer size =   300.00 MiB
load_tensors:        CUDA1 model buffer size =   304.15 MiB
llama_kv_cache:      CUDA0 KV buffer size =   224.00 MiB
llama_kv_cache:      CUDA1 KV buffer size =   224.00 MiB
sched_reserve:      CUDA0 compute buffer size =    30.00 MiB
sched_reserve:      CUDA1 compute buffer size =    40.00 MiB
"""
HELD = {0: GIB, 1: GIB}


def test_cards_of_one_log_are_told_by_their_address(tmp_path: Path) -> None:
    """The engine's CUDA0 is the second card of the driver's order here."""
    machine = serve(tmp_path, "-c", "4096", cards=("NVIDIA A40", "NVIDIA A40"), held=HELD, log=TWO)
    first, sources = llm_of(machine, 0)
    second, _ = llm_of(machine, 1)
    assert (first["weights_bytes"], second["weights_bytes"]) == (round(304.15 * MIB), 300 * MIB)
    assert (first["compute_bytes"], second["compute_bytes"]) == (40 * MIB, 30 * MIB)
    assert sources["llm.weights_bytes"] == "reported:log"


def test_cards_of_one_log_are_told_by_their_names(tmp_path: Path) -> None:
    log = TWO.replace(b" (0000:02:00.0)", b"").replace(b" (0000:01:00.0)", b"")
    log = log.replace(b"CUDA0 (NVIDIA A40)", b"CUDA0 (NVIDIA RTX 4090)")
    machine = serve(tmp_path, "-c", "4096", cards=("NVIDIA A40", "NVIDIA RTX 4090"), held=HELD, log=log)
    assert llm_of(machine, 0)[0]["compute_bytes"] == 40 * MIB
    assert llm_of(machine, 1)[0]["compute_bytes"] == 30 * MIB


def test_like_cards_without_an_address_go_by_their_order_and_are_inferred(tmp_path: Path) -> None:
    log = b"\n".join(line for line in TWO.splitlines() if b"using device" not in line) + b"\n"
    machine = serve(tmp_path, "-c", "4096", cards=("NVIDIA A40", "NVIDIA A40"), held=HELD, log=log)
    llm, sources = llm_of(machine, 0)
    assert (llm["compute_bytes"], sources["llm.compute_bytes"]) == (30 * MIB, "inferred:log")


def test_unlike_cards_without_an_address_stay_open(tmp_path: Path) -> None:
    log = b"\n".join(line for line in TWO.splitlines() if b"using device" not in line) + b"\n"
    machine = serve(tmp_path, "-c", "4096", cards=("NVIDIA A40", "NVIDIA RTX 4090"), held=HELD, log=log)
    llm, sources = llm_of(machine, 0)
    assert llm["weights_bytes"] is None
    assert sources["llm.weights_bytes"].startswith("null:ambiguous")


def test_several_cards_without_a_log_stay_open(tmp_path: Path) -> None:
    machine = serve(tmp_path, "-c", "4096", "-ngl", "99", cards=("NVIDIA A40", "NVIDIA A40"), held=HELD)
    llm, sources = llm_of(machine, 1)
    assert llm["weights_bytes"] is None
    assert sources["llm.kv_cache_bytes"].startswith("null:ambiguous over 2 cards")
    assert llm["kv_bytes_per_token"] == LAYER


def test_tensor_split_says_which_layers_are_where(tmp_path: Path) -> None:
    flags = ("-c", "4096", "-np", "1", "-ngl", "99", "-ts", "3,1")
    machine = serve(tmp_path, *flags, cards=("NVIDIA A40", "NVIDIA A40"), held=HELD)
    caches = [llm_of(machine, card)[0]["kv_cache_bytes"] for card in (0, 1)]
    assert sum(caches) == 448 * MIB
    assert caches == [4096 * 22 * 8 * 256 * 2, 4096 * 6 * 8 * 256 * 2]  # 29 with the output: 22 and 7


def test_the_log_of_another_model_is_not_this_ones(tmp_path: Path) -> None:
    """The file holds an earlier run's load: 100 MiB of weights are not the file's 604."""
    log = b"""load_tensors:        CUDA0 model buffer size =   100.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    10.00 MiB
sched_reserve:      CUDA0 compute buffer size =     5.00 MiB
"""
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "99", log=log))
    assert llm["compute_bytes"] is None
    assert sources["llm.weights_bytes"] == "computed:gguf -ngl 99"


def test_a_load_in_system_memory_has_put_nothing_on_the_card(tmp_path: Path) -> None:
    log = b"""load_tensors:   CPU_Mapped model buffer size =   604.15 MiB
llama_kv_cache:        CPU KV buffer size =   448.00 MiB
sched_reserve:        CPU compute buffer size =    30.00 MiB
"""
    llm, sources = llm_of(serve(tmp_path, "-c", "4096", "-np", "1", "-ngl", "99", log=log, held={0: 300 * MIB}))
    assert facts(llm, "weights_bytes", "kv_cache_bytes", "compute_bytes", "overhead_bytes") == {
        "weights_bytes": 0,
        "kv_cache_bytes": 0,
        "compute_bytes": 0,
        "overhead_bytes": 300 * MIB,
    }
    assert sources["llm.weights_bytes"] == "reported:log"


def test_an_engine_without_a_cache_has_one_of_zero(tmp_path: Path) -> None:
    from tests.unit.llm.gguf_files import model_bytes, tensor

    values = {"block_count": 12, "attention.head_count": 12, "embedding_length": 384, "context_length": 512}
    data = model_bytes("bert", values, [tensor("token_embd.weight", (384, 30522), 1)])
    llm, sources = llm_of(serve(tmp_path, "-c", "512", "-ngl", "99", "--embedding", data=data))
    assert llm["kv_cache_bytes"] == 0
    assert sources["llm.kv_cache_bytes"].startswith("computed:")


@pytest.mark.parametrize("broken", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 16, b"not a model" * 100])
def test_a_broken_model_file_is_a_reason_not_a_fault(tmp_path: Path, broken: bytes) -> None:
    machine = serve(tmp_path, "-c", "4096", "-ngl", "99", data=broken)
    document = machine.snapshot()
    row = row_of(document, 10)
    assert row["llm"] is not None
    assert row["llm"]["weights_bytes"] is None
    assert sources_of(document, row)["llm.weights_bytes"].startswith("null:unknown-format")
    assert row["model"] is not None
    assert row["model"]["name"] == "Qwen3-0.6B-Q8_0"


def test_an_unknown_program_with_a_model_mapped_is_described(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.card(24 * GIB)
    machine.process(10, ["/opt/Jan/jan"], {0: 2 * GIB}, ppid=5, maps=[QWEN])
    machine.file(QWEN, qwen3_06b())
    llm, sources = llm_of(machine)
    assert (llm["server"], llm["context_tokens"]) == (None, None)
    assert sources["llm.server"] == "null:none"
    assert round(llm["weights_bytes"] / MIB, 2) == 604.15


def test_without_models_nothing_is_read(tmp_path: Path) -> None:
    machine = serve(tmp_path, "-c", "4096")
    host = machine.host()
    document = machine.snapshot(host, models=False)
    row = row_of(document, 10)
    assert (row["model"], row["llm"], row["runtimes"]) == (None, None, None)
    sources = sources_of(document, row)
    assert {sources[leaf] for leaf in ("model", "llm", "runtimes")} == {"null:not-requested --no-models"}
    assert not any("maps" in path or path.endswith(".gguf") for path in host.opened)


def test_fixed_facts_are_read_once_over_a_recording(tmp_path: Path) -> None:
    """The header and the mappings are read at the first sample, not at the next ten."""
    machine = serve(tmp_path, "-c", "4096", "-ngl", "99")
    host = machine.host()
    collector = machine.collector(host)
    for _ in range(11):
        collector.sample()
    assert host.opened.count("proc/10/maps") == 1
    first = host.opened.index("proc/10/maps")
    assert not any(path.endswith(".gguf") for path in host.opened[first + 400 :])


def test_values_of_the_environment_are_never_printed(tmp_path: Path) -> None:
    environ = {"LLAMA_ARG_CTX_SIZE": "4096", "LLAMA_ARG_ALIAS": "my-secret-alias", "HF_TOKEN": "hf_secret"}
    document = serve(tmp_path, "-ngl", "99", environ=environ).snapshot()
    row = row_of(document, 10)
    assert row["llm"] is not None
    assert row["llm"]["context_tokens"] == 4096
    assert sources_of(document, row)["llm.context_tokens"] == "computed:environ"
    assert "hf_secret" not in str(document)
    assert "secret" not in str(document)
