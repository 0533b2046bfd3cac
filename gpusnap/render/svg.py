"""A recording as a picture: one lane a card, stacked memory, gaps hatched with their reason, hover texts.

Plain SVG by hand: no script, no font, no network; light and dark by `prefers-color-scheme`. What was not measured
is drawn as not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.frames import LANES
from gpusnap.render import svg_lanes, svg_stack
from gpusnap.render.card import title as card_title
from gpusnap.render.svg_key import key
from gpusnap.render.svg_marks import hovers, marks, missing
from gpusnap.render.svg_scale import Span, number, text, ticks
from gpusnap.render.svg_style import STYLE
from gpusnap.render.units import format_bytes, format_of_total
from gpusnap.render.wrapped import filled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.explain.explanation import Explained
    from gpusnap.explain.frames import Column
    from gpusnap.explain.history import History

WIDTH, LEFT, RIGHT = 1180, 74, 250
MEMORY_HEIGHT = 190
CARD_HEAD, CARD_FOOT = 34, 34
LEGEND_LINE = 15
ANSWER_LINE = 18
ANSWER_LETTERS = 135  # of its bold type, in the width of the picture


def svg_picture(explained: Explained, *, by_category: bool = False, prefix: str = "", heading: bool = True) -> str:
    """A whole SVG document; `prefix` keeps ids apart on a page of two, which says the answer itself."""
    history = explained.history
    if history is None or history.frames is None:
        raise ValueError("a picture needs a history that was gathered for pictures")
    span = _span(history)
    cards = {
        where: columns
        for where, columns in history.frames.cards.items()
        if explained.document["subject"]["adapter"] in (None, where)
    }
    body: list[str] = []
    said = filled(explained.document["answer"], ANSWER_LETTERS, "") if heading else []
    top = 4.0 if not heading else 26.0 + ANSWER_LINE * len(said)
    for where, columns in cards.items():
        shapes, top = _card(explained, history, where, columns, span, top, by_category=by_category, prefix=prefix)
        body += shapes
    known = key(history, list(cards), explained, top + 4, LEFT, prefix)
    height = number(top + (24 if known else 10))
    answer = text(explained.document["answer"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gpusnap" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{answer}">\n'
        f"<style>{STYLE}</style>\n<defs>{_patterns(prefix)}</defs>\n"
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>\n'
        + (_heading(said) if heading else "")
        + "\n".join([*body, *known])
        + "\n</svg>\n"
    )


def _heading(lines: Sequence[str]) -> str:
    """The answer, whole, in as many lines as it needs."""
    spans = "".join(
        f'<tspan x="12" y="{24 + ANSWER_LINE * place}">{text(line)}</tspan>' for place, line in enumerate(lines)
    )
    return f'<text class="answer">{spans}</text>\n'


def _span(history: History) -> Span:
    first, last = history.timeline.first, history.timeline.last
    if first is None or last is None:
        raise ValueError("a picture needs a sample")
    usual = history.timeline.interval() or 60.0
    return Span(first, max(last + usual, first + 1.0), LEFT, WIDTH - RIGHT)


def _card(
    explained: Explained,
    history: History,
    where: str,
    columns: Sequence[Column],
    span: Span,
    top: float,
    *,
    by_category: bool,
    prefix: str,
) -> tuple[list[str], float]:
    """Shapes of one card, and where the next one begins."""
    row = history.cards[where].last_row
    usual = history.timeline.interval() or 60.0
    gaps = history.timeline.gaps()

    def breaks(before: float, after: float) -> bool:
        return any(gap.start >= before - 0.001 and gap.end <= after + 0.001 for gap in gaps)

    runs = svg_stack.steps_of(columns, breaks, usual)
    steps = [step for run in runs for step in run]
    plot = top + CARD_HEAD
    base = plot + MEMORY_HEIGHT
    total = max(1, *(step.stack.used if step.stack.total is None else step.stack.total for step in steps), 1)
    layers = svg_stack.layers_by_category(steps) if by_category else svg_stack.layers_by_process(steps)

    def y(count: float) -> float:
        return base - min(1.0, max(0.0, count / total)) * MEMORY_HEIGHT

    shapes = [f'<g class="card" data-adapter="{text(where)}">']
    shapes.append(f'<text class="title" x="{LEFT}" y="{number(top + 22)}">{text(card_title(row))}</text>')
    shapes += _grid(span, plot, base, total)
    shapes += _areas(runs, layers, span, y, by_category=by_category)
    shapes += marks(explained, history, where, columns, span, plot, base, prefix)
    shapes += hovers(columns, span, plot, base, usual)
    shapes += _legend(layers, steps, plot, by_category=by_category)
    bottom = base + 20

    def hatched(lane: str, upper: float, lower: float) -> list[str]:
        return missing(history, columns, lane, span, upper, lower, prefix)

    for name in LANES:
        drawn = svg_lanes.lane(name, columns, span, bottom, breaks, usual, hatched)
        if drawn:
            shapes += drawn
            bottom += svg_lanes.HEIGHT + svg_lanes.GAP
    legend_bottom = plot + LEGEND_LINE * (len(layers) + 1)
    return [*shapes, "</g>"], max(bottom, legend_bottom) + CARD_FOOT - 14


def _grid(span: Span, plot: float, base: float, total: int) -> list[str]:
    shapes = [
        f'<rect class="frame" x="{number(span.left)}" y="{number(plot)}" '
        f'width="{number(span.right - span.left)}" height="{number(base - plot)}"/>',
        f'<text class="axis" x="{number(span.left - 6)}" y="{number(plot + 9)}" text-anchor="end">'
        f"{format_bytes(total)}</text>",
        f'<text class="axis" x="{number(span.left - 6)}" y="{number(base)}" text-anchor="end">0</text>',
    ]
    for tick in ticks(span):
        x = number(span.x(tick.time))
        shapes.append(f'<line class="tick" x1="{x}" x2="{x}" y1="{number(plot)}" y2="{number(base + 4)}"/>')
        shapes.append(
            f'<text class="axis" x="{x}" y="{number(base + 15)}" text-anchor="middle">{tick.label}</text>'
        )
    return shapes


def _areas(
    runs: Sequence[Sequence[svg_stack.Step]],
    layers: Sequence[svg_stack.Layer],
    span: Span,
    y: Callable[[float], float],
    *,
    by_category: bool,
) -> list[str]:
    """One area a layer and run, each with its name and range as hover text."""
    shapes = []
    for run in runs:
        floors = [0] * len(run)
        stacked = [svg_stack.sizes(step.stack, layers, by_category=by_category) for step in run]
        for place, layer in enumerate(layers):
            counts = [sizes[place] for sizes in stacked]
            bounds = [(floor, floor + count) for floor, count in zip(floors, counts, strict=True)]
            floors = [upper for _, upper in bounds]
            if not any(counts):
                continue
            path = svg_stack.area(run, bounds, span.x, y)
            said = f"{layer.label}: {_range(counts)}"
            shapes.append(
                f'<path class="part {layer.css}" data-part="{text(layer.label)}" d="{path}">'
                f"<title>{text(said)}</title></path>"
            )
    return shapes


def _range(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    return format_bytes(most) if least == most else f"{format_bytes(least)} to {format_bytes(most)}"


def _legend(
    layers: Sequence[svg_stack.Layer], steps: Sequence[svg_stack.Step], plot: float, *, by_category: bool
) -> list[str]:
    """Names beside the plot with the last size of each, the top of the stack first."""
    if not steps:
        return [f'<text class="note" x="{WIDTH - RIGHT + 8}" y="{number(plot + 12)}">never measured</text>']
    peak = max(steps, key=lambda step: step.stack.used).stack
    x = WIDTH - RIGHT + 8
    said = f"peak {format_of_total(peak.used, peak.total)}; at the end:"
    shapes = [f'<text class="note peak" x="{x}" y="{number(plot + 10)}">{said}</text>']
    top = plot + 10
    stacked = [svg_stack.sizes(step.stack, layers, by_category=by_category) for step in steps]
    for place in reversed(range(len(layers))):
        if not any(sizes[place] for sizes in stacked):
            continue
        top += LEGEND_LINE
        layer = layers[place]
        shapes.append(f'<rect class="part {layer.css}" x="{x}" y="{number(top - 9)}" width="10" height="10"/>')
        shapes.append(
            f'<text class="legend" x="{x + 15}" y="{number(top)}">{text(layer.label[:26])} '
            f"{format_bytes(stacked[-1][place])}</text>"
        )
    return shapes


def _patterns(prefix: str) -> str:
    return (
        f'<pattern id="{prefix}gap" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)">'
        '<rect class="hatch" width="3" height="8"/></pattern>'
        f'<pattern id="{prefix}unknown" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<circle class="hatch" cx="2" cy="2" r="1.2"/></pattern>'
    )
