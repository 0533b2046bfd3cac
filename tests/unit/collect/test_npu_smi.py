"""npu-smi's tables in every layout: 23.0 to 26.x, 310P, 910B, A3; fixtures in the layouts of public captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusnap.collect.npu_smi import MIB, NpuProcess, Pair, UnknownLayout, parse_info, parse_proc_mem

TEXTS = Path(__file__).parent / "npu_smi"


def text(name: str) -> str:
    return (TEXTS / f"{name}.txt").read_text()


def test_310p_has_its_memory_in_ddr_and_no_process_table() -> None:
    report = parse_info(text("310p_without_process_table"))
    assert report.version is None
    assert [(c.card, c.chip, c.name, c.bus_id) for c in report.chips] == [
        (0, 0, "310P3", "0000:82:00.0"),
        (1, 0, "310P3", "0000:89:00.0"),
    ]
    first, second = report.chips
    assert first.memory == Pair(1201 * MIB, 21534 * MIB)
    assert (first.memory_name, first.watts, first.celsius, first.aicore_percent) == ("Memory-Usage", 16.2, 44, 7)
    assert second.health == "Warning"
    assert report.processes == []
    assert report.listed == frozenset()


def test_a_duo_has_two_chips_of_one_bus_id_and_card_numbers_with_gaps() -> None:
    report = parse_info(text("310p_duo_25.2.0"))
    assert [(c.card, c.chip, c.bus_id, c.watts) for c in report.chips] == [
        (2, 0, "0000:01:00.0", None),
        (2, 1, "0000:01:00.0", None),
        (8217, 0, "0000:02:00.0", None),
    ]
    assert report.chips[0].memory == Pair(41731 * MIB, 44280 * MIB)
    assert report.processes == [NpuProcess(2, 0, 51001, "mindie_llm_back", 40210 * MIB)]
    assert report.listed == {2, 8217}


def test_910b_has_its_memory_in_hbm() -> None:
    report = parse_info(text("910b_eight_rows_24.1.rc3"))
    assert [(c.memory, c.memory_name) for c in report.chips] == [
        (Pair(30711 * MIB, 32768 * MIB), "HBM-Usage"),
        (Pair(2848 * MIB, 32768 * MIB), "HBM-Usage"),
    ]
    assert len(report.processes) == 8
    assert report.listed == {0, 1}


def test_the_fifth_column_of_26_does_not_shift_the_others() -> None:
    report = parse_info(text("910b_container_column_26.1.0"))
    assert report.version == "26.1.0"
    assert report.processes == [NpuProcess(0, 0, 485946, "pytest", 5175 * MIB)]
    assert [c.watts for c in report.chips] == [101.5, 94.8]


def test_report_034_a3_copes_with_na_and_with_nothing_running() -> None:
    report = parse_info(text("a3_two_chips_26.0.rc2"))
    assert [(c.card, c.chip, c.bus_id, c.watts) for c in report.chips] == [
        (0, 0, "0000:9d:00.0", 162.6),
        (0, 1, "0000:9f:00.0", None),
        (7, 0, "0000:81:00.0", 171.0),
        (7, 1, "0000:83:00.0", None),
    ]
    # "31877/ 65536", without a blank.
    assert report.chips[3].memory == Pair(31877 * MIB, 65536 * MIB)
    assert report.processes == [NpuProcess(0, 0, 632268, "python3.1", 197 * MIB)]
    assert report.listed == {0, 7}


@pytest.mark.parametrize(
    "printed",
    [
        "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005\n",
        "",
        "| NPU | Name |\n",
        text("910b_eight_rows_24.1.rc3").replace("| 0     910B4 ", "| x     910B4 "),
    ],
)
def test_what_is_no_table_is_an_error_that_ends_in_its_words(printed: str) -> None:
    with pytest.raises(UnknownLayout) as caught:
        parse_info(printed)
    assert str(caught.value) == (printed.strip().splitlines() or ["no output"])[-1]


def test_proc_mem_of_one_chip() -> None:
    line = "Process id:207795  Process name:VLLMEngineCor     Process memory(MB):55436\n"
    assert parse_proc_mem(line, 0, 0) == [NpuProcess(0, 0, 207795, "VLLMEngineCor", 55436 * MIB)]


def test_proc_mem_of_a_card_ends_each_chip_with_its_number() -> None:
    printed = (
        "    No process in device.\n    Chip ID                        : 0\n\n"
        "    Process id:3229095 Process name:                  Process memory(MB):48208\n"
        "    Chip ID                        : 1\n"
    )
    assert parse_proc_mem(printed, 0) == [NpuProcess(0, 1, 3229095, "", 48208 * MIB)]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("    No process in device.\n", []),
        ("Failed to query npu chip: 0 info.\n", None),
        ("", None),
        ("Process id:abc Process name:x Process memory(MB):1\n", None),
    ],
)
def test_proc_mem_tells_none_running_from_no_answer(printed: str, expected: list[NpuProcess] | None) -> None:
    assert parse_proc_mem(printed, 0, 0) == expected


def test_a_torn_process_row_names_no_chip_and_costs_only_itself() -> None:
    whole = "| 0       0                 | 485946        | pytest             | 5175                  | NA |"
    header = (
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
        "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
        "| 0     910B3               | OK            | 100.0       50                0    / 0             |\n"
        "| 0                         | 0000:C1:00.0  | 0           0    / 0          8676 / 65536         |\n"
        "| NPU     Chip              | Process id    | Process name       | Process memory(MB)    | container |\n"
    )
    for torn in ("| x       0", "| 0       y", "|          ", "| ²       0"):
        text = f"{header}{torn} | 485947 | python | 12 | NA |\n{whole}\n"
        processes = parse_info(text).processes
        assert processes is not None
        assert [(row.card, row.chip, row.pid) for row in processes] == [(0, 0, 485946)]
