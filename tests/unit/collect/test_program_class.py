"""What a process does, over its life: programs change by execve, numbers are reused, workers inherit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.program_class import ProgramClasses
from tests.unit.collect.machine import CONTAINER, INITIAL, host, no_question, process, says, stat_line, table

if TYPE_CHECKING:
    from pathlib import Path

SPAWNED = "python3\\0-c\\0from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=37)\\0--fork\\0"
VLLM = "python3\\0-m\\0vllm.entrypoints.openai.api_server\\0"


def classes(folder: Path, tree: str, *later: str, pid: int) -> list[tuple[object, object]]:
    """(category, role) in each sample."""
    machine = host(folder, INITIAL + tree, *later)
    processes = table(machine)
    programs = ProgramClasses(processes)
    found = []
    for _ in range(1 + len(later)):
        processes.begin_sample()
        category, role = programs.of(pid, processes.facts(pid, "driver", no_question))
        found.append((category.value, role.value))
        machine.sleep(1)
    return found


def test_a_spawned_worker_is_what_its_parent_is(tmp_path: Path) -> None:
    tree = process(50, "python3", cmdline=VLLM) + process(51, cmdline=SPAWNED, ppid=50)
    assert classes(tmp_path, tree + process(52, cmdline=SPAWNED, ppid=51), pid=52) == [
        ("llm", "LLM server (vLLM)")
    ]


def test_an_orphaned_worker_is_unknown(tmp_path: Path) -> None:
    tree = process(1, "systemd", ppid=0, exe="/usr/lib/systemd/systemd", cmdline="/sbin/init\\0")
    for folder, parents in (("init", tree), ("gone", "")):
        found = classes(tmp_path / folder, parents + process(52, cmdline=SPAWNED, ppid=1), pid=52)
        assert found == [("unknown", "Python program")]


def test_a_child_that_names_its_own_program_does_not_inherit(tmp_path: Path) -> None:
    tree = process(50, "python3", cmdline=VLLM) + process(51, cmdline="python3\\0report.py\\0", ppid=50)
    assert classes(tmp_path, tree, pid=51) == [("unknown", "Python program")]


def test_execve_and_a_reused_pid_are_classified_anew(tmp_path: Path) -> None:
    shell = process(5, "sh", exe="/usr/bin/dash", cmdline="sh\\0-c\\0x\\0", start=10)
    server = process(5, "llama-server", exe="/usr/bin/llama-server", cmdline="llama-server\\0", start=10)
    other = process(5, "llama-server", exe="/usr/bin/Xorg", cmdline="Xorg\\0", start=99)
    assert classes(tmp_path, shell, server, other, pid=5) == [
        ("unknown", None),
        ("llm", "LLM server (llama.cpp)"),
        ("desktop", "display server"),
    ]


def test_what_is_known_is_not_worked_out_again(tmp_path: Path) -> None:
    later = f"--- proc/5/stat\n{stat_line(5, 'Xorg')}--- proc/5/exe -> /usr/bin/other\n"
    tree = process(5, "Xorg", exe="/usr/bin/Xorg", cmdline="Xorg\\0")
    assert classes(tmp_path, tree, later, pid=5) == [("desktop", "display server")] * 2


def test_report_118_python_main_py_in_comfyuis_folder_is_comfyui(tmp_path: Path) -> None:
    tree = process(5, "python", cmdline="python\\0main.py\\0").replace("/home/alice/run", "/home/alice/ComfyUI")
    assert classes(tmp_path, tree, pid=5) == [("ai", "image generation (ComfyUI)")]


def test_a_stranger_has_a_category_and_no_role(tmp_path: Path) -> None:
    processes = table(host(tmp_path, CONTAINER + process(5, "Xorg")))
    category, role = ProgramClasses(processes).of(5, processes.facts(5, "driver", says(False)))
    assert (category.value, role.provenance) == ("unknown", "null:other-pid-namespace")
