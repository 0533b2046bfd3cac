"""Public reports of full cards: memory errors, caches by policy, orphans, partitions, drivers that do not fit.

The number in a test's name is the report's in the project's list of cases; figures quoted there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap.explain.explanation import explain_snapshot
from gpusnap.explain.subject import Chosen
from gpusnap.explain.view import Surroundings, Viewer
from gpusnap.render.explain import explain_lines
from gpusnap.render.screen import Screen
from tests.builders import GIB, MIB, adapter, backend, llm_facts, model_facts, process, snapshot
from tests.explaining import ALICE, QUIET, codes, everything, explain, only, words

if TYPE_CHECKING:
    from gpusnap.model import Snapshot


def test_report_001_a_card_that_cannot_list_is_not_a_card_without_processes() -> None:
    # kitty#3077: 350 of 1996 MiB used, load not available, list not supported.
    card = adapter(total=1996 * MIB, used=350 * MIB, busy="null:not-supported", listed="null:not-supported")
    answer = explain(snapshot([card], None))["answer"]
    assert "350 MiB of 1.9 GiB" in answer or "0.3 of 1.9 GiB" in answer
    assert "can't be attributed, since processes can't be listed: not supported" in answer


def test_report_026_orphaned_workers_on_every_card_in_one_line_each() -> None:
    # vllm#20860: 73 GB on each of 8 cards, 0 %, 8 processes with high CPU, ray stop finds nothing.
    cards = [adapter(n, total=80 * GIB, used=73 * GIB, busy=0, model="NVIDIA H100 80GB HBM3") for n in range(8)]
    rows = [
        process(
            9811 + n,
            72 * GIB,
            on=n,
            name="ray::Worker",
            user="bob",
            ppid=1,
            cpu_percent=100.0,
            cmdline=None,
            exe=None,
        )
        for n in range(8)
    ]
    explanation = explain(snapshot(cards, rows))
    orphans = [one for one in explanation["findings"] if one["code"] == "orphan-workers"]
    assert len(orphans) == 8
    assert "ray::Worker" in words(orphans[0])
    assert "CPU 100 %" in words(orphans[0])
    assert "running since" in words(orphans[0])
    assert codes(explanation).count("idle-but-full") == 8
    assert "full and idle" in explanation["answer"]
    # Eight on one card are one group.
    one_card = [
        process(9811 + n, 9 * GIB, name="ray::Worker", user="bob", ppid=1, cmdline=None, exe=None)
        for n in range(8)
    ]
    found = only(explain(snapshot([adapter(total=80 * GIB, used=73 * GIB)], one_card)), "orphan-workers")
    assert "8 × ray::Worker (9811-9818, bob): parent gone (now 1), no listening socket" in words(found)


def test_report_046_a_small_model_fills_the_card_by_policy() -> None:
    # vllm#4723: opt-125m takes 20 GB of a 24 GiB card, gpu_memory_utilization 0.9.
    llm = llm_facts(server="vllm", weights_bytes=250 * MIB, kv_cache_bytes=19 * GIB)
    row = process(
        7,
        20 * GIB,
        name="vllm",
        category="llm",
        model=model_facts(name="opt-125m"),
        llm=llm,
        provenance={"llm.kv_cache_bytes": "estimated:utilization", "llm.weights_bytes": "computed:safetensors"},
    )
    found = only(explain(snapshot([adapter(total=24 * GIB, used=21 * GIB)], [row])), "kv-dominates")
    said = words(found)
    assert "KV cache, not weights" in found["title"]
    assert "--gpu-memory-utilization" in said
    assert "0.9" in said
    assert "19.0 GiB of 20.0 GiB (95 %), estimated" in said


def test_report_047_severity_goes_by_the_kind_of_error() -> None:
    # azurehpc#752: one uncorrected error against 12000 corrected ones.
    one = only(explain(snapshot([adapter(leaves={"ecc.uncorrected_volatile": 1})], [])), "ecc-growth")
    many = only(explain(snapshot([adapter(leaves={"ecc.corrected_volatile": 12000})], [])), "ecc-growth")
    assert (one["severity"], many["severity"]) == ("critical", "notice")
    assert "No need to take the card out of service" in words(many)
    assert not any(char.isdigit() for char in "".join(one["advice"])), "figures stand in the evidence"


def test_report_065_memory_errors_come_before_memory_theories() -> None:
    # k8s-device-plugin#243: one uncorrected error, 4617 MiB used, 100 %, allocations fail.
    card = adapter(total=16 * GIB, used=4617 * MIB, busy=100, leaves={"ecc.uncorrected_volatile": 1})
    explanation = explain(snapshot([card], [process(1, GIB)]))
    assert codes(explanation)[0] == "ecc-growth"
    assert "unattributed-memory" in codes(explanation)
    assert explanation["answer"] == "GPU 0 has 1 uncorrected memory error."
    assert "out-of-memory" in words(explanation["findings"][0])


def test_report_115_an_old_notebook_kernel_says_since_when_and_where() -> None:
    # notebook#3610: kernel-f768....json, nobody knows which notebook.
    row = process(
        8123,
        14 * GIB,
        user="bob",
        cmdline=["python", "-m", "ipykernel_launcher", "-f", "/run/kernel-f768.json"],
        cwd="/home/bob/thesis",
    )
    said = words(only(explain(snapshot([adapter(used=14 * GIB, busy=0)], [row])), "idle-but-full"))
    assert "since 2026-11-29 13:00Z (23 h 00 min)" in said
    assert "a notebook kernel in /home/bob/thesis" in said
    assert "shut it down in Jupyter" in said


def test_report_118_and_038_a_kept_model_is_a_cache_and_no_leak() -> None:
    # ComfyUI#7277, #6597: python main.py idle, 9 GiB / 18 GiB.
    row = process(
        6001, 9 * GIB, name="python", cmdline=["python", "main.py"], cwd="/srv/ComfyUI", runtimes=["pytorch"]
    )
    found = only(explain(snapshot([adapter(used=9 * GIB, busy=0)], [row])), "cache-not-leak")
    said = words(found)
    assert "a cache, normal for this program" in found["title"]
    assert "Unload Models" in said
    assert "gpusnap diff" in said


def test_report_125_a_model_that_is_stopping_says_since_when() -> None:
    # ollama#7606: UNTIL says "Stopping..." for 40 minutes at 0 %.
    note = {
        "code": "unload-pending",
        "message": "qwen3:14b: unload pending since 11:20Z",
        "adapter": None,
        "pid": 882,
    }
    document = snapshot([adapter(used=14 * GIB, busy=0)], [process(882, 14 * GIB, name="ollama")], warnings=[note])
    said = words(only(explain(document), "idle-but-full"))
    assert "unload pending since 11:20Z" in said
    assert "ollama stop" in said


def test_report_022_reserved_memory_is_no_ghost_process() -> None:
    # gpustat#141: the second memory call says used 0, reserved 308 MiB.
    card = adapter(total=16 * GIB, used=0, leaves={"memory.reserved_bytes": 308 * MIB})
    explanation = explain(snapshot([card], []))
    assert codes(explanation) == ["reserved-by-driver"]
    assert "308 MiB reserved by the driver" in everything(explanation)


def test_report_061_a_slice_without_a_load_figure_is_not_idle() -> None:
    # nvtop#256: utilisation is not supported under MIG.
    card = adapter(total=10 * GIB, used=9 * GIB, busy="null:not-supported")
    explanation = explain(snapshot([card], [process(5, 9 * GIB)]))
    assert "idle-but-full" not in codes(explanation)
    assert "0 % busy" not in everything(explanation)


def test_report_086_and_104_a_driver_mismatch_names_both_versions() -> None:
    # cppuprofile#7, shine-cluster#30: module 460.56, library 460.73.
    broken = backend(
        status="failed", detail="driver/library version mismatch: kernel module 460.56, library 460.73"
    )
    explanation = explain(snapshot([], None, backends=[broken]))
    said = words(only(explanation, "driver-mismatch"))
    assert "460.56" in said
    assert "460.73" in said
    assert "apt/history.log" in said
    assert "nothing can be measured" in explanation["answer"]


def test_an_answer_for_one_card_adds_up() -> None:
    # 15.6 of 16.0 GiB used.
    llm = llm_facts(server="llama-server", weights_bytes=round(8.4 * GIB), kv_cache_bytes=5 * GIB)
    rows: list[dict[str, Any]] = [
        process(4711, round(13.8 * GIB), name="llama-server", category="llm", llm=llm),
        process(3120, round(0.8 * GIB), name="firefox", category="browser", type="graphics"),
        process(2210, round(0.6 * GIB), name="kwin_wayland", category="desktop", type="graphics"),
    ]
    answer = explain(snapshot([adapter(used=round(15.6 * GIB), busy=41)], rows))["answer"]
    assert answer == (
        "15.6 of 16.0 GiB used: model weights 8.4, KV cache 5.0, Firefox 0.8, desktop 0.6, its context 0.4, "
        "0.4 unattributed."
    )


def test_report_094_and_112_where_the_driver_tells_no_figures_the_rest_is_a_bound() -> None:
    # nvtop#432 (WSL), nvitop#55 (WDDM): 14360 MiB used, the driver's figure for pid 79 is its sentinel.
    for why in ("null:wsl", "null:wddm"):
        card = adapter(total=16 * GIB, used=14360 * MIB, busy=50)
        explanation = explain(snapshot([card], [process(79, why)]), Viewer())
        found = only(explanation, "unattributed-memory")
        assert found["severity"] == "notice"
        assert found["title"].startswith(
            "up to 14.0 GiB in use that no listed process holds; 1 listed process without"
        )
        assert "Windows itself has the figures" in words(found)
        assert "1 process not measured" in explanation["answer"]


def test_report_043_a_card_that_is_cut_into_partitions_is_no_riddle() -> None:
    # sacred#864: the parent's figures are refused, its partitions have their own.
    parent = adapter(0, total=40 * GIB, used=30 * GIB, busy="null:not-supported", listed="null:partitioned")
    explanation = explain(snapshot([parent], []))
    assert codes(explanation) == []
    assert explanation["answer"] == "30.0 of 40.0 GiB used, see its partitions."


def test_processes_that_nobody_asked_for_are_no_finding() -> None:
    card = adapter(used=9 * GIB, listed="null:not-requested --no-processes")
    assert codes(explain(snapshot([card], None))) == []


def test_a_detached_model_server_of_a_file_is_no_orphan_and_its_workers_are() -> None:
    llm = llm_facts(server="vllm")
    server = process(50, 9 * GIB, name="vllm", ppid=1, category="llm", llm=llm)
    worker = process(51, 9 * GIB, name="VLLM::Worker", ppid=1, category="llm", llm=llm)
    found = codes(explain(snapshot([adapter(total=80 * GIB, used=9 * GIB)], [server]), around=Surroundings()))
    assert "orphan-workers" not in found
    found = codes(explain(snapshot([adapter(total=80 * GIB, used=9 * GIB)], [worker]), around=Surroundings()))
    assert "orphan-workers" in found


def test_a_mac_whose_programs_all_belong_to_launchd_has_no_orphans() -> None:
    row = process(50, 9 * GIB, ppid=1, category="llm")
    document = snapshot([adapter(used=9 * GIB, vendor="apple")], [row], platform="macos")
    assert "orphan-workers" not in codes(explain(document))


def test_one_of_several_orphans_is_explained_as_one() -> None:
    rows = [process(9811 + n, 9 * GIB, name="VLLM::Worker", ppid=1, user="bob") for n in range(8)]
    document = snapshot([adapter(total=80 * GIB, used=73 * GIB)], rows)
    explanation = explain_snapshot(document, Chosen("process", pid=9813), viewer=ALICE, around=QUIET).document
    assert "orphan-workers" in codes(explanation)


def test_report_127_a_cards_number_says_whose_order_it_is_and_which_card_that_is() -> None:
    # gpustack#1633: an A2000 before an RTX 4090 on the bus; CUDA, which counts the fastest first, swaps them.
    cards = [adapter(0, model="NVIDIA RTX A2000"), adapter(1, model="NVIDIA GeForce RTX 4090")]
    document = snapshot(cards, [process(4711, GIB, on=1)])
    for chosen in (Chosen("adapter", adapter=cards[1]["id"]), Chosen("process", pid=4711), Chosen("host")):
        shown = " ".join(" ".join(lines_of(document, chosen)).split())
        assert "GPU-00000001-0000-4000-8000-000000000000 · 0000:02:00.0" in shown
        assert "1 as NVML and nvidia-smi count, by PCI address; CUDA counts the fastest card first unless" in shown
        assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in shown


def test_cards_of_one_model_have_one_order() -> None:
    cards = [adapter(0), adapter(1)]
    shown = lines_of(snapshot(cards, []), Chosen("adapter", adapter=cards[1]["id"]))
    assert any("0000:02:00.0" in line for line in shown)
    assert not any("CUDA" in line for line in shown)


def lines_of(document: Snapshot, chosen: Chosen) -> list[str]:
    return explain_lines(explain_snapshot(document, chosen, viewer=ALICE, around=QUIET), Screen(None))
