"""What Windows' GPU counters mean, adapter by adapter and process by process. Pure.

`Local Usage` and `Non Local Usage` are resident, a process's `Dedicated Usage` is committed (systeminformer
PR#2971, by people who read the kernel side). So VRAM is Local, spill is Non Local, and what is committed and not
resident is an estimate. Per-process counters may grow without end where a program makes its resources anew
(KB4490156; dwm at 14013 MB: systeminformer#2389): a figure above what the adapter has is no figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusnap.collect.pdh_names import engine_of
from gpusnap.fields import ENGINES
from gpusnap.reading import Reading, computed, estimated, inferred, measured, null

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpusnap.collect.pdh_sample import Sample, Usage

    Adapter = Mapping[str, Any]
    Figures = dict[str, Reading]

UNIFIED = null("unified-memory")
_OWN_MEMORY = ("total", "used", "free", "reserved")
_NO_ROW = null("not-exposed", "no such row")
_NO_ENGINE = null("not-exposed", "no such engine")
_UNKNOWN_ADAPTER = null("ambiguous", "nobody tells what memory this adapter has")
# Without DXCore's word: firmware gives an integrated adapter a carve-out of this size at most.
_CARVE_OUT = 512 << 20


def is_integrated(adapter: Adapter) -> bool:
    """DXCore's word, else the size of its own memory; one whose size nobody tells is not called integrated."""
    said = adapter.get("integrated")
    if said is not None:
        return bool(said)
    own = adapter.get("dedicated_bytes")
    return own is not None and int(own) <= _CARVE_OUT


def adapter_memory(adapter: Adapter, usage: Usage) -> Figures:
    shared_total = _declared(adapter.get("shared_bytes"))
    figures = {
        "memory.shared_total_bytes": shared_total,
        "memory.shared_used_bytes": _within(usage.get("Shared Usage", _NO_ROW), shared_total),
    }
    if is_integrated(adapter):
        figures |= dict.fromkeys(
            (f"memory.{name}_bytes" for name in ("total", "used", "free", "reserved")), UNIFIED
        )
        figures["memory.kind"] = inferred("unified", "dxcore.IsIntegrated")
        return figures
    total = _declared(adapter.get("dedicated_bytes"))
    used = _within(usage.get("Dedicated Usage", _NO_ROW), total)
    figures |= {
        "memory.total_bytes": total,
        "memory.used_bytes": used,
        "memory.free_bytes": _difference(total, used),
        "memory.reserved_bytes": null("wddm", "Windows tells no reserved part"),
        "memory.kind": inferred("dedicated", "dxgi.DedicatedVideoMemory"),
    }
    return figures


def process_memory(adapter: Adapter | None, usage: Usage) -> Figures:
    """`adapter` is None for one whose kind nobody tells."""
    local, spill = usage.get("Local Usage", _NO_ROW), usage.get("Non Local Usage", _NO_ROW)
    if adapter is None:
        return {
            "vram_bytes": _UNKNOWN_ADAPTER,
            "spill_bytes": _UNKNOWN_ADAPTER,
            "paged_bytes": _UNKNOWN_ADAPTER,
        }
    shared_total = _declared(adapter.get("shared_bytes"))
    if is_integrated(adapter):
        return {"vram_bytes": UNIFIED, "spill_bytes": _together(local, spill), "paged_bytes": UNIFIED}
    total = _declared(adapter.get("dedicated_bytes"))
    vram = _within(local, total)
    return {
        "vram_bytes": vram,
        "spill_bytes": _within(spill, shared_total),
        "paged_bytes": _paged(usage.get("Dedicated Usage", _NO_ROW), vram, total),
    }


def process_committed(adapter: Adapter | None, usage: Usage) -> Figures:
    """Promised, resident or not, as Windows counts it. Where one of the two parts grew past what the adapter has
    (KB4490156), the total is not believed either: it has no limit of its own to be held against."""
    if not usage:
        return {}
    known = {} if adapter is None else adapter
    found = {"Total Committed": usage.get("Total Committed", _NO_ROW)}
    for name, limit in (("Dedicated Usage", "dedicated_bytes"), ("Shared Usage", "shared_bytes")):
        found[name] = _within(usage.get(name, _NO_ROW), _declared(known.get(limit)))
        if found[name].provenance.startswith("null:out-of-range"):
            found["Total Committed"] = found[name]
    return found


def _paged(committed: Reading, resident: Reading, total: Reading) -> Reading:
    committed = _within(committed, total)
    for part in (committed, resident):
        if part.value is None:
            return part
    missing = max(0, int(str(committed.value)) - int(str(resident.value)))
    return estimated(missing, "pdh.GPU Process Memory.Dedicated Usage-Local Usage")


def adapter_load(sample: Sample, luid: str) -> Figures:
    """Each engine's sum over processes; the adapter is as busy as its busiest engine (Task Manager's rule)."""
    sums: dict[str, list[Reading]] = {}
    for engine, by_pid in sample.engines.get(luid, {}).items():
        sums.setdefault(sample.types[luid, engine], []).append(_percent(_added(by_pid.values())))
    return {f"load.{leaf}": reading for leaf, reading in _by_kind(sums).items()}


def process_load(sample: Sample, luid: str, pid: int) -> Figures:
    mine: dict[str, list[Reading]] = {}
    for engine, by_pid in sample.engines.get(luid, {}).items():
        if pid in by_pid:
            mine.setdefault(sample.types[luid, engine], []).append(_percent(by_pid[pid]))
    return _by_kind(mine)


def _by_kind(readings: Mapping[str, list[Reading]]) -> Figures:
    grouped: dict[str, list[Reading]] = {engine: [] for engine in ENGINES}
    for kind, found in readings.items():
        engine = engine_of(kind)
        if engine is not None:
            grouped[engine] += found
    everything = [reading for found in readings.values() for reading in found]
    return {
        "gpu_percent": _busiest(everything),
        **{f"engines_percent.{engine}": _busiest(found) for engine, found in grouped.items()},
    }


def _busiest(readings: list[Reading]) -> Reading:
    """An engine whose share is not known may be the busiest: then nobody knows."""
    unknown = next((reading for reading in readings if reading.value is None), None)
    if unknown is not None:
        return unknown
    return max(readings, key=lambda reading: float(str(reading.value)), default=_NO_ENGINE)


def _added(readings: Iterable[Reading]) -> Reading:
    """A process that came after the first sample has no share yet, and counts from the next one on."""
    total = 0.0
    known = False
    missing = _NO_ENGINE
    for reading in readings:
        if reading.value is None:
            if not reading.provenance.startswith("null:needs-two-samples"):
                return reading
            missing = reading
        else:
            total += float(str(reading.value))
            known = True
            source = reading.provenance
    return Reading(total, source) if known else missing


def _percent(reading: Reading) -> Reading:
    if reading.value is None:
        return reading
    value = round(float(str(reading.value)), 1)
    if not 0 <= value <= 100:
        return null("out-of-range", f"{reading.provenance.partition(':')[2]} says {reading.value}")
    return Reading(value, reading.provenance)


def _declared(size: object) -> Reading:
    return measured(size, "dxgi.Desc1") if isinstance(size, int) else null("not-exposed", "adapter not described")


def _within(reading: Reading, limit: Reading) -> Reading:
    """KB4490156, and the terabytes after sleep (systeminformer#2073)."""
    if isinstance(reading.value, int) and isinstance(limit.value, int) and reading.value > limit.value:
        source = reading.provenance.partition(":")[2]
        return null("out-of-range", f"{source} says {reading.value}, the adapter has {limit.value}")
    return reading


def _difference(total: Reading, used: Reading) -> Reading:
    if isinstance(total.value, int) and isinstance(used.value, int):
        return computed(total.value - used.value, "dxgi.Desc1-pdh.Dedicated Usage")
    return used if used.value is None else total


def _together(local: Reading, other: Reading) -> Reading:
    """On unified memory both are in system memory."""
    if isinstance(local.value, int) and isinstance(other.value, int):
        return computed(local.value + other.value, "pdh.GPU Process Memory.Local Usage+Non Local Usage")
    return local if local.value is None else other
