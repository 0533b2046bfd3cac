"""The card waits for its own memory: usual for token generation, and no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    load = view.card["load"]
    bandwidth = load["memory_bandwidth_percent"]
    if bandwidth is None or bandwidth < at.BANDWIDTH_BOUND_PERCENT or view.unified:
        return
    yield found(
        "bandwidth-bound",
        "info",
        view.subject(),
        f"the memory is busy {bandwidth:.0f} % of the time: its speed is the limit",
        [f"memory bandwidth {bandwidth:.0f} %, compute {'?' if view.busy is None else f'{view.busy:.0f}'} % busy"],
        ["Batching more requests, or a smaller quantisation, brings more out of the same bandwidth."],
    )
