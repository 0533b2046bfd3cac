"""`gpusnap ps` as a user sees it."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.sleeping import sleeping
from tests.snapping import run_gpusnap
from tests.standin import Card, Proc, Scenario

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/machines/rtx4080-desktop")
GIB = 1 << 30


def ps(*words: str, **settings: Any) -> str:
    done = run_gpusnap("ps", *words, **settings)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def rows_of(text: str) -> list[list[str]]:
    """The process rows: lines whose first word is a pid."""
    return [line.split() for line in text.splitlines() if line.split()[:1] and line.split()[0].isdigit()]


def test_the_card_in_a_sentence_and_parts_that_add_up() -> None:
    first, parts, bar = ps("--replay", EXAMPLE).splitlines()[:3]
    assert "15.5 of 16.0 GiB used · 41 % busy · 61 °C · 212 W" in first
    figures = [float(part.split()[-1]) for part in parts.split(" · ")]
    assert round(sum(figures), 1) == 16.0
    assert len(bar.strip()) == 60


def test_report_068_largest_first_and_unknown_last(tmp_path: Path) -> None:
    with sleeping(3) as (unknown, small, large):
        card = Card(processes=[Proc(unknown, None), Proc(small, GIB), Proc(large, 3 * GIB)])
        text = ps(machine=Scenario(cards=[card]), folder=tmp_path)
    assert [row[0] for row in rows_of(text)] == [str(large), str(small), str(unknown)]


def test_what_was_not_measured_is_a_dash_and_counted() -> None:
    text = ps("--replay", EXAMPLE)
    assert "SPILL: no source tells it (5)" in text
    assert "GPU%: no fresh sample (2)" in text
    assert all(" 0 G " not in line for line in text.splitlines())


def test_report_110_json_holds_the_rows_of_the_text() -> None:
    text = ps("--replay", EXAMPLE, "--min-vram", "500MiB")
    document = json.loads(ps("--replay", EXAMPLE, "--min-vram", "500MiB", "--json"))
    assert [row[0] for row in rows_of(text)] == [str(row["pid"]) for row in document["processes"]]
    # The account stays that of the whole card.
    assert document["adapters"][0]["accounting"]["attributed_bytes"] == 16557015040


def test_filters_and_sorting() -> None:
    def pids(*words: str) -> list[int]:
        return [row["pid"] for row in json.loads(ps("--replay", EXAMPLE, "--json", *words))["processes"]]

    assert pids() == [4711, 3120, 2210, 2301, 2215]
    assert pids("--top", "2") == [4711, 3120]
    assert pids("--sort", "pid") == [2210, 2215, 2301, 3120, 4711]
    assert pids("--sort", "gpu")[:2] == [4711, 3120]
    assert pids("--sort", "age")[0] == 2210
    assert pids("--sort", "program") == [2215, 3120, 2210, 4711, 2301]
    assert pids("--user", "nobody") == []
    assert len(pids("--user", "alice")) == len(pids("--user", "1000")) == 5
    assert pids("--min-vram", "1GiB") == [4711]
    assert pids("--state", "zombie") == []


def test_group_by_user_counts_and_sums() -> None:
    document = json.loads(ps("--replay", EXAMPLE, "--group-by", "user", "--json"))
    assert document["groups"] == [
        {"key": "alice", "processes": 5, "vram_bytes": 16557015040, "spill_bytes": None, "unmeasured": 0}
    ]
    text = ps("--replay", EXAMPLE, "--group-by", "program")
    assert text.index("llama-server") < text.index("firefox") < text.index("Xwayland")


def test_plain_json_has_no_groups() -> None:
    assert "groups" not in json.loads(ps("--replay", EXAMPLE, "--json"))


def test_bytes_are_plain() -> None:
    assert rows_of(ps("--replay", EXAMPLE, "--bytes"))[0][3] == "14817427456"


def test_in_a_usual_terminal_the_role_gives_way_before_the_programs_name() -> None:
    row = next(line for line in ps("--replay", EXAMPLE, env={"COLUMNS": "80"}).splitlines() if " 4711 " in line)
    assert "  llama-server  Qwen3 14B Q4_K_M" in row
    assert len(row) == 80
    assert row.endswith("…")


def test_lines_are_cut_to_the_terminal_never_wrapped() -> None:
    text = ps("--replay", EXAMPLE, "--wide", env={"COLUMNS": "60"})
    table = [line for line in text.splitlines() if "alice" in line]
    assert len(table) == 5
    assert all(len(line) <= 60 for line in table)


def test_from_a_file_and_from_standard_input(tmp_path: Path) -> None:
    data = run_gpusnap("snap", "--replay", EXAMPLE, "--window", "250ms").stdout
    (tmp_path / "a.json").write_bytes(data)
    live = ps("--replay", EXAMPLE)
    assert ps("--from", str(tmp_path / "a.json")) == live
    assert ps("--from", "-", stdin=data) == live


def test_another_tools_json_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text('{"hostname": "x", "gpus": []}')
    done = run_gpusnap("ps", "--from", str(tmp_path / "g.json"))
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert "not a gpusnap document" in line


def test_no_gpu_says_so_on_standard_error_only() -> None:
    done = run_gpusnap("ps")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"gpusnap ps: no GPU found on this machine\n"


def test_report_020_rows_of_another_pid_namespace_are_kept(tmp_path: Path) -> None:
    gone = 4_000_001
    card = Card(used=2 * GIB, processes=[Proc(gone, 1012 << 20)])
    machine = Scenario(cards=[card])
    document = json.loads(ps("--json", machine=machine, folder=tmp_path))
    (row,) = document["processes"]
    assert (row["pid"], row["vram_bytes"], row["name"], row["user"]) == (gone, 1012 << 20, None, None)
    entry = document["provenance"][row["provenance"]]["name"]
    assert entry.startswith(("null:exited", "null:other-pid-namespace"))


def test_several_cards_have_a_column(tmp_path: Path) -> None:
    cards = [Card(processes=[Proc(os.getpid(), GIB)]), Card(processes=[Proc(os.getpid(), 2 * GIB)])]
    text = ps(machine=Scenario(cards=cards), folder=tmp_path)
    assert [row[0] for row in rows_of(text)] == ["1", "0"]
    assert ps("--adapter", "1", machine=Scenario(cards=cards), folder=tmp_path).count("NVIDIA H100") == 1


def test_colour_by_option_then_variables_then_terminal() -> None:
    def coloured(*words: str, **env: str) -> bool:
        return "\x1b[" in ps("--replay", EXAMPLE, *words, env=env)

    assert not coloured()
    assert coloured("--color", "always", NO_COLOR="1")
    assert coloured(FORCE_COLOR="1")
    assert not coloured(FORCE_COLOR="1", NO_COLOR="1")
    assert not coloured(NO_COLOR="", FORCE_COLOR="")


def test_a_card_is_shown_with_its_partitions_and_what_stands_on_them() -> None:
    machine = str(ROOT / "tests/machines/nvidia-a100-mig")
    for word in ("0", "GPU-a100"):
        text = ps("--replay", machine, "--adapter", word)
        assert [row[1] for row in map(str.split, text.splitlines()) if row[:1] in (["m0"], ["m1"])] == [
            "5001",
            "5002",
        ]
        rows = json.loads(ps("--replay", machine, "--adapter", word, "--json"))["processes"]
        assert [row["pid"] for row in rows] == [5001, 5002]


def refused(*words: str) -> str:
    done = run_gpusnap("ps", *words)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    return line


def test_an_empty_user_is_a_slip_and_not_nobody() -> None:
    assert "--user ''" in refused("--user", "", "--replay", EXAMPLE)


def test_a_file_and_a_replayed_machine_are_not_both_shown() -> None:
    message = refused("--from", str(ROOT / "examples/after-load.json"), "--replay", EXAMPLE)
    assert "--from and --replay contradict each other" in message


def test_the_number_of_a_model_names_its_card() -> None:
    assert len(rows_of(ps("--adapter", "4080", "--replay", EXAMPLE))) == 5
    assert "no adapter is named '408'" in refused("--adapter", "408", "--replay", EXAMPLE)


def test_the_first_groups_are_whole_groups() -> None:
    """Cutting the rows first would sum two of the desktop's three processes and call that the desktop."""
    whole = json.loads(ps("--group-by", "category", "--json", "--replay", EXAMPLE))
    words = ("--group-by", "category", "--top", "2", "--sort", "pid", "--json", "--replay", EXAMPLE)
    first = json.loads(ps(*words))
    assert [group["key"] for group in whole["groups"]] == ["llm", "desktop", "browser"]
    assert first["groups"] == whole["groups"][:2]
    assert [row["pid"] for row in first["processes"]] == [2210, 2215, 2301, 4711]


def test_a_filter_that_asks_for_an_unknown_figure_says_what_it_left_out() -> None:
    fiji, guest = (str(ROOT / "tests/machines" / name) for name in ("fiji-5.8", "wsl2-nvidia"))
    assert "1 process left out: VRAM not known." in ps("--min-vram", "1", "--replay", fiji)
    assert "2 processes left out: user not known." in ps("--user", "alice", "--replay", guest)
    assert "2 processes left out: VRAM or user not known." in ps(
        "--user", "alice", "--min-vram", "1", "--replay", guest
    )
    assert "left out" not in ps("--user", "bob", "--min-vram", "1", "--replay", fiji)  # Xorg is root's: no doubt
    assert "left out" not in ps("--min-vram", "1GiB", "--replay", EXAMPLE)


def test_no_cell_is_empty_below_one_that_does_not_say_unified() -> None:
    text = ps("--replay", str(ROOT / "tests/machines/windows-nvidia-intel"))
    lines = text.splitlines()
    head = next(line for line in lines if "VRAM" in line)
    column = slice(head.index("VRAM") - 3, head.index("VRAM") + 4)
    cells = [
        line[column].strip() for line in lines[lines.index(head) + 1 :] if line.strip() and "measured" not in line
    ]
    assert len(cells) == 8
    for above, here in pairwise(cells):
        assert here or above in ("", "unified")


def test_a_process_on_two_cards_is_one_process_of_its_group(tmp_path: Path) -> None:
    cards = [Card(processes=[Proc(os.getpid(), (3 + number) * GIB)]) for number in range(2)]
    words = ("--group-by", "program", "--json")
    (group,) = json.loads(ps(*words, machine=Scenario(cards=cards), folder=tmp_path))["groups"]
    assert (group["processes"], group["vram_bytes"], group["unmeasured"]) == (1, 7 * GIB, 0)


def test_on_unified_memory_a_group_holds_what_its_rows_hold_of_the_systems() -> None:
    """A row that is null:unified-memory is not unmeasured; its bytes are in the system's memory."""
    machines: list[tuple[str, list[tuple[str, int | None, int]]]] = [
        ("meteorlake-i915-6.8", [("llama-server", 3_927_851_008, 0), ("npu.py", 100_671_488, 0)]),
        (
            "mac-m5pro",
            [
                ("mlx_lm.server", 18_790_481_920, 0),
                ("Safari", 314_572_800, 0),
                *((program, None, 1) for program in ("Blender", "WindowServer", "ffmpeg")),
            ],
        ),
    ]
    for name, groups in machines:
        words = ("--replay", str(ROOT / "tests/machines" / name), "--group-by", "program")
        found = json.loads(ps(*words, "--json"))["groups"]
        assert [(one["key"], one["spill_bytes"], one["unmeasured"]) for one in found] == groups
        assert {one["vram_bytes"] for one in found} == {None}
        header, first, second = ps(*words).split("\n\n")[1].splitlines()[:3]
        assert header.split()[:5] == ["PROGRAM", "PROCESSES", "VRAM", "SYSTEM", "UNMEASURED"]
        in_gib = [f"{held / GIB:.1f}" for _, held, _ in groups if held is not None]
        assert (first.split()[2:4], second.split()[2]) == (["unified", in_gib[0]], in_gib[1])


@pytest.mark.parametrize(
    "words",
    [
        ["--cmdline", "none"],
        ["--no-processes"],
        ["--replay", EXAMPLE],
        ["--holders"],
        ["--window", "1s"],
        ["--label", "a=b"],
        ["--probe"],
        ["--no-models"],
        ["--timeout", "1s"],
        ["--sysfs", "/sys"],
    ],
)
def test_how_to_take_a_snapshot_is_refused_for_one_that_was_taken(words: list[str]) -> None:
    """Passed over in silence, `--cmdline none` would print the command lines that somebody left out."""
    done = run_gpusnap("ps", "--from", str(ROOT / "examples/after-load.json"), *words)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line == f"gpusnap ps: --from and {words[0]} contradict each other: say which is meant"


def test_what_the_environment_says_of_this_machine_does_not_hinder_reading_a_file() -> None:
    text = ps("--from", str(ROOT / "examples/after-load.json"), env={"GPUSNAP_PROCFS": "/host/proc"})
    assert "llama-server" in text
