"""The stacked memory of one card: which parts, in which colours, as areas that never bridge a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.render.svg_scale import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpusnap.explain.frames import Column, Stack

MOST_PARTS = 8
OTHERS, SHARED, REST, RESERVED, FREE = "others", "shared", "unattributed", "reserved", "free"
TAIL = (OTHERS, SHARED, REST, RESERVED, FREE)


class Step(NamedTuple):
    """A measured stack and the stretch of time it stands for."""

    start: float
    end: float
    stack: Stack


class Layer(NamedTuple):
    key: str
    label: str
    css: str


def steps_of(columns: Sequence[Column], breaks: Callable[[float, float], bool], usual: float) -> list[list[Step]]:
    """Runs of neighbouring stacks. A run ends where a sample is unknown, and at each gap or reboot."""
    runs: list[list[Step]] = []
    run: list[Step] = []
    before: Column | None = None
    for column in columns:
        apart = before is not None and (before.boot != column.boot or breaks(before.end, column.start))
        if apart or column.low is None or column.high is None:
            _close(run, runs, usual)
            run = []
        before = column
        if column.low is None or column.high is None:
            continue
        both = {stack.time: stack for stack in (column.low, column.high)}
        for _, stack in sorted(both.items(), key=lambda pair: pair[0]):
            if run:
                run[-1] = run[-1]._replace(end=stack.time)
            run.append(Step(stack.time, stack.time, stack))
    _close(run, runs, usual)
    return runs


def _close(run: list[Step], runs: list[list[Step]], usual: float) -> None:
    if run:
        run[-1] = run[-1]._replace(end=run[-1].start + usual)
        runs.append(run)


def layers_by_process(steps: Iterable[Step]) -> list[Layer]:
    """The processes with the highest peaks, then all others together, then what is nobody's."""
    peaks: dict[str, int] = {}
    labels: dict[str, str] = {}
    for step in steps:
        for part in step.stack.parts:
            key = f"{part.pid}@{part.start_ticks}"
            peaks[key] = max(peaks.get(key, 0), part.bytes)
            labels[key] = f"{part.name or 'a process'} {part.pid}"
    largest = sorted(peaks, key=lambda key: -peaks[key])[:MOST_PARTS]
    chosen = [Layer(key, labels[key], f"c{place}") for place, key in enumerate(largest)]
    return chosen + tail("other processes")


def layers_by_category(steps: Iterable[Step]) -> list[Layer]:
    peaks: dict[str, int] = {}
    for step in steps:
        for category, count in step.stack.categories.items():
            peaks[category] = max(peaks.get(category, 0), count)
    order = sorted(peaks, key=lambda category: -peaks[category])
    return [Layer(category, category, f"c{place}") for place, category in enumerate(order)] + tail("other")


def tail(others: str) -> list[Layer]:
    return [
        Layer(OTHERS, others, "others"),
        Layer(SHARED, "shared by several", "shared"),
        Layer(REST, "unattributed", "rest"),
        Layer(RESERVED, "reserved by the driver", "reserved"),
        Layer(FREE, "free", "free"),
    ]


def sizes(stack: Stack, layers: Sequence[Layer], *, by_category: bool) -> list[int]:
    """Bytes of each layer in one stack; they add up to the card's total where that is known."""
    known = (
        dict(stack.categories)
        if by_category
        else {f"{part.pid}@{part.start_ticks}": part.bytes for part in stack.parts}
    )
    attributed = sum(part.bytes for part in stack.parts) + stack.others
    known[SHARED] = stack.shared
    known[RESERVED] = stack.reserved
    known[REST] = max(0, stack.used - attributed - stack.shared - stack.reserved)
    if stack.total is not None:
        known[FREE] = max(0, stack.total - max(stack.used, attributed + stack.shared + stack.reserved))
    own = {layer.key for layer in layers}
    named = sum(count for key, count in known.items() if key in own and key not in TAIL)
    known[OTHERS] = attributed - named
    return [known.get(layer.key, 0) for layer in layers]


def area(
    run: Sequence[Step],
    bounds: Sequence[tuple[float, float]],
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> str:
    """A step area between (lower, upper) of each step; SVG path data."""
    path = f"M{number(x(run[0].start))} {number(y(bounds[0][1]))}"
    for step, (_, upper) in zip(run, bounds, strict=True):
        path += f"V{number(y(upper))}H{number(x(step.end))}"
    for step, (lower, _) in zip(reversed(run), reversed(bounds), strict=True):
        path += f"V{number(y(lower))}H{number(x(step.start))}"
    return path + "Z"
