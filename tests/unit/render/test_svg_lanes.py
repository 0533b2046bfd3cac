"""Lanes of a picture: what was not measured is hatched there too, with its reason to hover over."""

from __future__ import annotations

import re
from typing import Any

from gpusnap.explain.explanation import explain_history
from gpusnap.explain.history import History
from gpusnap.render.svg import svg_picture
from tests.builders import GIB, START, adapter, process, snapshot

BAND = re.compile(
    r'<rect class="(gap|unknown)" fill="url\(#(?:gap|unknown)\)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" '
    r'height="([\d.]+)"><title>([^<]*)</title>'
)


def picture(*, holes: range = range(0), gap_at: int = 99) -> str:
    """30 samples a minute apart; the power of samples `holes` is unknown, before `gap_at` there are 50 minutes."""
    history = History(pictures=True)
    for step in range(30):
        late = 60.0 * step + (3000 if step >= gap_at else 0)
        power: Any = "null:device-busy" if step in holes else 200.0
        card = adapter(
            used=GIB, busy=30, leaves={"power.draw_watts": power, "temperature.gpu_celsius": "null:not-supported"}
        )
        history.add(snapshot([card], [], at=START + late, uptime=86_400 + late))
    return svg_picture(explain_history(history))


def bands(svg: str, lane: str | None) -> list[tuple[str, str]]:
    """(kind, hover text) of what is hatched in a lane; None: in the memory, above all lanes."""
    if lane is None:
        part = svg.partition('<g class="lane"')[0]
    else:
        part = svg.partition(f'data-lane="{lane}"')[2].partition("</g>")[0]
    return [(found[1], found[6]) for found in BAND.finditer(part)]


def test_a_lane_says_why_a_stretch_of_it_has_no_figure() -> None:
    svg = picture(holes=range(10, 15))
    assert bands(svg, "power") == [
        ("unknown", "not measured from 2026-11-30 12:10Z to 12:15Z: the device was busy")
    ]
    assert bands(svg, "load") == []
    assert bands(svg, None) == []
    assert ">not measured</text>" in svg, "the key names the hatching"


def test_a_gap_is_hatched_in_the_memory_and_in_each_lane() -> None:
    svg = picture(gap_at=20)
    (gap,) = bands(svg, None)
    assert gap[0] == "gap"
    assert gap[1].startswith("gap of 51 min 00 s from 2026-11-30 12:19Z to 13:10Z: ")
    assert bands(svg, "load") == [gap]
    assert bands(svg, "power") == [gap]


def test_a_lane_that_was_never_measured_is_not_drawn_and_not_hatched() -> None:
    svg = picture()
    assert 'data-lane="temperature"' not in svg
    assert 'class="unknown"' not in svg


def test_a_short_hole_survives_the_thinning_of_a_long_recording() -> None:
    history = History(pictures=True)
    for step in range(5000):
        power: Any = "null:device-busy" if step == 2501 else 200.0
        card = adapter(used=GIB, leaves={"power.draw_watts": power})
        history.add(snapshot([card], [], at=START + 60 * step, uptime=86_400.0 + 60 * step))
    ((kind, said),) = bands(svg_picture(explain_history(history)), "power")
    assert kind == "unknown"
    assert said.endswith(": the device was busy")


def test_the_key_counts_the_starts_and_exits_that_have_no_mark() -> None:
    """150 processes that each live for one sample: 149 starts and 149 exits are seen, 120 are drawn."""
    history = History(pictures=True)
    for step in range(150):
        rows = [process(1000 + step, GIB, start_ticks=step + 1)]
        history.add(snapshot([adapter(used=2 * GIB)], rows, at=START + 60 * step, uptime=86_400 + 60 * step))
    svg = svg_picture(explain_history(history))
    assert len(re.findall(r'<path class="(?:start|exit)" d="[^"]*"><title>', svg)) == 120
    assert ">178 more starts and exits are not marked</text>" in svg
    assert "not marked" not in picture()
