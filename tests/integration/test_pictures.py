"""The HTML page and the SVG in a real browser: text, geometry, hover texts, both colour schemes, no network."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.explain.explanation import explain_history
from gpusnap.explain.history import History
from gpusnap.render.html import html_page
from gpusnap.render.svg import svg_picture
from tests.builders import GIB, MIB, START, adapter, process, recording, snapshot
from tests.example_recordings import RECORDINGS
from tests.integration.chromium import Page, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpusnap.explain.explanation import Explained
    from gpusnap.model import Snapshot

pytestmark = pytest.mark.integration

# Of every element of a class: its box, its hover text, its data.
BOXES = """(name) => JSON.stringify([...document.querySelectorAll(name)].map(e => {
  const b = e.getBoundingClientRect(), t = e.querySelector(':scope > title');
  return {x: b.x, y: b.y, w: b.width, h: b.height, said: t && t.textContent, text: e.textContent,
          part: e.getAttribute('data-part'), lane: e.getAttribute('data-lane')};
}))"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as opened:
        yield opened


def drawn(documents: list[Snapshot]) -> Explained:
    return explain_history(History(pictures=True).feed(documents), source="night.jsonl")


def show(page: Page, explained: Explained, folder: Path, form: str = "svg") -> None:
    path = folder / f"picture.{form}"
    path.write_text(svg_picture(explained) if form == "svg" else html_page(explained), encoding="utf-8")
    page.requests.clear()
    page.open(path.as_uri())


def boxes(page: Page, selector: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(page.evaluate(f"({BOXES})({json.dumps(selector)})"))
    return found


def test_the_answer_is_whole_and_within_the_picture(page: Page, tmp_path: Path) -> None:
    explained = drawn(list(RECORDINGS["step-leak.jsonl.gz"]()))
    show(page, explained, tmp_path)
    lines, (paper,) = boxes(page, ".answer tspan"), boxes(page, ".paper")
    assert " ".join(line["text"] for line in lines) == explained.document["answer"]
    assert all(line["x"] + line["w"] <= paper["x"] + paper["w"] for line in lines)
    (title,) = boxes(page, ".card > .title")
    assert max(line["y"] + line["h"] for line in lines) <= title["y"]


def test_the_step_leak_is_drawn_where_it_was_measured(page: Page, tmp_path: Path) -> None:
    show(page, drawn(list(RECORDINGS["step-leak.jsonl.gz"]())), tmp_path)
    (frame,) = boxes(page, ".card > .frame")
    span = 480 * 60  # seconds from the first sample to one interval after the last
    # The gap: from the sample at minute 370 to that at 385.
    (gap,) = boxes(page, "g.card > .gap")
    assert gap["x"] - frame["x"] == pytest.approx(370 * 60 / span * frame["w"], abs=1.5)
    assert gap["w"] == pytest.approx(15 * 60 / span * frame["w"], abs=1.5)
    assert gap["h"] == pytest.approx(frame["h"], abs=1)
    assert "gap of 15 min 00 s from 2026-11-30 04:10Z to 04:25Z: the machine slept" in gap["said"]
    # Two stretches that were not measured: minutes 101-102 and 250.
    unknown = boxes(page, "g.card > .unknown")
    assert [round((box["x"] - frame["x"]) / frame["w"] * span / 60) for box in unknown] == [101, 250]
    assert all("NVML_ERROR_IN_USE" in box["said"] for box in unknown)
    # The lanes below have the same gap, as high as they are.
    below, lanes = boxes(page, "g.lane .gap"), boxes(page, "g.lane .frame")
    assert len(below) == len(lanes) >= 1
    for hatched, lane in zip(below, lanes, strict=True):
        assert (hatched["x"], hatched["w"], hatched["said"]) == (gap["x"], gap["w"], gap["said"])
        assert (hatched["y"], hatched["h"]) == pytest.approx((lane["y"], lane["h"]), abs=1)
    # No area is drawn over the gap: ollama's last area before it ends there, the next begins after it.
    areas = [box for box in boxes(page, "path.part") if box["part"] == "ollama 882"]
    assert len(areas) == 4, "runs between two unknown stretches and a gap"
    for area in areas:
        assert area["x"] + area["w"] <= gap["x"] + 2 or area["x"] >= gap["x"] + gap["w"] - 2


def test_heights_are_bytes(page: Page, tmp_path: Path) -> None:
    documents = [
        snapshot(
            [adapter(total=16 * GIB, used=12 * GIB)],
            [process(7, 8 * GIB), process(8, 2 * GIB, name="other", start_ticks=5)],
            at=START + 10 * step,
            uptime=10.0 * step,
        )
        for step in range(20)
    ]
    show(page, drawn(documents), tmp_path)
    (frame,) = boxes(page, ".card > .frame")
    heights = {box["part"]: box for box in boxes(page, "path.part")}
    expected = {"python 7": 8, "other 8": 2, "unattributed": 2, "free": 4}
    assert heights.keys() == expected.keys()
    for name, gib in expected.items():
        assert heights[name]["h"] == pytest.approx(frame["h"] * gib / 16, abs=1)
        assert f"{gib}.0 GiB" in heights[name]["said"]
    # The stack stands in this order from the bottom.
    tops = [heights[name]["y"] for name in ("python 7", "other 8", "unattributed", "free")]
    assert tops == sorted(tops, reverse=True)
    legend = [box["text"] for box in boxes(page, ".legend")]
    assert "python 7 8.0 GiB" in legend


def test_one_lane_a_card_and_only_lanes_that_were_measured(page: Page, tmp_path: Path) -> None:
    show(page, drawn(list(RECORDINGS["idle-but-full.jsonl.gz"]())), tmp_path)
    cards = boxes(page, "g.card")
    assert len(cards) == 2
    assert cards[0]["y"] + cards[0]["h"] <= cards[1]["y"] + 1
    titles = [box["text"] for box in boxes(page, "text.title")]
    assert [title.split("  ")[0] for title in titles] == ["GPU 6", "GPU 7"]
    assert [box["lane"] for box in boxes(page, "g.lane")] == ["load", "load"]
    show(page, drawn(list(RECORDINGS["step-leak.jsonl.gz"]())), tmp_path)
    lanes = boxes(page, "g.lane")
    assert [lane["lane"] for lane in lanes] == ["load", "bandwidth", "temperature", "power"]
    assert "temperature: 41 to 71 °C" in lanes[2]["said"]


def test_starts_exits_reboots_and_findings_are_marked(page: Page, tmp_path: Path) -> None:
    documents = list(RECORDINGS["step-leak.jsonl.gz"]())
    for number in range(3):
        documents.append(
            snapshot(
                [adapter(total=16 * GIB, used=GIB)],
                [],
                at=START + 3600 + 60 * number,
                uptime=50.0 + 60 * number,
                boot="99999999-2222-4333-8444-555555555555",
                hostname="desk",
                recording=recording(number + 1, writer=5),
            )
        )
    show(page, drawn(documents), tmp_path)
    (start,) = boxes(page, "g.card path.start")
    (end,) = boxes(page, "g.card path.exit")
    assert start["said"].startswith("python3 5150 (alice) started")
    assert end["said"].startswith("python3 5150 (alice) exited")
    assert start["x"] < end["x"]
    (reboot,) = boxes(page, "g.card line.reboot")
    assert "reboot" in reboot["said"]
    (finding,) = boxes(page, "g.card path.finding")
    assert finding["said"].startswith("step-leak: ollama (pid 882), since 2026-11-29")
    words = [box["text"] for box in boxes(page, "g.key text")]
    assert words == [
        *("no samples", "not measured", "a process started", "a process exited", "a finding begins", "reboot")
    ]
    # The key stands below the cards, its words beside each other.
    (below,) = boxes(page, "g.key")
    (card,) = boxes(page, "g.card")
    assert below["y"] >= card["y"] + card["h"] - 1
    said = boxes(page, "g.key text")
    assert all(one["x"] + one["w"] <= other["x"] - 10 for one, other in pairwise(said))


def test_a_picture_without_marks_has_no_key(page: Page, tmp_path: Path) -> None:
    show(page, drawn(list(RECORDINGS["idle-but-full.jsonl.gz"]())), tmp_path)
    assert boxes(page, "g.key") == []


def test_hover_says_what_was_measured_at_that_place(page: Page, tmp_path: Path) -> None:
    show(page, drawn(list(RECORDINGS["step-leak.jsonl.gz"]())), tmp_path)
    (frame,) = boxes(page, ".card > .frame")
    hovers = boxes(page, ".hover")
    assert 180 <= len(hovers) <= 360
    # Minute 60, in an idle stretch: the fourth cycle has not begun, three steps were lost.
    x = frame["x"] + 60 / 480 * frame["w"]
    there = next(box for box in hovers if box["x"] <= x < box["x"] + box["w"])
    assert "2026-11-29 23:0" in there["said"]
    assert "ollama 882" in there["said"]
    # What the browser finds under the mouse there is that strip.
    y = frame["y"] + frame["h"] / 2
    assert (
        page.evaluate(f"document.elementFromPoint({x}, {y}).querySelector('title').textContent") == there["said"]
    )


def test_ten_thousand_samples_stay_readable_and_keep_a_single_peak(page: Page, tmp_path: Path) -> None:
    documents = [
        snapshot(
            [adapter(total=16 * GIB, used=15 * GIB if step == 7_777 else 4 * GIB, busy=0)],
            [process(7, (14 if step == 7_777 else 3) * GIB)],
            at=START + 10 * step,
            uptime=10.0 * step,
        )
        for step in range(10_000)
    ]
    explained = drawn(documents)
    show(page, explained, tmp_path)
    assert (tmp_path / "picture.svg").stat().st_size < 1_000_000
    (frame,) = boxes(page, ".card > .frame")
    area = next(box for box in boxes(page, "path.part") if box["part"] == "python 7")
    assert area["h"] == pytest.approx(frame["h"] * 14 / 16, abs=1), "the one peak is not averaged away"
    assert "peak 15.0 of 16.0 GiB; at the end:" in [box["text"] for box in boxes(page, ".peak")]


def test_light_and_dark(page: Page, tmp_path: Path) -> None:
    show(page, drawn(list(RECORDINGS["sawtooth.jsonl.gz"]())), tmp_path)
    colour = "getComputedStyle(document.querySelector('.paper')).fill"
    page.prefer("light")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.prefer("dark")
    assert page.evaluate(colour) == "rgb(17, 24, 39)"
    page.prefer("light")


def test_the_page_says_everything_and_asks_for_nothing(page: Page, tmp_path: Path) -> None:
    explained = drawn(list(RECORDINGS["step-leak.jsonl.gz"]()))
    show(page, explained, tmp_path, "html")
    assert page.requests == [(tmp_path / "picture.html").as_uri()]
    assert page.evaluate("document.querySelector('#answer').textContent") == explained.document["answer"]
    codes = page.evaluate("[...document.querySelectorAll('.finding[data-code]')].map(e => e.dataset.code).join()")
    assert codes == "step-leak,gap"
    rows = page.evaluate("document.querySelectorAll('#series tr').length")
    assert rows == 1 + len(explained.document["series"])
    # Cards and programs by name, each column of sizes in one unit.
    cells = "[...row.children].map(cell => cell.innerText).join()"
    table = f"[...document.querySelectorAll('#series tr')].map(row => {cells}).join('|')"
    lines = [line.split(",") for line in page.evaluate(table).split("|")]
    assert [line[:2] for line in lines[1:3]] == [["GPU 0", "all"], ["GPU 0", "ollama (pid 882)"]]
    assert lines[2][4:8] == ["0.9 GiB", "6.6 GiB", "0.9 GiB", "11.2 GiB"]
    # Nothing is wider than the window.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_choice_between_processes_and_categories_works_without_a_script(page: Page, tmp_path: Path) -> None:
    show(page, drawn(list(RECORDINGS["step-leak.jsonl.gz"]())), tmp_path, "html")
    shown = "getComputedStyle(document.querySelector('.by-category')).display"
    assert page.evaluate(shown) == "none"
    page.evaluate("document.querySelector('label[for=category]').click()")
    assert page.evaluate(shown) == "block"
    assert page.evaluate("getComputedStyle(document.querySelector('.by-process')).display") == "none"
    parts = {box["part"] for box in boxes(page, ".by-category path.part")}
    assert {"llm", "desktop", "unattributed", "free"} <= parts
    assert page.evaluate("document.querySelectorAll('script').length") == 0


def test_names_that_others_choose_stay_text(page: Page, tmp_path: Path) -> None:
    evil = "<script>document.title='x'</script>\x1b[31m\x00&\"'"
    documents = [
        snapshot(
            [adapter(total=16 * GIB, used=9 * GIB, model=evil)],
            [process(7, 8 * GIB + MIB * step, name=evil, user=evil, cmdline=None, exe=None)],
            at=START + 10 * step,
            uptime=10.0 * step,
        )
        for step in range(30)
    ]
    for form in ("svg", "html"):
        show(page, drawn(documents), tmp_path, form)
        assert page.evaluate("document.querySelectorAll('script').length") == 0
        assert page.evaluate("document.title") in ("", "gpusnap: night.jsonl")
        assert "parsererror" not in page.evaluate("document.documentElement.outerHTML")
        assert any("<script>" in (box["said"] or "") for box in boxes(page, "path.part"))
