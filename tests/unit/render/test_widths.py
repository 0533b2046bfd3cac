"""Every text of every machine fits its terminal, and a narrow one loses nothing that explains or compares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.cli.around import look_around
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from gpusnap.diff import diff
from gpusnap.explain.explanation import explain_history, explain_snapshot
from gpusnap.explain.history import History
from gpusnap.explain.subject import Chosen
from gpusnap.explain.view import Viewer
from gpusnap.render.columns import display_width
from gpusnap.render.diff_text import diff_lines
from gpusnap.render.explain import explain_lines
from gpusnap.render.ps_select import GROUP_KEYS, Selection, select, select_groups
from gpusnap.render.ps_text import Layout, group_lines, ps_lines
from gpusnap.render.screen import Screen
from gpusnap.samples import Skips
from gpusnap.sources import iter_samples, load_snapshot
from tests.builders import GIB, adapter, process, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.explain.explanation import Explained
    from gpusnap.model import Snapshot

ROOT = Path(__file__).parents[3]
WIDTHS = (40, 60, 80, 120, 200)
MACHINES = [*sorted((ROOT / "tests/machines").iterdir()), ROOT / "examples/machines/rtx4080-desktop"]
BEFORE, AFTER = (load_snapshot(str(ROOT / f"examples/{name}-load.json")).doc for name in ("before", "after"))
# Longer words may be broken where a column is narrow.
LONGEST_WHOLE_WORD = 10


def check_fit(shown: Callable[[Screen], list[str]]) -> None:
    for width in WIDTHS:
        for line in shown(Screen(width)):
            assert display_width(line) <= width, line


def check_whole(shown: Callable[[Screen], list[str]]) -> None:
    """It fits, nothing is cut, and each word that a pipe gets is there."""
    check_fit(shown)
    whole = words(shown(Screen()))
    for width in WIDTHS:
        lines = shown(Screen(width))
        assert whole - words(lines) == set(), width


def words(lines: list[str]) -> set[str]:
    found = re.sub("[█▓▒░▁▂▃▄▅▆▇·]", " ", " ".join(lines)).casefold().split()
    return {word for word in found if len(word) <= LONGEST_WHOLE_WORD}


@pytest.fixture(scope="module", params=MACHINES, ids=[folder.name for folder in MACHINES])
def machine(request: pytest.FixtureRequest) -> tuple[Snapshot, Any]:
    host = CapturedHost(request.param)
    document = Collector(host, CollectOptions(window=0.25, holders=True)).sample()
    return document, look_around(host, document)


def test_explain_fits_and_is_whole(machine: tuple[Snapshot, Any]) -> None:
    document, around = machine
    chosen = [Chosen("host"), *(Chosen("adapter", adapter=card["id"]) for card in document["adapters"])]
    chosen += [Chosen("process", pid=pid) for pid in {row["pid"] for row in document["processes"] or ()}]
    for one in chosen:
        explained = explain_snapshot(document, one, viewer=Viewer(1000, "alice"), around=around, contexts=[8192])
        check_whole(lambda screen, explained=explained: explain_lines(explained, screen))  # type: ignore[misc]
    explained = explain_snapshot(document, around=around)
    check_whole(lambda screen: explain_lines(explained, screen, sources=True))


def test_ps_fits(machine: tuple[Snapshot, Any]) -> None:
    document, _ = machine
    rows = select(document, Selection())
    check_fit(lambda screen: ps_lines(document, rows, Layout(screen)))
    check_fit(lambda screen: ps_lines(document, rows, Layout(screen, wide=True)))
    for key in GROUP_KEYS:
        _, groups = select_groups(document, Selection(), key)
        check_whole(lambda screen, key=key, groups=groups: group_lines(document, groups, key, Layout(screen)))  # type: ignore[misc]


def test_diff_fits_and_is_whole(machine: tuple[Snapshot, Any]) -> None:
    document, _ = machine
    if document["processes"]:
        fewer: Snapshot = {**document, "processes": document["processes"][1:]}
        check_compared(document, fewer)
    check_compared(BEFORE, document)


def check_compared(before: Snapshot, after: Snapshot) -> None:
    result = diff(before, after)
    users = words([str(row["user"]) for document in (before, after) for row in document["processes"] or ()])
    check_fit(lambda screen: diff_lines(result, before, after, screen))
    whole = words(diff_lines(result, before, after, Screen()))
    for width in WIDTHS:
        # The user's column gives way before a table becomes paragraphs.
        assert whole - words(diff_lines(result, before, after, Screen(width))) <= {*users, "user"}


def test_the_shipped_examples_compared() -> None:
    check_compared(BEFORE, AFTER)
    check_compared(AFTER, BEFORE)


@pytest.mark.parametrize("name", ["idle-but-full", "sawtooth", "step-leak"])
def test_a_recording_fits_and_is_whole(name: str) -> None:
    path = str(ROOT / f"examples/{name}.jsonl.gz")
    history = History(source=path).feed(one.doc for one in iter_samples(path, Skips()))
    explained = explain_history(history, source=path)
    check_whole(lambda screen: explain_lines(explained, screen, command=path))
    check_whole(lambda screen: explain_lines(explained, screen, sources=True))


def explained_cards(cards: int, processes: int) -> Explained:
    rows = [process(100 + n, GIB // (n + 1), on=card) for card in range(cards) for n in range(processes)]
    for card in range(cards):
        for row in rows:
            if row["adapter"] == adapter(card)["id"]:
                row["start_ticks"] = row["pid"] * 10 + card
    return explain_snapshot(snapshot([adapter(card, used=8 * GIB) for card in range(cards)], rows))


def test_each_of_many_cards_shows_its_biggest_processes_and_how_to_see_the_others() -> None:
    lines = explain_lines(explained_cards(4, 9), Screen())
    for card in range(4):
        start = next(place for place, line in enumerate(lines) if line.startswith(f"GPU {card}  "))
        own = lines[start : lines.index("", start)]
        pids = [line.split()[0] for line in own if line.split()[0].isdigit()]
        assert pids == ["100", "101", "102", "103", "104"], "the five biggest"
        assert own[-1] == f"       and 4 more: gpusnap ps --adapter {card}"


def test_two_cards_show_ten_processes_each() -> None:
    lines = explain_lines(explained_cards(2, 11), Screen())
    assert sum("and 1 more: gpusnap ps --adapter" in line for line in lines) == 2


def test_a_snapshot_from_a_file_is_said_in_the_command_for_the_others() -> None:
    rows = [process(100 + n, GIB // (n + 1)) for n in range(11)]
    explained = explain_snapshot(snapshot([adapter(used=8 * GIB)], rows), source="my night.json")
    assert any(
        "and 1 more: gpusnap ps --from 'my night.json' --adapter 0" in line
        for line in explain_lines(explained, Screen())
    )


def test_ps_says_which_columns_it_left_out() -> None:
    document = AFTER
    lines = ps_lines(document, select(document, Selection()), Layout(Screen(40)))
    assert any(line.split() == ["PID", "USER", "VRAM", "PROGRAM"] for line in lines)
    assert "not shown in 40 columns: AGE, SPILL, GPU%, ROLE" in " ".join(" ".join(lines).split())
    assert any(line.split() == ["4711", "alice", "13.8", "G", "llama-server"] for line in lines)


def test_a_wide_script_is_counted_in_columns() -> None:
    rows = [process(7, GIB, name="日本語の名前がとても長いプログラム", exe=None, cmdline=None)]
    document = snapshot([adapter(used=2 * GIB)], rows)
    explained = explain_snapshot(document, Chosen("process", pid=7))
    check_fit(lambda screen: explain_lines(explained, screen))
    check_fit(lambda screen: ps_lines(document, select(document, Selection()), Layout(screen)))
