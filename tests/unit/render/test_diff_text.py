"""`diff` for people: whole screens, figures that add up, and nothing that reads as zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusnap.diff import diff
from gpusnap.render.columns import display_width
from gpusnap.render.diff_text import diff_lines, diff_markdown
from gpusnap.render.screen import Screen
from tests.builders import GIB, MIB, START, Row, adapter, process, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Snapshot


def gib(tenths: int) -> int:
    return tenths * (GIB // 10)


def shown(before: Snapshot, after: Snapshot, width: int | None = None, **options: Any) -> list[str]:
    result = diff(before, after, **options)
    lines = diff_lines(result, before, after, Screen(width), min_bytes=options.get("min_bytes", 0))
    assert all(width is None or display_width(line) <= width for line in lines)
    return lines


def desktop(tenths: int, rows: list[Row], seconds: float = 0) -> Snapshot:
    """A card that uses so many tenths of a GiB, with a compositor and an X server of 0.6 and 0.8 GiB."""
    fixed = [process(2210, gib(6), name="kwin_wayland"), process(2211, gib(8), name="Xorg")]
    card = adapter(0, used=gib(tenths))
    return snapshot([card], [*fixed, *rows], at=START + seconds, uptime=86_400 + seconds)


FIREFOX = process(3120, gib(7), name="firefox")
GROWN = process(3120, gib(8), name="firefox")
SERVER = process(4711, gib(90), name="llama-server", start_ticks=8_640_100)


def test_a_model_load() -> None:
    assert shown(desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER], 250)) == [
        "RTX 4080 SUPER: +9.1 GiB in 4 min 10 s (2.5 → 11.6 GiB): llama-server took 9.0, firefox 0.1.",
        "",
        "GPU 0  NVIDIA GeForce RTX 4080 SUPER   used 2.5 → 11.6 GiB",
        "   STATUS         PID  USER   PROGRAM        BEFORE    AFTER    CHANGE",
        "   appeared      4711  alice  llama-server        -  9.0 GiB  +9.0 GiB",
        "   changed       3120  alice  firefox       0.7 GiB  0.8 GiB  +0.1 GiB",
        "   same                       2 processes   1.4 GiB  1.4 GiB         0",
        "   unattributed                             0.4 GiB  0.4 GiB         0",
    ]


def test_memory_that_did_not_come_free_is_the_verdict() -> None:
    held = int(20.1 * GIB)
    before = snapshot([adapter(0, total=24 * GIB, used=21 * GIB)], [process(9021, held, user="bob")])
    after = snapshot([adapter(0, total=24 * GIB, used=21 * GIB)], [], at=START + 10, uptime=86_410.0)
    lines = shown(before, after)
    assert lines[0] == (
        "RTX 4080 SUPER: used stays 21.0 GiB in 10 s: python 9021 (bob) exited holding 20.1 GiB and 0 B came free."
    )
    assert lines[-1] == "   unattributed +20.1 GiB: python 9021 (bob) exited holding 20.1 GiB and 0 B came free"


def test_a_figure_that_became_unknown_says_why_and_is_not_zero() -> None:
    after = desktop(25, [process(3120, "null:no-permission", name="firefox")])
    lines = shown(desktop(25, [FIREFOX]), after)
    (row,) = [line for line in lines if line.startswith("   changed")]
    assert row.split()[-4:] == ["717", "MiB", "unknown", "unknown"]
    assert "   3120 firefox: vram 717 MiB → unknown (no permission)" in lines
    assert any(line.startswith("   unattributed ") and "up to" in line for line in lines)


def test_a_card_that_could_not_be_read_is_not_said_to_be_gone() -> None:
    late = {"name": "nvml", "status": "timeout", "version": None, "driver_version": None, "detail": None}
    lines = shown(desktop(14, []), snapshot([], None, backends=[late]))
    assert lines[0] == "RTX 4080 SUPER could not be read in the after snapshot."
    assert lines[2] == "GPU 0  NVIDIA GeForce RTX 4080 SUPER   not read"


def test_nothing_changed_is_one_line() -> None:
    same = desktop(25, [FIREFOX])
    assert shown(same, desktop(25, [FIREFOX], 60)) == ["Nothing changed in 1 min 00 s: 1 card, 3 processes."]
    assert shown(snapshot([]), snapshot([])) == ["No GPU in either snapshot."]


def test_command_lines_stand_side_by_side_where_a_program_came_back() -> None:
    def server(pid: int, cache: str) -> Row:
        words = ["/opt/llama-server", "-m", "q.gguf", "-ctk", cache]
        return process(pid, GIB, name="llama-server", exe="/opt/llama-server", cmdline=words, start_ticks=pid)

    for match in ("identity", "program"):
        lines = shown(desktop(25, [server(10, "f16")]), desktop(25, [server(2000, "q8_0")]), match=match)
        place = lines.index("   llama-server came back with other arguments:")
        assert lines[place + 1 : place + 3] == [
            "     before   10  /opt/llama-server -m q.gguf -ctk f16",
            "     after  2000  /opt/llama-server -m q.gguf -ctk q8_0",
        ]


def test_long_command_lines_are_shown_from_where_they_part() -> None:
    def server(pid: int, cache: str) -> Row:
        words = ["/opt/llama-server", "-m", "/models/" + "x" * 300, "-ctk", cache]
        return process(pid, GIB, name="llama-server", exe="/opt/llama-server", cmdline=words, start_ticks=pid)

    lines = shown(desktop(25, [server(10, "f16")]), desktop(25, [server(20, "q8_0")]), width=80)
    assert any(line.endswith("-ctk f16") for line in lines)
    assert any(line.endswith("-ctk q8_0") for line in lines)


def test_a_narrow_terminal_gives_up_the_user_before_the_change() -> None:
    lines = shown(desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER], 250), width=60)
    (head,) = [place for place, line in enumerate(lines) if "STATUS" in line]
    assert lines[head].split() == ["STATUS", "PID", "PROGRAM", "BEFORE", "AFTER", "CHANGE"]
    assert lines[head + 1].endswith("+9.0 GiB")


def test_a_terminal_too_narrow_for_the_table_has_a_paragraph_a_row() -> None:
    lines = shown(desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER], 250), width=40)
    said = " ".join(" ".join(lines).split())
    assert "status appeared · pid 4711 · user alice · program llama-server · before - · after 9.0 GiB" in said
    assert "(2.5 → 11.6 GiB): llama-server took 9.0, firefox 0.1." in said


def test_the_unit_follows_the_biggest_change() -> None:
    before = snapshot([adapter(0, used=2560 * MIB)], [process(3120, GIB, name="firefox")])
    after = snapshot([adapter(0, used=2600 * MIB)], [process(3120, GIB + 40 * MIB, name="firefox")])
    lines = shown(before, after)
    (row,) = [line for line in lines if line.startswith("   changed")]
    assert row.split()[-6:] == ["1,024", "MiB", "1,064", "MiB", "+40", "MiB"]
    assert lines[0] == "RTX 4080 SUPER: +40 MiB in 0 s (2,560 → 2,600 MiB): firefox took 40."


def test_a_change_too_small_for_the_unit_is_no_zero() -> None:
    speck = process(3120, gib(7) + MIB, name="firefox")
    lines = shown(desktop(25, [FIREFOX]), desktop(116, [speck, SERVER]))
    (row,) = [line for line in lines if line.startswith("   changed")]
    assert row.endswith("+<0.1 GiB")


def test_a_lost_card_comes_first_and_warnings_name_their_card() -> None:
    cards = [adapter(0, used=GIB), adapter(1, used=GIB)]
    lost = adapter(1, used="null:device-lost", listed="null:device-lost")
    lost.update(health="lost", uuid=None, model=None, id="nvml-index:1")
    after = snapshot([adapter(0, used=9 * GIB), lost], [])
    lines = shown(snapshot(cards, [process(5, GIB, on=1)]), after)
    assert lines[0] == ("GPU 1 (RTX 4080 SUPER) is lost. Also GPU 0 (RTX 4080 SUPER) +8.0 GiB.")
    assert "   health: ok → lost" in lines
    assert "GPU 1  NVIDIA GeForce RTX 4080 SUPER   lost" in lines
    assert lines[-1].startswith("! GPU 1 (RTX 4080 SUPER): pid 5 is unknown: the card is lost")


def test_a_card_without_a_readable_model_is_called_by_its_number() -> None:
    before, after = (snapshot([{**adapter(1, used=used), "model": None}], []) for used in (GIB, 9 * GIB))
    assert shown(before, after)[0].startswith("GPU 1: +8.0 GiB")


def test_cards_that_did_nothing_are_one_line() -> None:
    cards = [adapter(n, used=GIB) for n in range(3)]
    lines = shown(snapshot(cards), snapshot([cards[0], adapter(1, used=2 * GIB), cards[2]]))
    assert lines[-1] == "Unchanged: GPU 0 (RTX 4080 SUPER), GPU 2 (RTX 4080 SUPER)."
    assert sum(line.startswith("GPU") for line in lines) == 2


def test_small_changes_are_summed_under_min() -> None:
    lines = shown(desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER]), min_bytes=GIB)
    assert [line.split()[0] for line in lines[4:]] == ["appeared", "smaller", "same", "unattributed"]


def test_more_attributed_than_used_is_a_range() -> None:
    """2.1 GiB of rows on a card that uses 1.0: surfaces that are shared count on both sides."""
    shared = process(3120, gib(7), name="firefox", leaves={"vram_shared_bytes": gib(5)})
    lines = shown(desktop(25, [FIREFOX]), desktop(10, [FIREFOX]))
    (line,) = [line for line in lines if line.startswith("   unattributed ")]
    assert line.split() == ["unattributed", "0.4", "GiB", "0", "unknown"]
    lines = shown(desktop(25, [FIREFOX]), desktop(18, [shared]))
    (line,) = [line for line in lines if line.startswith("   unattributed ")]
    # 1.8 used - (2.1 - 0.5 shared with others) = 0.2 at most
    assert line.split() == ["unattributed", "0.4", "GiB", "0", "to", "0.2", "GiB", "unknown"]


def test_ecc_and_state_are_told_in_words() -> None:
    old = adapter(0, used=GIB, leaves={"ecc.corrected_volatile": 5, "ecc.uncorrected_aggregate": 0})
    new = adapter(0, used=GIB, leaves={"ecc.corrected_volatile": 3, "ecc.uncorrected_aggregate": 2})
    lines = shown(
        snapshot([old], [process(1, GIB, state="sleeping")]),
        snapshot([new], [process(1, GIB, state="zombie")], uptime=86_500.0, at=START + 100),
    )
    assert "   ecc.corrected_volatile: 5 → 3 (reset)" in lines
    assert "   ecc.uncorrected_aggregate: 0 → 2 (+2)" in lines
    assert "   1 python: state sleeping → zombie" in lines


def test_an_unknown_pid_on_both_sides_is_one_line_without_a_change() -> None:
    row = process(28290, 1012 * MIB, start_ticks=None, name="null:other-pid-namespace")
    lines = shown(desktop(25, [row]), desktop(25, [row]))
    (line,) = [line for line in lines if line.startswith("   unknown")]
    assert line.split()[-5:] == ["1.0", "GiB", "1.0", "GiB", "unknown"]


def test_names_cannot_drive_the_terminal_or_break_the_ticket() -> None:
    evil = process(5, GIB, name="x\x1b[31m|`<b>`\n", start_ticks=8_640_200)
    text = shown(desktop(25, [FIREFOX]), desktop(25, [FIREFOX, evil]))
    assert all(line.isprintable() for line in text)
    before, after = desktop(25, [FIREFOX]), desktop(25, [FIREFOX, evil])
    for line in diff_markdown(diff(before, after), before, after):
        assert line.isprintable()
        if line.startswith("| appeared"):
            assert line.count("|") - line.count("\\|") == 8


def test_markdown_for_a_ticket() -> None:
    before, after = desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER], 250)
    lines = diff_markdown(diff(before, after, before_source="a.json", after_source="b.json"), before, after)
    assert lines[0].startswith("**RTX 4080 SUPER: +9.1 GiB in 4 min 10 s")
    assert lines[2] == "`a.json` (2026-11-30T12:00:00.000Z) → `b.json` (2026-11-30T12:04:10.000Z)"
    assert [cell.strip() for cell in lines[8].strip("|").split("|")] == [
        *("appeared", "4711", "alice", "llama-server", "-", "9.0 GiB", "+9.0 GiB"),
    ]


def test_colour_changes_no_word() -> None:
    before, after = desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER], 250)
    result = diff(before, after)
    coloured = "\n".join(diff_lines(result, before, after, Screen(colour=True)))
    assert "\x1b[1m" in coloured
    plain = coloured.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert plain == "\n".join(diff_lines(result, before, after, Screen()))


def tenths_of(cell: str) -> int:
    return 0 if cell in ("-", "0") else round(float(cell.removesuffix(" GiB").replace(",", "")) * 10)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 4 * GIB), st.integers(0, 4 * GIB)), min_size=1, max_size=5),
    st.integers(0, GIB),
    st.integers(0, GIB),
)
def test_columns_add_up_to_what_the_card_uses(pairs: list[tuple[int, int]], rest: int, later: int) -> None:
    from gpusnap.render.diff_rows import CardDiff
    from gpusnap.render.diff_table import table_of
    from gpusnap.render.rounding import steps

    total = (sum(old for old, _ in pairs) + rest, sum(new for _, new in pairs) + later)
    before, after = (
        snapshot(
            [adapter(0, total=64 * GIB, used=total[side])],
            [process(100 + number, pair[side]) for number, pair in enumerate(pairs)],
        )
        for side in (0, 1)
    )
    result = diff(before, after)
    rows = table_of(CardDiff(result, before, after, result["adapters"][0]), 0)
    if not all("GiB" in cell or cell in ("0", "-") for row in rows for cell in row[4:6]):
        return  # small machines are shown in MiB
    if any("<" in cell for row in rows for cell in row[4:7]):
        return
    for row in rows:
        assert tenths_of(row[5]) - tenths_of(row[4]) == tenths_of(row[6].removeprefix("+"))
    for column, used in ((4, total[0]), (5, total[1])):
        assert sum(tenths_of(row[column]) for row in rows) == steps(used, "GiB")


@pytest.mark.parametrize("width", [20, 40, 79, 200])
def test_every_width_is_kept(width: int) -> None:
    shown(desktop(25, [FIREFOX]), desktop(116, [GROWN, SERVER], 250), width=width)


def unified(used: int | str, rows: list[Row]) -> Snapshot:
    """A laptop's chip: no memory of its own, what it uses stands in the system's."""
    card = adapter(
        0, total="null:unified-memory", used="null:unified-memory", model="Apple M4 Pro", vendor="apple"
    )
    card["memory"]["kind"] = "unified"
    card["shared_clients"] = None
    card["memory"]["shared_used_bytes"] = used if isinstance(used, int) else None
    return snapshot([card], rows)


def test_on_unified_memory_the_table_is_about_what_processes_hold_of_the_systems() -> None:
    def row(spill: int) -> Row:
        return process(501, "null:unified-memory", name="llama-server", leaves={"spill_bytes": spill})

    lines = shown(unified(gib(30), [row(gib(20))]), unified(gib(120), [row(gib(110))]))
    assert lines[0] == "Apple M4 Pro: +9.0 GiB in 0 s (3.0 → 12.0 GiB): llama-server took 9.0."
    assert lines[2] == "GPU 0  Apple M4 Pro   used 3.0 → 12.0 GiB of unified memory"
    assert [line.split()[0] for line in lines[4:]] == ["changed"]
    assert lines[4].endswith("2.0 GiB  11.0 GiB  +9.0 GiB")
    lines = shown(unified("null:not-supported", [row(gib(20))]), unified("null:not-supported", [row(gib(110))]))
    assert lines[0] == "Apple M4 Pro: changed in 0 s: llama-server took 9.0."
    assert lines[2] == "GPU 0  Apple M4 Pro   unified memory"


def test_a_partition_is_named_behind_its_card() -> None:
    whole = adapter(0, used="null:no-permission", listed="null:partitioned", model="NVIDIA A100-SXM4-40GB")

    def part(used: int) -> Row:
        row = adapter(3, used=used, total=5 * GIB, model="NVIDIA A100-SXM4-40GB MIG 1g.5gb")
        row.update(kind="partition", parent=whole["id"])
        row["partition"] = {"gpu_instance": 3, "compute_instance": 0, "profile": "1g.5gb"}
        return row

    old, new = part(GIB), part(2 * GIB)
    lines = shown(
        snapshot([whole, old], [process(5, GIB, on=old)]), snapshot([whole, new], [process(5, 2 * GIB, on=new)])
    )
    assert lines[0] == "GPU 0 (1g.5gb 3): +1.0 GiB in 0 s (1.0 → 2.0 GiB): python took 1.0."
    assert lines[2] == "GPU 0  NVIDIA A100-SXM4-40GB, 1g.5gb 3   used 1.0 → 2.0 GiB"
    assert lines[-1] == "Unchanged: GPU 0 (A100-SXM4-40GB)."
