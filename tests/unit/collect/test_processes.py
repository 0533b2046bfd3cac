"""Facts of a process on kept machines: whose name it is, and what stands there when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusnap.collect.processes import FACT_LEAVES
from gpusnap.timefmt import rfc3339
from tests.unit.collect.machine import (
    CONTAINER,
    INITIAL,
    KTHREAD_FLAGS,
    host,
    no_question,
    nulls,
    process,
    says,
    table,
    values,
)

if TYPE_CHECKING:
    from pathlib import Path

DOCKER = "0::/system.slice/docker-3fd1f8e8b5a2c4d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e.scope"


def test_every_leaf_of_a_process_that_can_be_read(tmp_path: Path) -> None:
    tree = INITIAL + process(
        4711, "llama-server", ppid=42, start=500_000, rss=1000, state="R", uid=1000, cgroup=DOCKER,
        cmdline="llama-server\\0-m\\0/models/q.gguf\\0", exe="/usr/bin/llama-server (deleted)",
    )  # fmt: skip
    machine = host(tmp_path, tree, wall_time=1_796_040_000.0, uptime=86_400.0, page_size=4096)
    facts = table(machine).facts(4711, "driver", no_question)
    assert set(facts) == set(FACT_LEAVES)
    expected = {
        "pid_namespace": "host",
        "start_ticks": 500_000,
        "started_at": rfc3339(1_796_040_000.0 - 86_400.0 + 5_000.0),  # booted a day ago, started 5000 s later
        "ppid": 42,
        "name": "llama-server",
        "exe": "/usr/bin/llama-server (deleted)",
        "cmdline": ["llama-server", "-m", "/models/q.gguf"],
        "cwd": "/home/alice/run",
        "uid": 1000,
        "user": "alice",
        "state": "running",
        "container_id": "3fd1f8e8b5a2c4d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e",
        "pod_uid": None,
        "systemd_unit": "docker-3fd1f8e8b5a2c4d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e.scope",
        "slurm_job_id": None,
        "self": False,
        "cpu_percent": None,
        "rss_bytes": 4_096_000,
    }
    assert {leaf: facts[leaf].value for leaf in expected} == expected
    assert facts["cpu_percent"].provenance == "null:needs-two-samples"
    assert facts["rss_bytes"].provenance == "measured:proc.stat"
    assert facts["pod_uid"].provenance == facts["slurm_job_id"].provenance == "null:none"


@pytest.mark.parametrize(
    ("letter", "state"),
    [("R", "running"), ("S", "sleeping"), ("I", "sleeping"), ("D", "disk-sleep"), ("T", "stopped"),
     ("t", "stopped"), ("Z", "zombie"), ("X", "dead")],
)  # fmt: skip
def test_report_044_062_the_state_is_in_the_contracts_words(tmp_path: Path, letter: str, state: str) -> None:
    machine = host(tmp_path, INITIAL + process(5, state=letter))
    assert table(machine).facts(5, "driver", no_question)["state"].value == state


def test_an_unknown_state_letter_costs_the_state_only(tmp_path: Path) -> None:
    facts = table(host(tmp_path, INITIAL + process(5, state="Q"))).facts(5, "driver", no_question)
    assert facts["state"].provenance == "null:unknown-format state Q"
    assert facts["name"].value == "python3"


def test_report_025_a_zombie_keeps_its_name_user_and_parent(tmp_path: Path) -> None:
    tree = INITIAL + process(31794, "python", state="Z", ppid=31000, cmdline="", start=77)
    tree = tree.replace("--- proc/31794/exe -> /usr/bin/python3.11\n", "").replace(
        "--- proc/31794/cwd -> /home/alice/run\n", ""
    )
    facts = table(host(tmp_path, tree)).facts(31794, "driver", no_question)
    found = values(facts)
    assert (found["state"], found["name"], found["ppid"], found["user"], found["start_ticks"]) == (
        "zombie", "python", 31000, "alice", 77,
    )  # fmt: skip
    for leaf in ("exe", "cwd", "cmdline"):
        assert facts[leaf].provenance == "null:exited zombie"


def test_a_kernel_thread_has_no_program_and_no_arguments(tmp_path: Path) -> None:
    tree = INITIAL + process(88, "nvidia-modeset/", flags=KTHREAD_FLAGS, ppid=2, cmdline="", uid=0, cgroup="0::/")
    tree = tree.replace("--- proc/88/exe -> /usr/bin/python3.11\n", "")
    processes = table(host(tmp_path, tree))
    facts = processes.facts(88, "driver", no_question)
    assert facts["exe"].provenance == "null:none"
    assert facts["cmdline"].value == []
    assert facts["container_id"].provenance == "null:none"
    assert processes.is_kernel_thread(88)


def test_report_004_a_pid_that_is_gone_is_a_row_of_exited_nulls(tmp_path: Path) -> None:
    facts = table(host(tmp_path, INITIAL)).facts(30094, "driver", no_question)
    assert values(facts)["pid_namespace"] == "host"
    assert values(facts)["self"] is False
    others = set(FACT_LEAVES) - {"pid_namespace", "self"}
    assert {leaf: facts[leaf].provenance for leaf in others} == dict.fromkeys(others, "null:exited")


def test_report_004_files_that_vanish_one_by_one_cost_their_own_leaves(tmp_path: Path) -> None:
    tree = INITIAL + process(5).replace("--- proc/5/status\n", "--- proc/5/status !ENOENT\n")
    tree = tree.replace("--- proc/5/cmdline escaped\n", "--- proc/5/cmdline !ESRCH\n")
    facts = table(host(tmp_path, tree)).facts(5, "driver", no_question)
    assert {leaf for leaf, why in nulls(facts).items() if why == "null:exited"} == {"uid", "user", "cmdline"}
    assert facts["name"].value == "python3"


def test_report_005_kill_proves_alive_what_hidepid_hides(tmp_path: Path) -> None:
    processes = table(host(tmp_path, INITIAL, pids=[8000]))
    hidden = processes.facts(8000, "driver", no_question)
    assert hidden["state"].provenance == hidden["name"].provenance == "null:no-permission hidepid"
    assert processes.facts(8001, "driver", no_question)["state"].provenance == "null:exited"


def test_report_005_hidepid_under_a_foreign_procfs_is_told_by_pid_1(tmp_path: Path) -> None:
    # kill(pid, 0) would ask about this container's own numbers there.
    kthreadd = "--- proc/2/stat\n2 (kthreadd) S 0 0\n"
    shown = host(tmp_path / "shown", kthreadd + process(1, "systemd"), procfs_is_foreign=True)
    hidden = host(tmp_path / "hidden", kthreadd, procfs_is_foreign=True)
    assert table(shown).facts(8000, "driver", no_question)["name"].provenance == "null:exited"
    assert table(hidden).facts(8000, "driver", no_question)["name"].provenance == "null:no-permission hidepid"


@pytest.mark.parametrize(
    ("error", "words"), [("EACCES", "no-permission EACCES proc.stat"), ("EPERM", "no-permission hidepid")]
)
def test_an_unreadable_stat_is_no_permission(tmp_path: Path, error: str, words: str) -> None:
    tree = f"--- proc/5/stat !{error}\n"
    facts = table(host(tmp_path / "host", INITIAL + tree)).facts(5, "driver", no_question)
    assert facts["name"].provenance == f"null:{words}"
    inside = table(host(tmp_path / "container", CONTAINER + tree)).facts(5, "driver", no_question)
    assert inside["name"].provenance == "null:other-pid-namespace"


def test_a_failing_read_is_a_failure_and_no_exit(tmp_path: Path) -> None:
    facts = table(host(tmp_path, INITIAL + "--- proc/5/stat !EIO\n")).facts(5, "driver", no_question)
    assert facts["name"].provenance == "null:failed EIO proc.stat"


def test_report_031_what_only_the_owner_may_read_costs_its_own_leaves(tmp_path: Path) -> None:
    tree = INITIAL + process(5).replace("exe -> /usr/bin/python3.11", "exe !EACCES")
    tree = tree.replace("cwd -> /home/alice/run", "cwd !EACCES").replace("proc/5/fd/ dir", "proc/5/fd !EACCES")
    facts = table(host(tmp_path, tree)).facts(5, "driver", no_question)
    assert facts["exe"].provenance == facts["cwd"].provenance == "null:no-permission EACCES"
    assert (facts["name"].value, facts["user"].value) == ("python3", "alice")


def test_report_031_a_user_without_a_name_keeps_the_number(tmp_path: Path) -> None:
    facts = table(host(tmp_path, INITIAL + process(5, uid=4242))).facts(5, "driver", no_question)
    assert (facts["uid"].value, facts["user"].provenance) == (4242, "null:none")


def test_the_overflow_uid_is_nobody_only_outside_a_user_namespace(tmp_path: Path) -> None:
    users = {"65534": "nobody"}
    tree = INITIAL + process(5, uid=65534)
    outside = table(host(tmp_path / "a", tree + "--- proc/self/ns/user -> user:[4026531837]\n", users=users))
    inside = table(host(tmp_path / "b", tree + "--- proc/self/ns/user -> user:[4026532999]\n", users=users))
    assert outside.facts(5, "driver", no_question)["user"].value == "nobody"
    unmapped = inside.facts(5, "driver", no_question)
    assert unmapped["user"].provenance == "null:ambiguous uid of another user namespace"
    assert unmapped["uid"].value is None


def test_report_020_040_a_drivers_pid_inside_a_container_keeps_its_row_and_gets_no_name(tmp_path: Path) -> None:
    facts = table(host(tmp_path, CONTAINER)).facts(28290, "driver", no_question)
    assert facts["pid_namespace"].value == "host"
    others = set(FACT_LEAVES) - {"pid_namespace", "self"}
    assert {leaf: facts[leaf].provenance for leaf in others} == dict.fromkeys(others, "null:other-pid-namespace")


def test_report_040_a_process_that_shares_the_number_never_lends_its_name(tmp_path: Path) -> None:
    machine = host(tmp_path, CONTAINER + process(3310, "bash", uid=0), own_pid=3310)
    facts = table(machine).facts(3310, "driver", says(False))
    assert facts["name"].provenance == "null:other-pid-namespace"
    assert facts["self"].value is False
    assert table(machine).raw_words(3310) == []


def test_in_a_container_a_process_that_holds_a_gpu_file_is_believed(tmp_path: Path) -> None:
    processes = table(host(tmp_path, CONTAINER + process(7, "python3")))
    facts = processes.facts(7, "driver", lambda pid: pid == 7)
    assert (facts["name"].value, facts["pid_namespace"].value) == ("python3", "container")
    assert processes.raw_words(7) == ["python3", "train.py"]


def test_an_unreadable_fd_folder_never_takes_a_name_away(tmp_path: Path) -> None:
    facts = table(host(tmp_path, CONTAINER + process(7, "python3"))).facts(7, "driver", says(None))
    assert (facts["name"].value, facts["pid_namespace"].value) == ("python3", "unknown")


def test_report_058_a_dead_pid_and_a_strangers_pid_are_told_apart(tmp_path: Path) -> None:
    dead = table(host(tmp_path / "host", INITIAL)).facts(56752, "driver", no_question)
    stranger = table(host(tmp_path / "container", CONTAINER)).facts(56752, "driver", no_question)
    assert dead["state"].provenance == "null:exited"
    assert stranger["state"].provenance == "null:other-pid-namespace"


def test_a_pid_read_from_this_procfs_needs_no_proof(tmp_path: Path) -> None:
    processes = table(host(tmp_path, CONTAINER + process(7, "glxgears")))
    facts = processes.facts(7, "here", no_question)
    assert (facts["name"].value, facts["pid_namespace"].value) == ("glxgears", "container")
    gone = processes.facts(8, "here", no_question)
    assert (gone["name"].provenance, gone["pid_namespace"].value) == ("null:exited", "container")


def test_where_nothing_tells_the_namespace_the_proof_is_asked_for(tmp_path: Path) -> None:
    processes = table(host(tmp_path, process(7) + process(8)))
    assert processes.facts(7, "driver", says(True))["pid_namespace"].value == "unknown"
    assert processes.facts(8, "driver", says(False))["name"].provenance == "null:other-pid-namespace"


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        ("--- proc/1/ns/pid -> pid:[4026531836]\n", "python3"),
        ("--- proc/1/ns/pid !EACCES\n--- proc/2/stat\n2 (kthreadd) S 0 0\n", "python3"),
        ("--- proc/1/ns/pid -> pid:[4026532741]\n", None),
        ("--- proc/1/ns/pid !EACCES\n--- proc/2/stat\n2 (sh) S 1 0\n", None),
        # The reader's own namespace says nothing of the procfs that it looks at.
        (INITIAL + "--- proc/1/ns/pid -> pid:[4026532741]\n", None),
    ],
)
def test_a_foreign_procfs_is_the_hosts_if_pid_1_or_kthreadd_says_so(
    tmp_path: Path, tree: str, name: str | None
) -> None:
    machine = host(tmp_path, tree + process(7), procfs_is_foreign=True)
    assert table(machine).facts(7, "driver", says(False))["name"].value == name


def test_wsl_trusts_no_number_across_the_border(tmp_path: Path) -> None:
    machine = host(tmp_path, INITIAL + process(79, "init"), platform="wsl")
    facts = table(machine).facts(79, "driver", no_question)
    assert facts["name"].provenance == "null:other-pid-namespace WSL"
    assert facts["pid_namespace"].value == "unknown"


def test_under_a_foreign_procfs_names_come_from_its_own_user_table(tmp_path: Path) -> None:
    tree = "--- proc/1/ns/pid -> pid:[4026531836]\n" + process(7, uid=1000) + process(8, uid=1001)
    names = "--- proc/1/root/etc/passwd\nroot:x:0:0::/root:/bin/sh\nbob:x:1000:1000::/home/bob:/bin/sh\n"
    readable = table(host(tmp_path / "a", tree + names, procfs_is_foreign=True))
    assert readable.facts(7, "driver", no_question)["user"].value == "bob"  # alice in this container
    assert readable.facts(8, "driver", no_question)["user"].provenance == "null:none"
    denied = table(host(tmp_path / "b", tree + "--- proc/1/root !EACCES\n", procfs_is_foreign=True))
    assert denied.facts(7, "driver", no_question)["user"].provenance == "null:no-permission 1/root/etc/passwd"


def test_inside_a_cgroup_namespace_the_root_path_is_no_answer(tmp_path: Path) -> None:
    tree = CONTAINER + process(7, cgroup="0::/") + process(8, cgroup=f"0::/../{'ab' * 32}")
    inside = table(host(tmp_path / "a", tree + "--- proc/self/ns/cgroup -> cgroup:[4026532900]\n"))
    assert inside.facts(7, "here", no_question)["container_id"].provenance == "null:not-exposed cgroup namespace"
    assert inside.facts(8, "here", no_question)["container_id"].value == "ab" * 32
    outside = table(host(tmp_path / "b", tree + "--- proc/self/ns/cgroup -> cgroup:[4026531835]\n"))
    assert outside.facts(7, "here", no_question)["container_id"].provenance == "null:none"


def test_own_row_is_marked(tmp_path: Path) -> None:
    processes = table(host(tmp_path, INITIAL + process(999, "gpusnap") + process(5), own_pid=999))
    assert processes.facts(999, "driver", no_question)["self"].value is True
    assert processes.facts(5, "driver", no_question)["self"].value is False


def test_the_time_namespaces_offset_is_taken_off(tmp_path: Path) -> None:
    # A container whose boot clock is set a week forward: `stat` and CLOCK_BOOTTIME both show it added.
    offsets = "--- proc/self/timens_offsets\nmonotonic           0         0\nboottime       604800         0\n"
    tree = INITIAL + offsets + process(5, start=500_000 + 60_480_000)
    machine = host(tmp_path, tree, wall_time=1_796_040_000.0, uptime=86_400.0 + 604_800.0)
    facts = table(machine).facts(5, "driver", no_question)
    assert facts["start_ticks"].value == 500_000
    assert facts["started_at"].value == rfc3339(1_796_040_000.0 - 86_400.0 + 5_000.0)


def test_garbage_in_stat_is_an_unknown_format_and_no_crash(tmp_path: Path) -> None:
    facts = table(host(tmp_path, INITIAL + "--- proc/5/stat\n5 (python3) S 1 2\n")).facts(5, "driver", no_question)
    assert facts["name"].provenance == "null:unknown-format proc.stat"


def test_garbage_in_status_costs_the_user_only(tmp_path: Path) -> None:
    tree = INITIAL + process(5).replace("Uid:\t1000", "Uid:\tx")
    facts = table(host(tmp_path, tree)).facts(5, "driver", no_question)
    # The effective uid is the second number, which is there still.
    assert facts["uid"].value == 1000
    tree = INITIAL + process(5).replace("Uid:", "Gid:")
    facts = table(host(tmp_path / "b", tree)).facts(5, "driver", no_question)
    assert facts["user"].provenance == facts["uid"].provenance == "null:unknown-format proc.status"
    assert facts["name"].value == "python3"


def test_report_011_names_and_words_that_are_not_utf8_stay_distinguishable(tmp_path: Path) -> None:
    tree = INITIAL + process(5, cmdline="python\\0/d\\xc3\\xff.py\\0\\x1b[31m\\0")
    facts = table(host(tmp_path, tree)).facts(5, "driver", no_question)
    assert facts["cmdline"].value == ["python", "/d\\xc3\\xff.py", "\\x1b[31m"]
