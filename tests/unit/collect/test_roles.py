"""Categories and roles: a case and a near miss for every program of the table."""

from __future__ import annotations

import pytest

from gpusnap import fields
from gpusnap.collect.programs import PROGRAMS, SCRIPTS
from gpusnap.collect.roles import classify
from tests.unit.collect.role_cases import CASES, parse


@pytest.mark.parametrize(
    ("category", "role", "case", "_miss", "_other"), CASES, ids=[case[2][:40] for case in CASES]
)
def test_a_program_is_known(category: str, role: str, case: str, _miss: str, _other: str) -> None:
    assert classify(*parse(case)) == (category, role)


@pytest.mark.parametrize(
    ("_category", "role", "_case", "miss", "other"), CASES, ids=[case[3][:40] for case in CASES]
)
def test_what_looks_like_it_is_something_else(
    _category: str, role: str, _case: str, miss: str, other: str
) -> None:
    found = classify(*parse(miss))
    assert found[0] == other
    assert found[1] != role or other != _category


def test_the_table_holds_more_than_sixty_programs_in_every_category() -> None:
    assert len({case.split(" | ")[0] for _, _, case, _, _ in CASES}) >= 60
    assert {category for category, *_ in CASES} == set(fields.CATEGORIES) - {"unknown"}


def test_the_data_is_well_formed() -> None:
    names = [name for roles in PROGRAMS.values() for line in roles.values() for name in line.split(", ")]
    assert len(names) == len(set(names)), "a program stands in two places"
    assert set(PROGRAMS) | {category for category, _, _ in SCRIPTS} <= set(fields.CATEGORIES)
    marks = [mark for _, _, evidence in SCRIPTS for mark in evidence.split(", ")]
    assert len(marks) == len(set(marks)), "a mark stands in two places"
    assert not [text for text in [*names, *marks] if text != text.strip() or not text or "," in text]


@pytest.mark.parametrize(
    ("comm", "role"),
    [
        ("nvidia-modeset/kthread_q", "display output of the NVIDIA driver"),
        ("nv_queue", "NVIDIA driver"),
        ("UVM global queue", "unified memory of the NVIDIA driver"),
        ("irq/142-nvidia", "interrupts"),
        ("kworker/u64:3-i915", "kernel worker"),
        ("kswapd0", "kernel thread"),
    ],
)
def test_kernel_threads_are_the_kernels(comm: str, role: str) -> None:
    assert classify(comm, None, [], is_kernel_thread=True) == ("kernel", role)


def test_a_program_that_takes_a_kernel_threads_name_is_not_the_kernels() -> None:
    assert classify("kworker/0:1", "/tmp/.x/miner2", ["kworker/0:1"]) == ("unknown", None)


def test_the_executable_tells_more_than_the_name_that_a_process_gives_itself() -> None:
    assert classify("Xorg", "/usr/local/bin/llama-server", ["llama-server"])[0] == "llm"


def test_without_an_executable_the_command_line_tells() -> None:
    # Another user's process: /proc/PID/exe can't be read, comm and cmdline can.
    assert classify("python3", None, ["/usr/bin/python3", "-m", "vllm.entrypoints.openai.api_server"])[0] == "llm"
    assert classify("kwin_wayland", None, [])[0] == "desktop"


def test_a_deleted_executable_keeps_its_name() -> None:
    assert classify("llama-server", "/opt/llama-server (deleted)", [])[0] == "llm"


def test_report_068_a_helper_is_told_by_its_program_and_not_by_its_comm() -> None:
    words = ["/usr/lib/firefox/firefox", "-contentproc", "-parentBuildID", "20261107175306", "4242", "rdd"]
    assert classify("RDD Process", "/usr/lib/firefox/firefox", words)[0] == "browser"


def test_report_118_comfyui_is_known_by_where_it_runs_from() -> None:
    assert classify("python", "/home/a/ComfyUI/.venv/bin/python3.12", ["python", "main.py"]) == (
        "ai",
        "image generation (ComfyUI)",
    )


def test_report_037_the_mps_server_is_the_systems() -> None:
    assert classify("nvidia-cuda-mps-server", "/usr/bin/nvidia-cuda-mps-server", [])[0] == "system"


@pytest.mark.parametrize(
    "words", [[], [""], ["-"], ["python"], ["python", "-m"], ["python", "-X"], ["python", "-c"], ["::"]]
)
def test_odd_command_lines_are_unknown_and_no_fault(words: list[str]) -> None:
    assert classify(None, None, words)[0] == "unknown"
    assert classify("python3", "/usr/bin/python3", words)[0] == "unknown"


def test_nothing_of_the_command_line_gets_into_the_role() -> None:
    words = ["python3", "train.py", "--api-key", "sk-AAAA"]
    assert "AAAA" not in str(classify("python3", "/usr/bin/python3", words))
