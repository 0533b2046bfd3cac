"""Public reports of cards that are full and nobody knows of what: the finding and the words that help.

The number in a test's name is the report's in the project's list of cases; figures quoted there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap.explain.explanation import explain_history, explain_snapshot
from gpusnap.explain.history import History
from gpusnap.explain.subject import Chosen
from gpusnap.explain.view import Parent, Surroundings, Viewer
from tests.builders import GIB, MIB, START, adapter, backend, holder, llm_facts, model_facts, process, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Explanation, Finding, Snapshot

ALICE = Viewer(1000, "alice")
ROOT = Viewer(0, "root")
QUIET = Surroundings(listening=frozenset())


def explain(document: Snapshot, viewer: Viewer = ALICE, around: Surroundings = QUIET) -> Explanation:
    return explain_snapshot(document, viewer=viewer, around=around).document


def only(explanation: Explanation, code: str) -> Finding:
    (found,) = [one for one in explanation["findings"] if one["code"] == code]
    return found


def codes(explanation: Explanation) -> list[str]:
    return [one["code"] for one in explanation["findings"]]


def words(finding: Finding) -> str:
    return " ".join([finding["title"], *finding["evidence"], *finding["advice"]])


def everything(explanation: Explanation) -> str:
    return " ".join([explanation["answer"], *(words(one) for one in explanation["findings"])])


def recording(documents: list[Snapshot]) -> Explanation:
    return explain_history(History().feed(documents), viewer=ALICE).document


def test_report_001_a_card_that_cannot_list_is_not_a_card_without_processes() -> None:
    # kitty#3077: 350 of 1996 MiB used, load not available, list not supported.
    card = adapter(total=1996 * MIB, used=350 * MIB, busy="null:not-supported", listed="null:not-supported")
    answer = explain(snapshot([card], None))["answer"]
    assert "350 MiB of 1.9 GiB" in answer or "0.3 of 1.9 GiB" in answer
    assert "can't be attributed, since processes can't be listed: not supported" in answer


def test_report_005_a_process_that_hidepid_hides_is_neither_gone_nor_exited() -> None:
    # telegraf#15698: /proc mounted hidepid=2.
    hidden = process(4711, 8 * GIB, name="null:no-permission", user="null:no-permission", state=None, ppid=None)
    documents = [
        snapshot([adapter(used=8 * GIB)], [hidden], at=START + 10 * step, uptime=10.0 * step) for step in range(4)
    ]
    assert codes(explain(documents[0])) == []
    assert history_events(documents) == []


def history_events(documents: list[Snapshot]) -> list[str]:
    return [event.kind for event in History().feed(documents).events]


def test_report_007_a_dropped_notebook_card_by_card() -> None:
    # notebook#5421: card 7 holds 8525 MiB at 0 %, no process listed; another card is busy.
    cards = [
        adapter(0, total=11 * GIB, used=9 * GIB, busy=97),
        adapter(7, total=11 * GIB, used=8525 * MIB, busy=0, holders=[]),
    ]
    explanation = explain(snapshot(cards, [process(99, 9 * GIB, user="carol")]))
    found = only(explanation, "unattributed-memory")
    assert found["subject"]["adapter"] == cards[1]["id"]
    assert "8.3 GiB in use that no listed process holds" in found["title"]
    assert "ipykernel" in words(found)
    assert explanation["answer"].startswith("GPU 7: 8.3 of 11.0 GiB used and no process listed, 0 % busy")


def test_report_025_a_zombie_whose_living_child_keeps_the_context() -> None:
    # mxnet#4242: the parent 31794 is a zombie with 5371 MiB, an IO child has /dev/nvidia0 open.
    card = adapter(total=12 * GIB, used=5400 * MIB, holders=[holder(31801, "python", "alice")])
    document = snapshot([card], [process(31794, 5371 * MIB, state="zombie", cmdline=None, exe=None, ppid=31000)])
    around = Surroundings({31801: Parent(31794, "python"), 31794: Parent(31000, "bash")}, frozenset())
    found = only(explain(document, around=around), "zombie-or-dstate-holder")
    said = words(found)
    assert "zombie" in found["title"]
    assert "a child lives and keeps the context: pid 31801 python" in said
    assert "its parent 31000 bash" in said
    assert "End the living child pid 31801" in said
    assert "kill 31794" not in said


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


def test_report_028_a_steady_aggregate_is_no_alarm() -> None:
    # wandb#9347: volatile 0, aggregate 37, one row remapped: a healthy card.
    ecc = {
        "ecc.uncorrected_volatile": 0,
        "ecc.corrected_volatile": 0,
        "ecc.corrected_aggregate": 37,
        "ecc.uncorrected_aggregate": 0,
        "ecc.remapped_rows": 1,
    }
    documents = [
        snapshot([adapter(used=GIB, leaves=ecc)], [process(1)], at=START + 60 * n, uptime=60.0 * n)
        for n in range(20)
    ]
    assert "ecc-growth" not in codes(explain(documents[0]))
    assert "ecc-growth" not in codes(recording(documents))
    # With an error both counters stand there with their meaning.
    worse = snapshot([adapter(used=GIB, leaves={**ecc, "ecc.uncorrected_volatile": 2})], [process(1)])
    said = words(only(explain(worse), "ecc-growth"))
    assert "volatile (since the driver was loaded): 0 corrected, 2 uncorrected" in said
    assert "aggregate (in the card's life): 37 corrected, 0 uncorrected" in said


def test_report_044_state_d_says_that_kill_will_not_work() -> None:
    # pai#3375: a process in D state keeps 8 GiB after its job was stopped.
    document = snapshot([adapter(used=8 * GIB)], [process(555, 8 * GIB, state="disk-sleep", user="bob")])
    said = words(only(explain(document), "zombie-or-dstate-holder"))
    assert "uninterruptible sleep (D)" in said
    assert "kill does not work" in said
    assert "a reboot is likely needed" in said


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


def test_report_058_a_pid_that_does_not_exist_has_two_explanations_and_no_kill() -> None:
    # nvitop#134: NVML lists 56752 with 32.34 GiB, kill -9 and fuser+kill do nothing.
    for why in ("null:exited", "null:other-pid-namespace"):
        row = process(56752, round(32.34 * GIB), name=why, user=why, start_ticks=None, ppid=None, state=None)
        card = adapter(total=40 * GIB, used=33 * GIB, busy=100)
        found = only(explain(snapshot([card], [row]), ROOT), "zombie-or-dstate-holder")
        said = words(found)
        assert "32.3 GiB" in found["title"]
        assert "in another PID namespace (a container): on the host, ps -p 56752" in said
        assert "the driver still keeps its context" in said
        assert "kill" not in said


def test_report_062_a_zombie_that_only_one_list_has_is_found_by_its_state() -> None:
    # nvtop#70: 3591263 in the graphics list only, state Z.
    row = process(3591263, 700 * MIB, state="zombie", type="graphics", category="unknown")
    found = only(explain(snapshot([adapter(used=GIB)], [row])), "zombie-or-dstate-holder")
    assert found["subject"]["pid"] == 3591263
    assert "700 MiB" in words(found)


def test_report_064_who_holds_a_card_for_a_day_at_zero_percent() -> None:
    # odh-manifests#265: 12 GiB held, 0 % in all samples of a day; never from a single snapshot.
    documents = [
        snapshot(
            [adapter(total=16 * GIB, used=13 * GIB, busy=0)],
            [process(77, 12 * GIB, user="bob")],
            at=START + 600 * step,
            uptime=600.0 * step,
        )
        for step in range(145)
    ]
    explanation = recording(documents)
    found = only(explanation, "idle-but-full")
    assert "python (pid 77, bob) held 12.0 GiB for 1 d 0 h, the card 0 % busy at most" in words(found)
    assert "0 % busy in all 145 samples" in explanation["answer"]
    single = only(explain(documents[-1]), "idle-but-full")
    assert "now" in single["title"]
    assert "1 d" not in single["title"]
    # On a card that is not full the holder is named too.
    roomy = [
        snapshot(
            [adapter(total=80 * GIB, used=13 * GIB, busy=0)],
            [process(77, 12 * GIB, user="bob")],
            at=START + 600 * step,
            uptime=600.0 * step,
        )
        for step in range(145)
    ]
    assert "(pid 77, bob) held 12.0 GiB for 1 d 0 h" in recording(roomy)["answer"]


def test_report_065_memory_errors_come_before_memory_theories() -> None:
    # k8s-device-plugin#243: one uncorrected error, 4617 MiB used, 100 %, allocations fail.
    card = adapter(total=16 * GIB, used=4617 * MIB, busy=100, leaves={"ecc.uncorrected_volatile": 1})
    explanation = explain(snapshot([card], [process(1, GIB)]))
    assert codes(explanation)[0] == "ecc-growth"
    assert "unattributed-memory" in codes(explanation)
    assert explanation["answer"] == "GPU 0 has 1 uncorrected memory error."
    assert "out-of-memory" in words(explanation["findings"][0])


def test_report_073_orphans_after_ctrl_c_are_found_by_their_open_files() -> None:
    # pytorch#4031: 7829 MiB left; the workers have ppid 1 and hold the device; they started together.
    workers = [holder(4700 + n, "python", "alice", start_ticks=100_000 + 9 * n) for n in range(4)]
    around = Surroundings({worker["pid"]: Parent(1, "systemd") for worker in workers}, frozenset())
    card = adapter(total=12 * GIB, used=7829 * MIB, holders=workers)
    found = only(explain(snapshot([card], []), around=around), "unlisted-holder")
    said = words(found)
    assert "4 processes not listed by the driver hold the card open, 4 of them orphaned" in found["title"]
    assert "started within one minute: workers of one run" in said
    assert "They are yours" in said


def test_report_080_what_fuser_would_show_with_sizes_unknown() -> None:
    # PaddleOCR#2074: list empty; 4711 and 4712 (DataLoader workers) hold /dev/nvidia0, parent 1.
    holders = [holder(4711, "python", "bob"), holder(4712, "python", "bob")]
    around = Surroundings({4711: Parent(1, "init"), 4712: Parent(1, "init")}, frozenset())
    found = only(explain(snapshot([adapter(used=6 * GIB, holders=holders)], []), around=around), "unlisted-holder")
    said = words(found)
    assert "pid 4711 python (bob): /dev/nvidia0 open, sleeping, parent 1 init; size unknown" in said
    assert "2 of them orphaned" in found["title"]


def under_load(step: int) -> tuple[int, int]:
    """(used, load): +80 MiB in each busy sample, level in idle ones."""
    busy = step % 4 < 2
    return 8 * GIB + 80 * MIB * ((step // 4) * 2 + min(step % 4, 1) + 1), 70 if busy else 0


def test_report_082_growth_only_under_load_is_not_called_a_leak() -> None:
    # vllm#8413: 60 samples, idle it does not rise, called it does.
    documents = []
    for step in range(60):
        used, load = under_load(step)
        documents.append(
            snapshot(
                [adapter(total=24 * GIB, used=used, busy=load)],
                [process(5, used)],
                at=START + 60 * step,
                uptime=60.0 * step,
            )
        )
    explanation = recording(documents)
    found = only(explanation, "grows-under-load")
    assert {"leak", "step-leak"}.isdisjoint(codes(explanation))
    assert "it rises only in samples with load" in words(found)
    assert "0 B in idle ones" in words(found)
    # The first requests alone: it levels off, and nothing is said to grow.
    first = [documents[min(step, 12)] for step in range(60)]
    levelled = [
        {**document, "taken_at": documents[step]["taken_at"], "uptime_seconds": documents[step]["uptime_seconds"]}
        for step, document in enumerate(first)
    ]
    assert {"leak", "step-leak", "grows-under-load"}.isdisjoint(codes(recording(levelled)))  # type: ignore[arg-type]
    # Six samples are not enough to tell.
    assert recording(documents[:6])["series"][0]["verdict"] == "not enough to tell"


def test_report_097_an_ordinary_user_gets_a_text_for_the_admin() -> None:
    # FastMRI_challenge#238: 6 GB always taken, list empty; node after node.
    card = adapter(3, total=24 * GIB, used=6 * GIB, holders=[])
    explanation = explain(snapshot([card], []))
    said = words(only(explanation, "unattributed-memory"))
    assert "likely another user's leftover" in said
    assert "Only root can see whose it is" in said
    assert (
        'To the admin: "GPU 3 on node12: 6.0 GiB in use at 2026-11-30 12:00Z that no listed process holds' in said
    )
    assert "gpusnap explain gpu:3" in said
    assert "To the admin" not in words(only(explain(snapshot([card], []), ROOT), "unattributed-memory"))


def test_report_098_the_two_steps_a_maintainer_answered_with_are_done() -> None:
    # PaddleDetection#176: find the hung process with top, then with fuser.
    hung = holder(6100, "python", "alice", state="disk-sleep")
    explanation = explain(snapshot([adapter(used=9 * GIB, holders=[hung])], []))
    assert "pid 6100 python (alice): /dev/nvidia0 open, disk-sleep" in words(only(explanation, "unlisted-holder"))
    assert "state D" in words(only(explanation, "zombie-or-dstate-holder"))


def test_report_100_growth_outside_of_the_cache_is_named_so() -> None:
    # llama.cpp#23446: with q8_0 caches a llama-server grows with each run, the cache itself does not.
    llm = llm_facts(server="llama-server", weights_bytes=8 * GIB, kv_cache_bytes=2 * GIB, kv_type_k="q8_0")
    documents = [
        snapshot(
            [adapter(total=24 * GIB, used=11 * GIB + 30 * MIB * step, busy=40)],
            [process(4711, 10 * GIB + 30 * MIB * step, name="llama-server", category="llm", llm=llm)],
            at=START + 60 * step,
            uptime=60.0 * step,
        )
        for step in range(100)
    ]
    found = only(recording(documents), "leak")
    assert "constant: weights 8.0 GiB, KV cache 2.0 GiB; what grows is compute buffers or other memory" in words(
        found
    )


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


def test_report_116_holders_first_and_never_kill_all_that_fuser_prints() -> None:
    # UGhostX: "ghost memory", 22 GiB used, list empty; /dev/nvidia0 is held by another user's pid.
    holders = [
        holder(12, "nvidia-persistenced", "root"),
        holder(900, "Xorg", "root"),
        holder(4242, "python", "bob"),
    ]
    explanation = explain(snapshot([adapter(total=24 * GIB, used=22 * GIB, holders=holders)], []))
    assert codes(explanation)[0] == "unlisted-holder"
    said = everything(explanation)
    assert "pid 4242 python (bob)" in said
    assert "Do not end everything that `fuser` prints" in said
    assert "900" not in words(only(explanation, "unlisted-holder"))
    assert "kill" not in said


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


def test_report_122_unreadable_processes_are_counted_and_the_list_not_called_complete() -> None:
    # amdgpu_top#114: fdinfo of a non-dumpable process is root's.
    card = adapter(used=6 * GIB, vendor="amd", listed="partial", leaves={"unreadable_pids": 3})
    explanation = explain(snapshot([card], [process(1, GIB)]))
    found = only(explanation, "unattributed-memory")
    assert found["title"].startswith("up to 5.0 GiB")
    assert "3 processes of other users could not be looked into" in words(found)
    assert "up to 5.0 unattributed" in explanation["answer"]


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


def test_report_032_a_process_that_only_opened_the_device_gets_no_diagnosis() -> None:
    # legacy-rocm-build#4411: kfd open, 0 bytes.
    row = process(1, 0, name="rocm_agent", ppid=1)
    assert codes(explain(snapshot([adapter(used=0, vendor="amd")], [row]))) == []


def test_report_056_managed_memory_is_a_candidate_and_no_ghost() -> None:
    # nvtop#213: 12 GiB used, the pid shows 200 MiB, the program uses cudaMallocManaged.
    card = adapter(total=16 * GIB, used=12 * GIB, busy=90, holders=[])
    said = words(only(explain(snapshot([card], [process(5, 200 * MIB)]), ROOT), "unattributed-memory"))
    assert "11.8 GiB" in said
    assert "managed memory (cudaMallocManaged)" in said


def test_report_061_a_slice_without_a_load_figure_is_not_idle() -> None:
    # nvtop#256: utilisation is not supported under MIG.
    card = adapter(total=10 * GIB, used=9 * GIB, busy="null:not-supported")
    explanation = explain(snapshot([card], [process(5, 9 * GIB)]))
    assert "idle-but-full" not in codes(explanation)
    assert "0 % busy" not in everything(explanation)


def test_report_076_inside_a_pod_the_list_is_filtered() -> None:
    # gpu-operator#664: 7 GiB used, nothing listed inside the pod.
    explanation = explain(snapshot([adapter(used=7 * GIB, holders=[])], [], container=True))
    said = words(only(explanation, "unattributed-memory"))
    assert "inside a container, and the list is filtered" in said
    assert "hostPID: true" in said


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
    # The sentence of design.md, section 1: 15.6 of 16.0 GiB.
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
