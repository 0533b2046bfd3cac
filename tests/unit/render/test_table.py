"""Tables: aligned whatever the script, cut and never wrapped."""

from __future__ import annotations

from wcwidth import wcswidth

from gpusnap.render.columns import display_width, truncate
from gpusnap.render.table import escape_markdown, render_markdown_table, render_table, render_whole_table


def test_columns_are_aligned() -> None:
    lines = render_table(["PID", "NAME"], [["4711", "llama-server"], ["9", "x"]], "rl", indent="  ")
    assert lines == ["   PID  NAME", "  4711  llama-server", "     9  x"]


def test_east_asian_names_keep_the_columns_aligned() -> None:
    lines = render_table(["NAME", "N"], [["日本語", "1"], ["abc", "22"]], "lr")
    assert [wcswidth(line) for line in lines] == [10, 10, 10]


def test_combining_marks_take_no_column() -> None:
    assert display_width("e\u0301") == 1
    assert display_width("日本") == 4


def test_numbers_are_not_reformatted() -> None:
    lines = render_table(["A"], [["007"], ["1e5"], ["+0.10"]], "r")
    assert [line.strip() for line in lines] == ["A", "007", "1e5", "+0.10"]


def test_the_flexible_column_gives_way_first_and_nothing_wraps() -> None:
    rows = [["4711", "a very long program name that does not fit", "9.0 GiB"]]
    lines = render_table(["PID", "PROGRAM", "VRAM"], rows, "rlr", width=40, flex=[1])
    assert lines[1] == "4711  a very long program name…  9.0 GiB"
    assert all(len(line) <= 40 for line in lines)


def test_the_flexible_column_keeps_its_least_width_and_the_last_one_is_cut() -> None:
    lines = render_table(
        ["PROGRAM", "ROLE"], [["llama-server", "Qwen3 14B Q4_K_M"]], "ll", width=20, flex=[0], least=12
    )
    assert lines == ["PROGRAM       ROLE", "llama-server  Qwen3…"]


def test_a_terminal_too_narrow_for_the_rest_cuts_the_line() -> None:
    lines = render_table(
        ["PID", "PROGRAM", "VRAM"], [["4711", "日本語日本語", "9.0 GiB"]], "rlr", width=15, flex=[1]
    )
    assert all(display_width(line) <= 15 for line in lines)
    assert lines[1].endswith("…")


def test_columns_are_left_out_before_a_line_is_cut_and_that_is_said() -> None:
    header, rows = ["PID", "AGE", "VRAM", "PROGRAM"], [["4711", "3h12m", "13.8 G", "llama-server"]]
    lines = render_table(header, rows, "rrrl", width=26, flex=[3], least=12, drop=[1, 0])
    assert lines == [
        " PID    VRAM  PROGRAM",
        "4711  13.8 G  llama-server",
        "not shown in 26 columns:",
        "AGE",
    ]


def test_a_whole_table_wraps_its_cells_and_cuts_none() -> None:
    rows = [["4711", "9.0 GiB", "a very long role that does not fit"]]
    assert render_whole_table(["PID", "HOLDS", "ROLE"], rows, "rrl", width=32, wrap=[2]) == [
        " PID    HOLDS  ROLE",
        "4711  9.0 GiB  a very long role",
        "               that does not fit",
    ]


def test_a_whole_table_that_fits_in_no_way_is_a_paragraph_a_row() -> None:
    rows = [["4711", "9.0 GiB", "llama-server"], ["7", "", "x"]]
    assert render_whole_table(["PID", "HOLDS", "PROGRAM"], rows, "rrl", width=20) == [
        "pid 4711 ·",
        "  holds 9.0 GiB ·",
        "  program",
        "  llama-server",
        "pid 7 · program x",
    ]


def test_truncation_counts_columns_not_characters() -> None:
    assert truncate("日本語", 6) == "日本語"
    assert truncate("日本語", 5) == "日本…"
    assert truncate("日本語", 4) == "日…"
    assert truncate("abc", 2) == "a…"
    assert truncate("abc", 0) == ""


def test_a_name_cannot_break_the_table_or_drive_the_terminal() -> None:
    lines = render_table(["NAME"], [["a\nb\x1b[31m"]], "l")
    assert lines == ["NAME", "a\\x0ab\\x1b[31m"]


def test_an_empty_table_has_no_lines() -> None:
    assert render_table(["A"], [], "l") == []
    assert render_markdown_table(["A"], [], "l") == []


def test_markdown_cells_cannot_break_out() -> None:
    lines = render_markdown_table(["A", "B"], [["x|y", "<b>`z`</b>"]], "lr")
    assert len(lines) == 3
    assert lines[2].count("|") - lines[2].count("\\|") == 3
    assert escape_markdown("<b>`z`") == "\\<b\\>\\`z\\`"
