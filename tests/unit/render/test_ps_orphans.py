"""`ps --orphans`: the rule that `explain` has, on the rows of a snapshot."""

from __future__ import annotations

from gpusnap.explain.view import Surroundings
from gpusnap.render.ps_select import Selection, select
from tests.builders import adapter, process, snapshot


def chosen(around: Surroundings) -> list[int]:
    rows = [
        process(pid=9811, ppid=1, name="VLLM::Worker", category="llm"),
        process(pid=9812, ppid=1, name="python3", category="ai"),
        process(pid=9813, ppid=1, name="dcgm", category="ai", systemd_unit="dcgm.service"),
        process(pid=9814, ppid=1, name="kwin_wayland", category="desktop"),
        process(pid=9815, ppid=4000, name="python3", category="ai"),
    ]
    document = snapshot(adapters=[adapter()], processes=rows)
    wanted = Selection(orphans=True, sort="pid")
    wanted.around = around
    return [row["pid"] for row in select(document, wanted)]


def test_workers_whose_parent_is_gone_and_nothing_that_init_started_by_right() -> None:
    assert chosen(Surroundings()) == [9811, 9812]


def test_a_process_that_listens_is_no_orphan() -> None:
    assert chosen(Surroundings(listening=frozenset({9812}))) == [9811]
