"""The thin lanes below a card's memory: load, bandwidth, temperature, power, errors; a band from min to max."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.svg_scale import number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.explain.frames import Column
    from gpusnap.render.svg_scale import Span

HEIGHT = 34
GAP = 14
TITLES = {
    "load": ("busy", "%", 100.0),
    "bandwidth": ("memory bandwidth", "%", 100.0),
    "temperature": ("temperature", "°C", None),
    "power": ("power", "W", None),
    "ecc": ("memory errors since the driver's start", "", None),
}


def lane(
    name: str,
    columns: Sequence[Column],
    span: Span,
    top: float,
    breaks: Callable[[float, float], bool],
    usual: float,
    hatched: Callable[[str, float, float], list[str]],
) -> list[str]:
    """Nothing where it was never measured; a hole wherever it was not, `hatched` (lane, top, base) over it."""
    known = [column.lanes[name] for column in columns if name in column.lanes]
    if not known:
        return []
    title, unit, full = TITLES[name]
    least, most = min(low for low, _ in known), max(high for _, high in known)
    ceiling = full if full is not None else max(most, 1.0)
    base = top + HEIGHT

    def y(value: float) -> float:
        return base - min(1.0, max(0.0, value / ceiling)) * HEIGHT

    runs = _runs(columns, name, breaks)
    said = f"{title}: {least:g} to {most:g} {unit}".strip()
    shapes = [f'<g class="lane" data-lane="{name}"><title>{said}</title>']
    shapes.append(
        f'<rect class="frame" x="{number(span.left)}" y="{number(top)}" '
        f'width="{number(span.right - span.left)}" height="{HEIGHT}"/>'
    )
    shapes += [f'<path class="under" d="{_under(run, name, span, y, usual, base)}"/>' for run in runs]
    shapes += [f'<path class="band" d="{_band(run, name, span, y, usual)}"/>' for run in runs]
    shapes += hatched(name, top, base)
    shapes.append(
        f'<text class="axis" x="{number(span.left - 6)}" y="{number(top + 9)}" '
        f'text-anchor="end">{ceiling:g} {unit}</text>'
    )
    shapes.append(
        f'<text class="note" x="{number(span.right + 8)}" y="{number(top + HEIGHT / 2 + 4)}">{said}</text></g>'
    )
    return shapes


def _runs(columns: Sequence[Column], name: str, breaks: Callable[[float, float], bool]) -> list[list[Column]]:
    runs: list[list[Column]] = []
    before: Column | None = None
    for column in columns:
        if name not in column.lanes:
            before = None
            continue
        if before is None or before.boot != column.boot or breaks(before.end, column.start):
            runs.append([])
        runs[-1].append(column)
        before = column
    return runs


def _under(
    run: Sequence[Column], name: str, span: Span, y: Callable[[float], float], usual: float, base: float
) -> str:
    """The area below the highs."""
    ends = [right.start for right in run[1:]] + [run[-1].end + usual]
    path = f"M{number(span.x(run[0].start))} {number(base)}"
    for column, end in zip(run, ends, strict=True):
        path += f"V{number(y(column.lanes[name][1]))}H{number(span.x(end))}"
    return path + f"V{number(base)}Z"


def _band(run: Sequence[Column], name: str, span: Span, y: Callable[[float], float], usual: float) -> str:
    """Steps along the highs and back along the lows; a pixel thick where both are equal."""
    ends = [right.start for right in run[1:]] + [run[-1].end + usual]
    path = f"M{number(span.x(run[0].start))} {number(y(run[0].lanes[name][1]) - 0.5)}"
    for column, end in zip(run, ends, strict=True):
        path += f"V{number(y(column.lanes[name][1]) - 0.5)}H{number(span.x(end))}"
    for column in reversed(run):
        path += f"V{number(y(column.lanes[name][0]) + 0.5)}H{number(span.x(column.start))}"
    return path + "Z"
