"""Public reports of memory whose holder is hidden, hung or gone: the finding and the words that help.

The number in a test's name is the report's in the project's list of cases; figures quoted there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.history import History
from gpusnap.explain.view import Parent, Surroundings
from tests.builders import GIB, MIB, START, adapter, holder, process, snapshot
from tests.explaining import ROOT, codes, everything, explain, only, words

if TYPE_CHECKING:
    from gpusnap.model import Snapshot


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


def test_report_044_state_d_says_that_kill_will_not_work() -> None:
    # pai#3375: a process in D state keeps 8 GiB after its job was stopped.
    document = snapshot([adapter(used=8 * GIB)], [process(555, 8 * GIB, state="disk-sleep", user="bob")])
    said = words(only(explain(document), "zombie-or-dstate-holder"))
    assert "uninterruptible sleep (D)" in said
    assert "kill does not work" in said
    assert "a reboot is likely needed" in said


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


def test_report_122_unreadable_processes_are_counted_and_the_list_not_called_complete() -> None:
    # amdgpu_top#114: fdinfo of a non-dumpable process is root's.
    card = adapter(used=6 * GIB, vendor="amd", listed="partial", leaves={"unreadable_pids": 3})
    explanation = explain(snapshot([card], [process(1, GIB)]))
    found = only(explanation, "unattributed-memory")
    assert found["title"].startswith("up to 5.0 GiB")
    assert "3 processes of other users could not be looked into" in words(found)
    assert "up to 5.0 unattributed" in explanation["answer"]


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


def test_report_076_inside_a_pod_the_list_is_filtered() -> None:
    # gpu-operator#664: 7 GiB used, nothing listed inside the pod.
    explanation = explain(snapshot([adapter(used=7 * GIB, holders=[])], [], container=True))
    said = words(only(explanation, "unattributed-memory"))
    assert "inside a container, and the list is filtered" in said
    assert "hostPID: true" in said
