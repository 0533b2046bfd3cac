"""A snapshot in Prometheus' text format 0.0.4 for node_exporter's textfile folder: without timestamps.

node_exporter refuses a whole file that holds a timestamp; how old the figures are is said by
`gpusnap_snapshot_timestamp_seconds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.metrics import FAMILIES, PIDS, Family, Sample, line, samples_of

if TYPE_CHECKING:
    from gpusnap.model import Snapshot

_SUFFIX = {"counter": "_total", "info": "_info"}


def prometheus_text(document: Snapshot, *, per_pid: bool = False, most_pids: int = PIDS) -> str:
    """Families in a fixed order, each with its help and type; a family without samples is left out."""
    by_family: dict[str, list[Sample]] = {}
    for sample in samples_of(document, per_pid=per_pid, most=most_pids):
        by_family.setdefault(sample.family, []).append(sample)
    text = []
    for family in FAMILIES.values():
        samples = by_family.get(family.name)
        if samples:
            name = exposed(family)
            text += [f"# HELP {name} {family.says}\n", f"# TYPE {name} {_type(family)}\n"]
            text += [line(name, sample.labels, sample.value) for sample in sorted(samples)]
    return "".join(text)


def exposed(family: Family) -> str:
    return family.name + _SUFFIX.get(family.kind, "")


def _type(family: Family) -> str:
    """The older format knows no info type."""
    return "gauge" if family.kind == "info" else family.kind
