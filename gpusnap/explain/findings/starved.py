"""A full card that waits for the host: low load while a process of it keeps a CPU core busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.findings.orphan_workers import orphans
from gpusnap.explain.rows import who
from gpusnap.render.units import format_of_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView, Found


def find(view: CardView) -> Iterator[Found]:
    if not view.is_full or view.busy is None or view.busy > at.STARVED_GPU_PERCENT:
        return
    left_alone = {row["pid"] for row in orphans(view)}
    for row in view.rows:
        cpu = row["cpu_percent"]
        if cpu is None or cpu < at.STARVED_CPU_PERCENT or row["pid"] in left_alone:
            continue
        yield found(
            "starved",
            "notice",
            view.subject(row),
            f"{who(row)} keeps the CPU busy while the card waits",
            [
                f"card {view.busy:.0f} % busy, process {cpu:.0f} % of a CPU core",
                f"{format_of_total(view.used, view.total)} used",
            ],
            ["The input is the limit: more data-loading workers, a faster disk, or preparing data in advance."],
        )
