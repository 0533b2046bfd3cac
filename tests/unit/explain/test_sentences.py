"""The answer's sentence: no zero for what was not measured, each byte once, unified memory told as such."""

from __future__ import annotations

from typing import Any

from gpusnap.explain.explanation import explain_history, explain_snapshot
from gpusnap.explain.history import History
from gpusnap.explain.sources import layer_of, says
from gpusnap.explain.subject import Chosen
from gpusnap.explain.view import Surroundings
from gpusnap.render.explain import explain_lines
from gpusnap.render.screen import Screen
from tests.builders import GIB, MIB, START, adapter, backend, process, snapshot

UNKNOWN = "null:not-exposed"
UNIFIED: dict[str, Any] = {"memory.kind": "unified"}
SPILLED = {"spill_bytes": "measured:fdinfo.drm-total-gtt"}


def answer(document: Any, chosen: Chosen | None = None) -> str:
    return explain_snapshot(document, chosen or Chosen("host")).document["answer"]


def partition(number: int, used: int | str, total: int | str) -> Any:
    row = adapter(number, used=used, total=total)
    return {**row, "kind": "partition", "parent": adapter(0)["id"]}


def test_cards_that_nobody_measured_are_not_zero_of_zero() -> None:
    cards = [adapter(0, used=UNKNOWN, total=UNKNOWN), adapter(1, used=UNKNOWN, total=UNKNOWN)]
    assert answer(snapshot(cards)) == "2 adapters (GPU 0, GPU 1): how much is used is not known."


def test_the_total_of_cards_without_a_used_figure_is_not_in_the_sum() -> None:
    cards = [adapter(0, used=8 * GIB), adapter(1, used=UNKNOWN, total=80 * GIB)]
    assert answer(snapshot(cards, [process(1, 8 * GIB)])).startswith(
        "2 adapters: 8.0 of 16.0 GiB used (1 not measured)"
    )


def test_a_card_counts_where_its_partitions_do_not_say_what_is_used() -> None:
    # An MI300X in two partitions: the driver counts on the card alone.
    whole = adapter(0, used=46 * GIB, total=192 * GIB, listed="null:partitioned")
    cards = [whole, partition(1, "null:partitioned", 96 * GIB), partition(2, "null:partitioned", 96 * GIB)]
    assert answer(snapshot(cards)).startswith("46.0 of 192.0 GiB used")


def test_partitions_count_once_and_not_beside_their_card() -> None:
    whole = adapter(0, used=46 * GIB, total=192 * GIB, listed="null:partitioned")
    cards = [whole, partition(1, 40 * GIB, 96 * GIB), partition(2, 6 * GIB, 96 * GIB)]
    rows = [process(1, 40 * GIB, on=1), process(2, 6 * GIB, on=2)]
    assert answer(snapshot(cards, rows)).startswith("2 adapters: 46.0 of 192.0 GiB used")


def test_a_gpu_without_memory_of_its_own_tells_what_processes_hold_of_the_systems() -> None:
    card = adapter(used=148 * MIB, total=512 * MIB, vendor="amd", leaves=UNIFIED)
    rows = [process(5100, 5 * MIB, spill_bytes=24 * GIB, name="llama-server", provenance=SPILLED)]
    document = snapshot([card], rows)
    said = answer(document, Chosen("process", pid=5100))
    assert "holds 24.0 GiB of the memory that GPU 0 shares with the system" in said
    explained = explain_snapshot(document, Chosen("host"))
    assert any("24.0 GiB  llama-server" in line for line in explain_lines(explained, Screen()))


def test_spill_is_not_held_on_a_card_with_memory_of_its_own() -> None:
    # Windows: the driver gave an impossible figure for VRAM, and 0 spilled: that is no 0 held.
    row = process(3300, "null:out-of-range", spill_bytes=0, name="leaky.exe", provenance=SPILLED)
    explained = explain_snapshot(snapshot([adapter(used=GIB)], [row]), Chosen("host"))
    (line,) = [line for line in explain_lines(explained, Screen()) if "leaky.exe" in line]
    assert line.split()[:3] == ["3300", "alice", "-"]


def test_one_process_holds_and_two_hold() -> None:
    card = adapter(used=UNKNOWN)
    one, two = process(1, GIB), process(2, GIB)
    assert answer(snapshot([card], [one])).endswith("; 1 process holds 1.0 GiB.")
    assert answer(snapshot([card], [one, two])).endswith("; 2 processes hold 2.0 GiB.")


def test_what_processes_hold_is_said_where_used_bytes_can_not_be_split() -> None:
    # A Mac: used is the GPU's share of the system's memory.
    card = adapter(used=19 * GIB, total=48 * GIB, vendor="apple", leaves=UNIFIED)
    rows = [process(4245, "null:unified-memory", spill_bytes=17 * GIB, provenance=SPILLED)]
    document = snapshot([card], rows)
    books: Any = document["adapters"][0]["accounting"]
    books.update(attributed_bytes=None, unattributed_bytes=None, unattributed_max_bytes=None)
    assert answer(document) == "19.0 of 48.0 GiB used; 1 process holds 17.0 GiB, the rest is unknown."
    document["processes"] = []
    assert answer(document) == "19.0 of 48.0 GiB used, whose is not known."


def test_a_card_is_explained_with_its_partitions() -> None:
    # MIG as an ordinary user: the card's own figures are not told, those of its partitions are.
    whole = adapter(0, used="null:no-permission", listed="null:partitioned")
    cards = [whole, partition(1, 5 * GIB, 20 * GIB), partition(2, 6 * GIB, 20 * GIB), adapter(3, used=GIB)]
    rows = [process(1, 5 * GIB, on=1), process(2, 6 * GIB, on=2), process(3, GIB, on=3)]
    explained = explain_snapshot(snapshot(cards, rows), Chosen("adapter", adapter=whole["id"]))
    assert explained.document["answer"].startswith("2 adapters: 11.0 of 40.0 GiB used")
    assert [card["index"] for card in explained.cards] == [0, 1, 2]


def test_why_a_single_card_has_no_figure_is_said_of_that_card_too() -> None:
    card = adapter(used=UNKNOWN, total=UNKNOWN, listed=UNKNOWN)
    broken = backend(status="failed", detail="NVML_ERROR_LIB_RM_VERSION_MISMATCH; library 460.73.01")
    document = snapshot([card], None, backends=[broken])
    found = explain_snapshot(document, Chosen("adapter", adapter=card["id"])).document["findings"]
    assert [one["code"] for one in found] == ["driver-mismatch"]


def test_what_more_rights_would_tell_is_not_said_to_be_beyond_any_system() -> None:
    card = adapter(used="null:no-permission CAP_PERFMON", busy=UNKNOWN)
    lines = explain_lines(explain_snapshot(snapshot([card])), Screen(), sources=True)
    last = next(place for place, line in enumerate(lines) if line.startswith("  6 "))
    beyond = next(place for place, line in enumerate(lines) if line.startswith("  not known here"))
    used = next(place for place, line in enumerate(lines) if "memory.used_bytes " in line)
    load = next(place for place, line in enumerate(lines) if "load.gpu_percent " in line)
    assert last < load < beyond < used


def test_a_source_stands_in_its_own_layer_and_words() -> None:
    assert layer_of("measured:stat") == 4
    assert says("measured:stat") == "measured: the model file's size"
    assert says("computed:gguf -ngl 99") == "computed: the model file's header, -ngl 99"
    assert says("measured:nvml.MemoryInfo_v2") == "measured: NVIDIA's driver library (NVML), MemoryInfo_v2"


def test_a_pid_that_the_driver_lists_without_a_figure_is_said_so() -> None:
    rows = [process(5002, "null:no-permission", name="null:exited")]
    found = explain_snapshot(snapshot([adapter(used=GIB)], rows)).document["findings"]
    assert found[0]["title"].startswith("the driver lists pid 5002 without a figure, and no such process")


def test_a_short_recording_has_no_holes_where_no_sample_is_missing() -> None:
    # Ten samples in 48 columns would read as nine gaps.
    documents = [
        snapshot([adapter(used=4 * GIB)], [process(1, 4 * GIB)], at=START + 60 * step, uptime=1000.0 + 60 * step)
        for step in range(10)
    ]
    lines = explain_lines(explain_history(History().feed(documents)), Screen())
    (used,) = [line for line in lines if line.startswith("    used   ")]
    drawn = used.split()[1]
    assert drawn == "█" * 7


def test_the_systems_memory_is_told_beside_a_carve_out() -> None:
    # A Strix Halo: 24 GiB of a model lie in system memory, the 512 MiB are what the firmware set apart.
    leaves = {**UNIFIED, "memory.shared_used_bytes": 24 * GIB, "memory.shared_total_bytes": 124 * GIB}
    card = adapter(used=148 * MIB, total=512 * MIB, vendor="amd", leaves=leaves)
    said = answer(snapshot([card], [process(5100, 148 * MIB, name="llama-server")]))
    assert said == "148 of 512 MiB used: llama-server 148; 24.0 of 124.0 GiB of the system's memory."


def test_the_rest_is_a_bound_in_each_line_that_names_it() -> None:
    card = adapter(used=3 * GIB, leaves={"unreadable_pids": 2})
    lines = explain_lines(explain_snapshot(snapshot([card], [process(1, GIB)])), Screen())
    assert any("unattributed up to 2.0 · free" in line for line in lines)
    assert any(line.startswith("       unattributed up to 2.0 GiB: ") for line in lines)


def test_a_trace_of_memory_makes_no_orphan() -> None:
    # A worker on GPU 1 has a bare context of 2 MiB on GPU 0, which is idle.
    rows = [process(5100, 2 * MIB, ppid=1), process(5100, 2 * GIB, on=1, ppid=1)]
    cards = [adapter(0, used=100 * MIB), adapter(1, used=3 * GIB, busy=99)]
    explained = explain_snapshot(snapshot(cards, rows), around=Surroundings(listening=frozenset()))
    found = [one for one in explained.document["findings"] if one["code"] == "orphan-workers"]
    assert [(one["severity"], one["subject"]["adapter"]) for one in found] == [("notice", cards[1]["id"])]
