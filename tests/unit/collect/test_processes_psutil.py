"""Process facts by psutil, held to `/proc` where there is one, and to what it answers of protected processes."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.collect.options import CollectOptions
from gpusnap.collect.processes import FACT_LEAVES, ProcessTable
from gpusnap.collect.processes_psutil import PsutilTable
from gpusnap.live import LiveHost
from tests.unit.collect.machine import no_question
from tests.unit.collect.pdh_machine import windows

if TYPE_CHECKING:
    from pathlib import Path

    from gpusnap.reading import Reading

DENIED = {"error": "access-denied"}


def facts_of(folder: Path, pid: int, answer: Any, **options: Any) -> dict[str, Reading]:
    table = PsutilTable(windows(folder, {f"process {pid}": answer}), CollectOptions(**options))
    facts = table.facts(pid, "driver", no_question)
    assert set(facts) == set(FACT_LEAVES)
    return facts


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is the yardstick")
def test_it_agrees_with_proc() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "--api-key", "sk-proj-A8f3kQ9z"]
    )
    try:
        host = LiveHost()
        deadline = time.monotonic() + 10
        while host.proc.read(f"{child.pid}/stat").split()[2] != b"S" and time.monotonic() < deadline:
            time.sleep(0.01)
        ours = PsutilTable(host, CollectOptions()).facts(child.pid, "here", no_question)
        theirs = ProcessTable(host, CollectOptions()).facts(child.pid, "here", no_question)
    finally:
        child.kill()
        child.wait()
    for leaf in ("ppid", "name", "exe", "cmdline", "cwd", "uid", "user", "state", "self"):
        assert ours[leaf].value == theirs[leaf].value, leaf
    assert ours["cmdline"].value[-1] == "***"  # type: ignore[index]


def test_report_031_what_is_denied_costs_its_own_value(tmp_path: Path) -> None:
    """gpustat#121: AccessDenied on dwm.exe's user ended the whole listing."""
    answer: dict[str, Any] = {
        "create_time": 1796030000.25,
        "name": "dwm.exe",
        "ppid": 700,
        "status": "running",
        "rss": 1 << 20,
    }
    facts = facts_of(
        tmp_path, 1180, {**answer, "username": DENIED, "exe": DENIED, "cmdline": DENIED, "cwd": DENIED}
    )
    assert (facts["name"].value, facts["ppid"].value, facts["state"].value) == ("dwm.exe", 700, "running")
    assert facts["start_ticks"].value == 1_796_030_000_250_000
    for leaf in ("user", "exe", "cmdline", "cwd"):
        assert facts[leaf].provenance.startswith("null:no-permission"), leaf
    assert facts["container_id"].provenance == "null:none"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"errno": "ESRCH"}, "null:exited"),
        ({"errno": "EACCES"}, "null:no-permission psutil"),
        ({"errno": "EIO"}, "null:failed"),
        ({"unsupported": "psutil"}, "null:failed psutil"),
    ],
)
def test_a_process_that_cannot_be_asked_keeps_its_row(tmp_path: Path, answer: Any, reason: str) -> None:
    facts = facts_of(tmp_path, 77, answer)
    assert facts["name"].provenance.startswith(reason)
    assert (facts["pid_namespace"].value, facts["self"].value) == ("host", False)


def test_secrets_do_not_pass(tmp_path: Path) -> None:
    words = ["llama-server.exe", "--api-key", "sk-proj-A8f3kQ9zLm2Xw7Rt5Yb1"]
    answer = {"create_time": 1.0, "name": "llama-server.exe", "cmdline": words}
    host = windows(tmp_path, {"process 7": answer})
    table = PsutilTable(host, CollectOptions())
    assert table.facts(7, "here", no_question)["cmdline"].value == ["llama-server.exe", "--api-key", "***"]
    assert table.raw_words(7) == words  # for model detection
    assert (
        PsutilTable(host, CollectOptions(cmdline="full")).facts(7, "here", no_question)["cmdline"].value == words
    )
    none = PsutilTable(host, CollectOptions(cmdline="none")).facts(7, "here", no_question)["cmdline"]
    assert none.provenance == "null:not-requested --cmdline none"


def test_cpu_needs_two_samples_of_the_same_process(tmp_path: Path) -> None:
    def answer(created: float, seconds: float) -> dict[str, Any]:
        return {"process 7": {"create_time": created, "name": "a", "cpu_seconds": seconds}}

    host = windows(tmp_path, answer(1.0, 10.0), answer(1.0, 11.0), answer(2.0, 50.0), answer(2.0, 49.0))
    table = PsutilTable(host, CollectOptions())
    shares = []
    for _ in range(4):
        table.begin_sample()
        shares.append(table.facts(7, "here", no_question)["cpu_percent"])
        host.sleep(2.0)
    assert [reading.value for reading in shares] == [None, 50.0, None, None]
    assert [reading.provenance.split(" ")[0] for reading in shares] == [
        "null:needs-two-samples",
        "computed:psutil.cpu_times",
        "null:needs-two-samples",  # the number belongs to another process now
        "null:out-of-range",
    ]


def test_windows_own_process_is_the_kernel(tmp_path: Path) -> None:
    table = PsutilTable(windows(tmp_path, {}), CollectOptions())
    assert [table.is_kernel_thread(pid) for pid in (0, 4, 8)] == [True, True, False]


@pytest.mark.skipif(sys.platform == "win32", reason="Popen holds on to a process that ended")
def test_a_dead_child_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    with pytest.raises(ProcessLookupError):
        LiveHost().raw("process", child.pid)
