"""xe's performance counters: the load of the whole card, kernel contexts and unreadable processes included.

Source: drivers/gpu/drm/xe/xe_pmu.c, Linux 6.15 and later. For each engine `engine-active-ticks` over
`engine-total-ticks`; `format/` says where event, gt, class and instance go. Which engines there are the driver's
query tells. An open counter keeps the card from sleeping and its GT awake (xe_pm_runtime_get and
event_gt_forcewake): so they are opened on a card that is awake, for the time of one `--window`, and closed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gpusnap.collect.intel_pmu import SOURCES, cpu_of, load_leaves
from gpusnap.collect.sysfs import number, text
from gpusnap.host import Unsupported

if TYPE_CHECKING:
    from gpusnap.host import Host, PerfCounter
    from gpusnap.reading import Reading

_QUERY_ENGINES = 0  # DRM_XE_DEVICE_QUERY_ENGINES
_ENGINE = struct.Struct("<HHHH24x")  # class, instance, gt
_MAX_ENGINES = 128
# DRM_XE_ENGINE_CLASS_*; video enhance (3) has no place in the document, 5 is no engine.
_CLASSES = {0: "rcs", 1: "bcs", 2: "vcs", 4: "ccs"}
_EVENTS = ("engine-active-ticks", "engine-total-ticks")


class XePmu:
    """The open counters of one card, to be closed soon. `is_open` is False where they are not to be had."""

    def __init__(self, host: Host, address: str, path: str, node: str | None) -> None:
        self._engines: list[str] = []
        self._counters: list[PerfCounter] = []
        self._first: list[int] = []
        try:
            # With virtual functions given away, what the counters of function 0 say is not the whole card's.
            if node is not None and number(host.sys, f"{path}/sriov_numvfs", "").value in (None, 0):
                self._open(host, f"{SOURCES}/xe_{address.replace(':', '_')}", node)
            self._first = [counter.read()[0] for counter in self._counters]
        except (OSError, Unsupported):
            self.close()
        self.is_open = bool(self._counters)

    def _open(self, host: Host, folder: str, node: str) -> None:
        kind = text(host.sys, f"{folder}/type", 64)
        events = [text(host.sys, f"{folder}/events/{event}", 64) for event in _EVENTS]
        if kind is None or not kind.isdigit() or None in events:
            return
        fields = {name: _bits(text(host.sys, f"{folder}/format/{name}", 64)) for name in _FIELDS}
        for engine in _engines(host.drm_query(node, "xe", _QUERY_ENGINES)):
            if engine[0] not in _CLASSES:
                continue
            configs = [config for event in events if (config := _config(event, engine, fields)) is not None]
            if len(configs) < len(events):
                self.close()
                return
            self._engines.append(_CLASSES[engine[0]])
            for config in configs:
                self._counters.append(host.perf_counter(int(kind), config, cpu_of(host, folder)))

    def close(self) -> None:
        for counter in self._counters:
            counter.close()
        self._counters = []

    def load(self) -> dict[str, Reading]:
        """load.* leaves since the counters were opened; the mean of a class's engines."""
        try:
            now = [counter.read()[0] for counter in self._counters]
        except OSError:  # the card is gone
            return {}
        spent = [after - before for before, after in zip(self._first, now, strict=True)]
        shares: list[tuple[str, float | None]] = []
        for place, engine in enumerate(self._engines):
            active, total = spent[2 * place], spent[2 * place + 1]
            if total <= 0:  # the GuC has not begun to count
                return {}
            shares.append((engine, 100 * active / total))
        return load_leaves(shares, "xe")


_FIELDS = ("event", "engine_class", "engine_instance", "gt")


def _engines(blob: bytes) -> list[tuple[int, int, int]]:
    """(class, instance, gt) of drm_xe_query_engines: u32 count, padding, then engines of 32 bytes."""
    count = int.from_bytes(blob[:4], "little")
    if count > _MAX_ENGINES or len(blob) < 8 + count * _ENGINE.size:
        return []
    return [_ENGINE.unpack_from(blob, 8 + place * _ENGINE.size)[:3] for place in range(count)]


def _bits(form: str | None) -> tuple[int, int] | None:
    """`config:20-27` -> (20, 8): the first bit and how many."""
    low, _, high = (form or "").removeprefix("config:").partition("-")
    if form is None or not form.startswith("config:") or not low.isdigit() or not (high or low).isdigit():
        return None
    return int(low), int(high or low) - int(low) + 1


def _config(
    event: str | None, engine: tuple[int, int, int], fields: dict[str, tuple[int, int] | None]
) -> int | None:
    """The event's number, `event=0x02`, with the engine's in their places."""
    config = 0
    try:
        values = (int((event or "").removeprefix("event="), 16), *engine)
    except ValueError:
        return None
    for name, value in zip(_FIELDS, values, strict=True):
        place = fields[name]
        if place is None or value >> max(place[1], 0):
            return None
        config |= value << place[0]
    return config if config < 1 << 64 else None
