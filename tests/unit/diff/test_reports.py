"""Public reports as comparisons: the smallest input that shows each, and the right answer."""

from __future__ import annotations

import json

from gpusnap.codec import dumps
from gpusnap.codec_read import Reader
from gpusnap.diff import diff
from gpusnap.text import clean
from tests.builders import GIB, MIB, Row, adapter, process, snapshot
from tests.unit.diff.helpers import card_row, codes, process_row, rest, statuses

CARD = adapter(0, total=24 * GIB, used=9 * GIB)


def test_report_005_a_process_that_hidepid_hides_is_not_reported_as_exited() -> None:
    """telegraf#15698: /proc with hidepid=2; the driver lists the pid, nothing else can be read of it."""
    hidden = process(
        4711, 8 * GIB, start_ticks=None, name="null:no-permission hidepid", user="null:no-permission hidepid"
    )
    result = diff(snapshot([CARD], [process(4711, 8 * GIB)]), snapshot([CARD], [hidden]))
    assert statuses(result) == {4711: "unknown unknown"}
    unlisted = diff(
        snapshot([CARD], [process(4711, 8 * GIB)]), snapshot([adapter(0, used=9 * GIB, listed="partial")], [])
    )
    assert statuses(unlisted) == {4711: "unknown"}


def test_report_008_growth_of_one_process_over_a_workflow() -> None:
    """insert-anything#30: used 0.4 -> 14 GiB, the same pid and start."""
    before = snapshot([adapter(0, total=24 * GIB, used=410 * MIB)], [process(31, 400 * MIB)])
    after = snapshot([adapter(0, total=24 * GIB, used=14336 * MIB)], [process(31, 14326 * MIB)])
    result = diff(before, after)
    assert card_row(result, CARD["id"])["changes"]["memory.used_bytes"]["delta"] == 13926 * MIB  # +13.6 GiB
    row = process_row(result, 31)
    assert (row["status"], row["changes"]["vram_bytes"]["delta"]) == ("changed", 13926 * MIB)
    assert rest(result)["delta_bytes"] == 0


def test_report_011_malformed_bytes_in_a_command_line_survive_the_comparison() -> None:
    """psutil#515: b'python\\x00/d\\xc3\\xff.py\\x00'; two different names must stay different."""
    words = [clean(word) for word in (b"python", b"/d\xc3\xff.py")]
    other = [clean(word) for word in (b"python", b"/d\xc3\xfe.py")]
    old, new = (
        Reader("x").read(dumps(snapshot([CARD], [process(1, GIB, cmdline=cmdline)]))) for cmdline in (words, other)
    )
    assert process_row(diff(old, old), 1)["changes"] == {}
    result = diff(old, new)
    written = json.loads(dumps(result).decode("utf-8"))
    change = written["processes"][0]["changes"]["cmdline"]
    assert (change["before"][1], change["after"][1]) == ("/d\\xc3\\xff.py", "/d\\xc3\\xfe.py")


def test_report_020_a_pid_of_another_namespace_is_never_taken_for_a_known_process() -> None:
    """nvidia-docker#179: host pid 28290 with no name, no start stamp, on both sides."""
    row = process(28290, 1012 * MIB, start_ticks=None, name="null:other-pid-namespace")
    result = diff(snapshot([CARD], [row]), snapshot([CARD], [row]))
    assert statuses(result) == {28290: "unknown unknown"}
    assert codes(result) == ["unknown-start"]


def test_report_038_what_an_unload_gave_back_is_measured() -> None:
    """ComfyUI#6597: the model cache goes, the process stays."""
    before = snapshot([adapter(0, total=24 * GIB, used=18 * GIB)], [process(5, 17 * GIB)])
    after = snapshot([adapter(0, total=24 * GIB, used=2 * GIB)], [process(5, GIB)])
    result = diff(before, after)
    assert process_row(result, 5)["changes"]["vram_bytes"]["delta"] == -16 * GIB
    assert rest(result)["delta_bytes"] == 0


def test_report_043_a_mig_parent_that_may_not_be_asked_has_no_made_up_sum() -> None:
    """sacred#864: the parent's memory is "Insufficient Permissions", its instances have figures."""

    def machine(used: int) -> list[Row]:
        parent = adapter(0, total="null:no-permission", used="null:no-permission", listed="null:partitioned")
        part = adapter(1, total=4864 * MIB, used=used)
        part.update(kind="partition", parent=parent["id"], pci_address=None)
        part["partition"] = {"gpu_instance": 1, "compute_instance": 0, "profile": "1g.5gb"}
        return [parent, part]

    result = diff(snapshot(machine(4 * MIB)), snapshot(machine(104 * MIB)))
    parent, part = result["adapters"]
    assert parent["changes"] == {}
    assert part["changes"]["memory.used_bytes"]["delta"] == 100 * MIB


def test_report_083_a_reused_pid_is_one_exit_and_one_appearance_not_a_shrinking_process() -> None:
    """collectd#3773: A: pid 4711 start 1000 used 8 GiB; B: pid 4711 start 9000 used 1 GiB."""
    before = snapshot([CARD], [process(4711, 8 * GIB, start_ticks=1000)])
    after = snapshot([adapter(0, total=24 * GIB, used=2 * GIB)], [process(4711, GIB, start_ticks=9000)])
    result = diff(before, after)
    assert statuses(result) == {4711: "appeared exited"}
    assert process_row(result, 4711, "exited")["changes"]["vram_bytes"]["delta"] == -8 * GIB
    assert process_row(result, 4711, "appeared")["changes"]["vram_bytes"]["delta"] == GIB
    assert process_row(result, 4711, "exited")["start_ticks"] == 1000


def test_report_100_the_same_program_with_other_arguments_stands_side_by_side() -> None:
    """llama.cpp#23446: growth depends on the KV cache type, the KV part itself is constant."""

    def server(pid: int, cache: str, vram: int) -> Row:
        words = ["/opt/llama-server", "-m", "q.gguf", "-ctk", cache, "-ctv", cache]
        return process(pid, vram, name="llama-server", exe="/opt/llama-server", cmdline=words, start_ticks=pid)

    result = diff(
        snapshot([CARD], [server(10, "f16", 8 * GIB)]),
        snapshot([CARD], [server(20, "q8_0", 9 * GIB)]),
        match="program",
    )
    row = process_row(result, 20)
    assert (row["status"], row["replaces"]) == ("replaced", {"pid": 10, "start_ticks": 10})
    change = row["changes"]["cmdline"]
    assert change["before"] == ["/opt/llama-server", "-m", "q.gguf", "-ctk", "f16", "-ctv", "f16"]
    assert change["after"] == ["/opt/llama-server", "-m", "q.gguf", "-ctk", "q8_0", "-ctv", "q8_0"]
    assert row["changes"]["vram_bytes"]["delta"] == GIB


def test_report_101_an_unknown_start_never_matches_a_process_of_the_same_pid() -> None:
    """jcodemunch-mcp#450: two weeks later the pid is a browser's."""
    before = snapshot([CARD], [process(4711, 8 * GIB, start_ticks=None)])
    after = snapshot([CARD], [process(4711, GIB, name="firefox")])
    result = diff(before, after)
    assert statuses(result) == {4711: "unknown unknown"}
    assert all(row["changes"] == {} for row in result["processes"])
    assert codes(result) == ["unknown-start"]
    assert "kill" not in json.dumps(result)


def test_report_058_memory_of_a_pid_that_is_gone_names_the_pid() -> None:
    """nvitop#134: pid 56752, 32.34 GiB, "No Such Process"."""
    held = int(32.34 * GIB)
    before = snapshot([adapter(0, total=40 * GIB, used=33 * GIB)], [process(56752, held)])
    after = snapshot([adapter(0, total=40 * GIB, used=33 * GIB)], [])
    (row,) = rest(diff(before, after))["explained_by"]
    assert (row["pid"], row["bytes"], row["says"]) == (56752, held, "exited holding 32.3 GiB; 0 B came free")


def test_report_061_load_under_mig_that_is_not_supported_is_no_zero() -> None:
    """nvtop#256: a busy process on a MIG slice was shown with 0 %."""
    busy = process(1, GIB, busy="null:not-supported")
    result = diff(snapshot([CARD], [process(1, GIB, busy=40)]), snapshot([CARD], [busy]))
    change = process_row(result, 1)["changes"]["gpu_percent"]
    assert (change["before"], change["after"], change["delta"]) == (40, None, None)


def test_report_094_the_all_ones_sentinel_was_never_a_figure_and_makes_no_delta() -> None:
    """nvtop#432: pid 79 on WSL; the card's own figure is still compared."""
    old = snapshot([adapter(0, used=14360 * MIB)], [process(79, "null:wsl")])
    new = snapshot([adapter(0, used=14400 * MIB)], [process(79, "null:wsl")])
    result = diff(old, new)
    assert process_row(result, 79)["changes"] == {}
    assert card_row(result, CARD["id"])["changes"]["memory.used_bytes"]["delta"] == 40 * MIB
