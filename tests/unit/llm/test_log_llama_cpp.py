"""llama.cpp's load logs: public ones against what their authors state, and the traps one by one."""

from __future__ import annotations

import re

import pytest

from gpusnap.llm.logs import breakdown
from gpusnap.llm.logs.lines import memory_lines
from gpusnap.llm.logs.llama_cpp import last_complete, read
from gpusnap.llm.logs.load import MIB, Load, device_of, is_host
from tests.unit.llm.log_data import lines, log, names, values

# Read off the log lines by hand: cards only, MiB. (id, device) -> part -> MiB.
BY_DEVICE: dict[str, dict[str, dict[str, float]]] = {
    "V001": {"CUDA0": {"kv": 256, "compute": 164}},
    "V002": {"CUDA0": {"kv": 4096, "compute": 2144}},
    "V005": {"Vulkan0": {"weights": 16708.36, "kv": 960}, "Vulkan1": {"weights": 1799.99, "kv": 64}},
    "V007": {"Vulkan0": {"kv": 6564}},
    "V008": {"Vulkan0": {"kv": 19200, "compute": 1174}},
    "V010": {"SYCL0": {"kv": 120, "compute": 563.39}},
    "V011": {"SYCL0": {"kv": 4389, "compute": 1983.38}},
    "V0140": {
        "CUDA0": {"kv": 672},
        "CUDA1": {"kv": 640},
        "CUDA2": {"kv": 640},
        "CUDA3": {"weights": 6520.8, "kv": 608},
    },
    "V015": {"CUDA0": {"kv": 816.02, "compute": 144}, "CUDA1": {"kv": 782.02, "compute": 312.75}},
    "V017": {},
    "V018": {"CUDA0": {"weights": 17284.05, "kv": 1952}},
    "V020": {"CUDA0": {"kv": 112}},
    "V021": {"Meta()": {"state": 149.62}},
    "V023": {"CUDA0": {"kv": 182.75}},
    "V024": {"CUDA0": {"kv": 2734}},
    "V041": {"CUDA5": {"state": 10}, "CUDA0": {"kv": 984}},
    "V042": {"CUDA0": {"compute": 789.62}, "CUDA1": {"compute": 460}},
    "V051": {"CUDA0": {"kv": 3584, "state": 56.11}},
    "V054": {"Vulkan0": {"weights": 15009.2, "kv": 544, "state": 1795.5, "compute": 1088.59}},
    "V057": {"Vulkan0": {"weights": 13755.36, "kv": 760, "compute": 428.07}},
    "V058": {},
    "V060": {
        "CUDA0": {"weights": 135.76, "kv": 384, "compute": 1080},
        "CUDA1": {"weights": 648.66, "kv": 1152, "compute": 1080},
    },
    "V063": {"CUDA0": {"weights": 3127.61, "kv": 144, "compute": 2470.16}},
    "V064": {},
    "V066": {"CUDA0": {"kv": 49406.25}, "CUDA1": {"kv": 7968.75}, "CUDA2": {"kv": 7125}, "CUDA3": {"kv": 5250}},
    "V067": {"CUDA0": {"kv": 252}, "CUDA1": {"kv": 144}, "CUDA14": {"kv": 180}},
    "V069": {"CUDA0": {"weights": 5060.88, "kv": 4352, "state": 100.5, "compute": 808.02}},
    "V072": {"Vulkan0": {"weights": 34280.86, "kv": 3072, "state": 301.5, "compute": 216.38}},
    "V079": {"CUDA0": {"kv": 512}},
    "V082": {"CUDA0": {"weights": 8128.64, "kv": 493, "compute": 916.08}},
    "V085": {},
    "V088": {"MTL0": {"kv": 1500, "compute": 395.03}},
    "V090": {"MTL0": {"weights": 636.18, "kv": 1089}},
    "V091": {"CUDA0": {"weights": 59851.68}},
    "V093": {"SYCL0": {"kv": 224, "compute": 304}},
    "V094": {"SYCL0": {"kv": 138.25, "compute": 1501}},
    "V096": {"CUDA0": {"weights": 40.73, "kv": 9, "compute": 16}},
    "V097": {"CUDA0": {"weights": 5049.71, "kv": 640, "compute": 162}},
    "V102": {"CUDA0": {"weights": 14617.7}},
    "V104": {"CUDA0": {"state": 251.25}},
    "V106": {"ROCm0": {"weights": 4455.34, "kv": 324, "compute": 304.75}},
    "V107": {"ROCm0": {"weights": 6539.67, "kv": 2176, "state": 149.62, "compute": 410.28}},
    "live-jsonl": {},
    "live-lv4": {},
}
# The caches' own closing lines, MiB in all.
TOTALS = {
    "V001": 256, "V005": 1024, "V007": 6564, "V008": 19200, "V010": 120, "V0140": 2560, "V017": 162.03,
    "V021": 448.88, "V041": 82, "V051": 8192 + 149.62, "V058": 448, "V060": 1536, "V064": 540,
    "V066": 65812.5 + 3937.5, "V067": 2196, "V075": 68 + 765, "V076": 1792 + 105, "V078": 512 + 40, "V082": 1088,
    "V084": 1632, "V085": 13824 + 40.5, "V093": 224, "V094": 138.25, "V100": 4224 + 201, "V102": 3528 + 748.12,
    "V104": 251.25, "live-lv4": 4.75,
}  # fmt: skip


def loads(name: str) -> list[Load]:
    return [load for load in read(lines(name)) if load.models or load.contexts]


@pytest.mark.parametrize("name", BY_DEVICE)
def test_cards_are_charged_what_the_log_says(name: str) -> None:
    found = loads(name)[-1].by_device()
    in_mib = {device: {part: round(n / MIB, 2) for part, n in parts.items()} for device, parts in found.items()}
    assert in_mib == BY_DEVICE[name]


@pytest.mark.parametrize("name", TOTALS)
def test_the_caches_close_with_their_total(name: str) -> None:
    total = loads(name)[-1].cache_total()
    assert total is not None
    assert total / MIB == pytest.approx(TOTALS[name], abs=0.005)


def test_every_value_that_a_public_log_holds_is_found() -> None:
    """For each stated value: where the number stands in the log, the parser brings it home."""
    missed, found = [], 0
    for row in values():
        if row["id"] not in names() or row["engine"].startswith(("vLLM", "SGLang")):
            continue
        if row["id"] in ("V024", "V103a"):
            continue  # a quoted sum; three runs one after the other, of which the last counts
        text = log(row["id"]).decode()
        parsed = _numbers(row["id"])
        for column in ("model_buffer_mib", "kv_mib", "compute_mib"):
            if row[column] and re.search(
                rf"(?<![\d.]){re.escape(_printed(row[column]))}(?!\d)", text.replace(",", ".")
            ):
                found += 1
                if not any(abs(float(row[column]) - number) < 0.006 for number in parsed):
                    missed.append((row["id"], column, row[column]))
    assert missed == []
    assert found > 80


def _printed(value: str) -> str:
    """As the engine prints it: two decimals, or whole MiB in the breakdown tables."""
    return f"{float(value):.2f}" if "." in value else value


def _numbers(name: str) -> set[float]:
    numbers: set[float] = set()
    for load in loads(name):
        for parts in load.by_device().values():
            numbers |= {n / MIB for n in parts.values()}
        for context in load.contexts:
            numbers |= {n / MIB for _, _, n in context.buffers} | {cache.nbytes / MIB for cache in context.caches}
            numbers.add(sum(cache.nbytes for cache in context.caches if cache.part == "kv") / MIB)
        numbers |= {n / MIB for model in load.models for _, n in model.buffers}
        numbers.add(load.total("kv") / MIB)
    for row in breakdown.read(lines(name)):
        numbers |= {row.weights / MIB, row.context / MIB, row.compute / MIB}
    return numbers


def test_report_053_host_buffers_are_never_charged_to_a_card() -> None:
    text = b"""
load_tensors:   CPU_Mapped model buffer size = 28108.80 MiB
load_tensors:        ROCm0 model buffer size = 11852.31 MiB
load_tensors:        ROCm1 model buffer size = 12033.92 MiB
llama_context:  ROCm_Host  output buffer size =     0.58 MiB
llama_kv_cache:      ROCm0 KV buffer size =  1024.00 MiB
llama_kv_cache:      ROCm1 KV buffer size =  1024.00 MiB
sched_reserve:      ROCm0 compute buffer size =   300.00 MiB
sched_reserve:      ROCm1 compute buffer size =   280.00 MiB
sched_reserve:  ROCm_Host compute buffer size = 52224.00 MiB
"""
    load = last_complete(read(memory_lines(text)))
    assert load is not None
    cards = load.by_device()
    assert set(cards) == {"ROCm0", "ROCm1"}
    assert sum(cards["ROCm0"].values()) / MIB == pytest.approx(13176.31)
    assert sum(cards["ROCm1"].values()) / MIB == pytest.approx(13337.92)


@pytest.mark.parametrize(
    "buffer",
    ["CPU", "CPU_Mapped", "CPU_REPACK", "CPU_AARCH64", "BLAS", "CUDA_Host", "ROCm_Host", "Vulkan_Host",
     "SYCL_Host", "CANN_Host", "Host", "RPC[10.0.0.2:50052]"],
)  # fmt: skip
def test_memory_of_the_machine_is_told_from_a_cards(buffer: str) -> None:
    assert is_host(buffer)


@pytest.mark.parametrize(
    ("buffer", "device"),
    [("CUDA0", "CUDA0"), ("MTL0_Mapped", "MTL0"), ("HTP0-REPACK", "HTP0"), ("CUDA0_Split", "CUDA0"),
     ("Metal", "Metal"), ("MTL0_Private", "MTL0"), ("OpenCL", "OpenCL"), ("Meta()", "Meta()"),
     ("Vulkan12", "Vulkan12")],
)  # fmt: skip
def test_a_cards_buffer_names_its_device(buffer: str, device: str) -> None:
    assert not is_host(buffer)
    assert device_of(buffer) == device


def test_the_dry_run_of_fit_is_no_load() -> None:
    """V107: the first pass prints 0.00 MiB of weights and KV, but whole recurrent state and compute buffers."""
    first, second = loads("V107")
    assert first.is_projection()
    assert not first.is_complete()
    assert second.is_complete()
    assert last_complete([first]) is None


def test_a_dry_run_announced_by_no_alloc_is_no_load() -> None:
    text = b"""print_info: no_alloc = 1
llama_model_loader: loaded meta data with 33 key-value pairs and 236 tensors from /m.gguf (version GGUF V3)
print_info: no_alloc              = 1
load_tensors:        CUDA0 model buffer size =   100.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    10.00 MiB
sched_reserve:      CUDA0 compute buffer size =     5.00 MiB
"""
    assert last_complete(read(memory_lines(text))) is None


def test_a_breakdown_is_never_a_load() -> None:
    for name in ("V027", "V029", "V030", "V113", "V116", "V117"):
        assert loads(name) == []
        assert breakdown.read(lines(name)) != []


def test_breakdown_tables_of_all_wordings() -> None:
    old = breakdown.read(lines("V027"))
    assert [(row.device, row.weights // MIB, row.context // MIB, row.compute // MIB) for row in old] == [
        ("CUDA0", 13169, 38, 985),
        ("CUDA1", 13169, 38, 548),
        ("CPU", 0, 57, 15),
    ]
    assert [row.projected for row in breakdown.read(lines("V029"))] == [True, True, False]
    assert [row.projected for row in breakdown.read(lines("V117"))] == [True, False]  # unsigned wrap
    assert [row.device for row in breakdown.read(lines("V116"))] == ["HTP0", "Host", "HTP0-REPACK"]
    at_exit = breakdown.read(lines("V113"))[0]
    assert (at_exit.weights // MIB, at_exit.context // MIB, at_exit.compute // MIB, at_exit.projected) == (
        28609, 397, 358, False,
    )  # fmt: skip


def test_a_table_as_an_object_is_a_projection_too() -> None:
    """`--log-jsonl`: the object, and the text rows beside it."""
    rows = breakdown.read(lines("live-jsonl"))
    objects = [row for row in rows if row.projected]
    assert [(row.device, row.weights // MIB, row.context // MIB, row.compute // MIB) for row in objects] == [
        ("Host", 4, 4, 8),
        ("Host", 4, 4, 8),
    ]
    odd = (
        b'{"data":{"unit":"MiB","rows":[{"name":"CUDA0","model":-1,"context":0,"compute":0},7]}}',
        b'{"data":7} MiB',
    )
    assert [breakdown.read(memory_lines(text)) for text in odd] == [[], []]


def test_a_draft_context_adds_to_its_model() -> None:
    (load,) = loads("V054")
    main, draft = load.contexts
    assert (main.draft, draft.draft) == (False, True)
    assert [n / MIB for part, _, n in main.buffers if part == "kv"] == [512]
    assert [n / MIB for part, _, n in draft.buffers if part == "kv"] == [32]


def test_a_draft_model_adds_and_a_reload_replaces() -> None:
    one = b"""srv    load_model: loading model '/models/a.gguf'
load_tensors:        CUDA0 model buffer size =  1000.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =   100.00 MiB
sched_reserve:      CUDA0 compute buffer size =    50.00 MiB
"""
    draft = b"""srv    load_model: loading draft model '/models/d.gguf'
load_tensors:        CUDA0 model buffer size =    10.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =     1.00 MiB
sched_reserve:      CUDA0 compute buffer size =     0.50 MiB
"""
    with_draft = last_complete(read(memory_lines(one + draft)))
    assert with_draft is not None
    assert with_draft.by_device()["CUDA0"] == {"weights": 1010 * MIB, "kv": 101 * MIB, "compute": 50.5 * MIB}
    again = last_complete(read(memory_lines(one + draft + one)))
    assert again is not None
    assert again.by_device()["CUDA0"] == {"weights": 1000 * MIB, "kv": 100 * MIB, "compute": 50 * MIB}


def test_a_compute_buffer_that_is_reserved_again_replaces() -> None:
    text = b"""load_tensors: CUDA0 model buffer size = 10.00 MiB
llama_context: constructing llama_context
llama_kv_cache: CUDA0 KV buffer size = 4.00 MiB
sched_reserve: CUDA0 compute buffer size = 300.00 MiB
sched_reserve: CUDA0 compute buffer size = 280.00 MiB
"""
    load = last_complete(read(memory_lines(text)))
    assert load is not None
    assert load.by_device()["CUDA0"]["compute"] == 280 * MIB


def test_a_failed_allocation_is_no_complete_load() -> None:
    assert not loads("V007")[-1].is_complete()
    assert not loads("V051")[-1].is_complete()
    text = b"""load_tensors: CUDA0 model buffer size = 10.00 MiB
llama_kv_cache: CUDA0 KV buffer size = 4.00 MiB
ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 4757131264
sched_reserve: CUDA0 compute buffer size = 30.00 MiB
"""
    assert last_complete(read(memory_lines(text))) is not None  # the second try went through


def test_a_load_under_way_hides_the_one_before() -> None:
    done = b"""load_tensors: CUDA0 model buffer size = 10.00 MiB
llama_kv_cache: CUDA0 KV buffer size = 4.00 MiB
sched_reserve: CUDA0 compute buffer size = 30.00 MiB
"""
    begun = (
        b"srv    load_model: loading model '/models/b.gguf'\nload_tensors: CUDA0 model buffer size = 99.00 MiB\n"
    )
    assert last_complete(read(memory_lines(done + begun))) is None


def test_a_projectors_weights_go_to_no_card_since_no_line_says_where_they_are() -> None:
    text = b"""load_tensors: CUDA0 model buffer size = 10.00 MiB
llama_kv_cache: CUDA0 KV buffer size = 4.00 MiB
sched_reserve: CUDA0 compute buffer size = 30.00 MiB
clip_model_loader: model size:         811.82 MiB
alloc_compute_meta:      CUDA0 compute buffer size =   372.06 MiB
"""
    load = last_complete(read(memory_lines(text)))
    assert load is not None
    (card,) = load.by_device().values()
    assert card == {"weights": 10 * MIB, "kv": 4 * MIB, "compute": 30 * MIB + round(372.06 * MIB)}


def test_the_routers_children_do_not_mix() -> None:
    text = b"""[47161] 0.00.1 x
[47161] load_tensors: CUDA0 model buffer size = 10.00 MiB
[47202] load_tensors: CUDA0 model buffer size = 77.00 MiB
[47161] llama_kv_cache: CUDA0 KV buffer size = 4.00 MiB
[47202] llama_kv_cache: CUDA0 KV buffer size = 7.00 MiB
[47161] sched_reserve: CUDA0 compute buffer size = 30.00 MiB
[47202] sched_reserve: CUDA0 compute buffer size = 3.00 MiB
"""
    by_tag = {load.tag: load.by_device()["CUDA0"] for load in read(memory_lines(text))}
    assert by_tag == {
        "port:47161": {"weights": 10 * MIB, "kv": 4 * MIB, "compute": 30 * MIB},
        "port:47202": {"weights": 77 * MIB, "kv": 7 * MIB, "compute": 3 * MIB},
    }


def test_a_prompt_that_quotes_a_log_line_is_not_one() -> None:
    text = b"""load_tensors: CUDA0 model buffer size = 10.00 MiB
llama_kv_cache: CUDA0 KV buffer size = 4.00 MiB
sched_reserve: CUDA0 compute buffer size = 30.00 MiB
user: why does it say "llama_kv_cache: CUDA0 KV buffer size = 99999.00 MiB" in my log
{"prompt": "llama_kv_cache: CUDA0 KV buffer size = 99999.00 MiB"}
request: {"content": "load_tensors: CUDA0 model buffer size = 5.00 MiB\\nx"}
"""
    load = last_complete(read(memory_lines(text)))
    assert load is not None
    assert load.by_device() == {"CUDA0": {"weights": 10 * MIB, "kv": 4 * MIB, "compute": 30 * MIB}}


def test_settings_devices_and_slots_are_read() -> None:
    context = loads("V069")[0].contexts[0]
    assert context.settings["n_ctx"] == "262144"
    assert context.settings["kv_unified"] == "true"
    text = (
        b"llama_prepare_model_devices: using device CUDA0 (NVIDIA RTX 4090) (0000:01:00.0) - 23000 MiB free\n"
        b"llama_model_load_from_file_impl: using device Vulkan1 (AMD Radeon (TM) 780M) - 8000 MiB free\n"
    )
    (load,) = read(memory_lines(text))
    assert load.devices == {
        "CUDA0": ("NVIDIA RTX 4090", "0000:01:00.0"),
        "Vulkan1": ("AMD Radeon (TM) 780M", None),
    }
    slots = loads("live-default-verbosity")[0].slots
    assert slots == {"n_slots": "4", "n_ctx_slot": "256", "kv_unified": "true"}


def test_partial_offload_is_read() -> None:
    assert [model.offloaded for model in loads("V082")[0].models] == [(29, 65)]
    assert [model.offloaded for model in loads("V090")[0].models] == [(23, 23)]
