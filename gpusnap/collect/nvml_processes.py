"""NVIDIA's process lists: compute ∪ graphics ∪ MPS, one row a pid, each with its source.

Traps: drivers before R510 have only `_v2`; 535.54 filled the third version's struct in another layout, so pids and
bytes came out swapped (pynvml#50, gpustat#161); "not available" is a sentinel that must never be summed
(nvtop#432); a list that fails is not an empty list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from gpusnap.collect.nvml_ask import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_SUPPORTED,
    reason,
    source_of,
)
from gpusnap.collect.sysfs import MAX_INTEGER
from gpusnap.host import NvmlError
from gpusnap.reading import Reading, measured, null

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.host import Nvml

_SENTINELS = frozenset({2**64 - 1, 2**63 - 1})
_NO_INSTANCE = 0xFFFFFFFF
_LISTS = (
    ("compute", "nvmlDeviceGetComputeRunningProcesses"),
    ("graphics", "nvmlDeviceGetGraphicsRunningProcesses"),
    ("mps", "nvmlDeviceGetMPSComputeRunningProcesses"),
)
# Where neither answers, an empty list of MPS clients says nothing of the card.
_MAIN_LISTS = {"compute", "graphics"}


class Listed(NamedTuple):
    """One process of one card. `instance` is the (GPU, compute) instance the driver names, or None."""

    pid: int
    type: str
    vram: Reading
    instance: tuple[int, int] | None


class ProcessList(NamedTuple):
    """`listed` is "complete", "partial", or a null reading that says why there is no list."""

    rows: dict[int, Listed]
    listed: str | Reading


def list_processes(
    nvml: Nvml,
    device: str,
    *,
    total: int | None,
    pid_max: int,
    unavailable: str,
    warn: Callable[[str, object], None],
    known: dict[tuple[object, ...], Listed],
) -> ProcessList:
    """`unavailable` is the reason for NVML's "not available": wddm, wsl, no-permission or not-supported.

    `known` keeps rows from sample to sample: one that says the same as before stays the same object.
    """
    rows: dict[int, Listed] = {}
    failures: dict[str, NvmlError] = {}
    answered = 0
    for kind, function in _LISTS:
        try:
            found, source = _running(nvml, device, function)
        except NvmlError as error:
            failures[kind] = error
            continue
        answered += 1
        if any(not 0 < cast("int", row["pid"]) <= pid_max for row in found):
            return ProcessList({}, null("unknown-format", "NVML struct mismatch"))
        for row in found:
            key = (device, kind, total, *row.values())
            listed = known.get(key)
            if listed is None:
                listed = _listed(row, kind, source, total, unavailable, warn)
                if listed.vram.value is not None:  # what is out of range warns in each sample
                    known[key] = listed
            before = rows.get(listed.pid)
            rows[listed.pid] = listed if before is None else _joined(before, listed)
    return ProcessList(
        rows, "partial" if rows and failures.keys() >= _MAIN_LISTS else _verdict(failures, answered)
    )


def listed_pids(nvml: Nvml, device: str) -> list[int]:
    """The pids of every list that answers."""
    pids = []
    for _, function in _LISTS:
        try:
            found, _ = _running(nvml, device, function)
        except NvmlError:
            continue
        pids += [cast("int", row["pid"]) for row in found]
    return pids


def _running(nvml: Nvml, device: str, function: str) -> tuple[list[dict[str, object]], str]:
    """The newest version of the call that the driver has; a burst of new processes is asked for again once."""
    for version in ("_v3", "_v2"):
        try:
            answer = _twice(nvml, function + version, device)
        except NvmlError as error:
            if error.code == FUNCTION_NOT_FOUND and version == "_v3":
                continue
            raise
        return cast("list[dict[str, object]]", answer), source_of(function)
    raise AssertionError("unreachable")


def _twice(nvml: Nvml, function: str, device: str) -> object:
    try:
        return nvml.call(function, device)
    except NvmlError as error:
        if error.code != INSUFFICIENT_SIZE:
            raise
        return nvml.call(function, device)


def _listed(
    row: dict[str, object],
    kind: str,
    source: str,
    total: int | None,
    unavailable: str,
    warn: Callable[[str, object], None],
) -> Listed:
    used = cast("int | None", row.get("usedGpuMemory"))
    if used is None or used in _SENTINELS:
        vram = null(unavailable, "NVML_VALUE_NOT_AVAILABLE")
    elif used > (MAX_INTEGER if total is None else total):
        warn(f"{source} of pid {row['pid']}", used)
        vram = null("out-of-range")
    else:
        vram = measured(used, source)
    gpu, compute = row.get("gpuInstanceId"), row.get("computeInstanceId")
    known = isinstance(gpu, int) and gpu != _NO_INSTANCE and isinstance(compute, int)
    return Listed(cast("int", row["pid"]), kind, vram, (cast("int", gpu), cast("int", compute)) if known else None)


def _joined(one: Listed, other: Listed) -> Listed:
    """A pid in two lists has one figure in both; where they differ the larger holds (max, not sum)."""
    kinds = {one.type, other.type}
    kind = "mps" if "mps" in kinds else "both" if len(kinds) > 1 else one.type
    first, second = one.vram.value, other.vram.value
    keep = one.vram
    if first is None or (second is not None and cast("int", second) > cast("int", first)):
        keep = other.vram if second is not None else one.vram
    return Listed(one.pid, kind, keep, one.instance if one.instance is not None else other.instance)


def _verdict(failures: dict[str, NvmlError], answered: int) -> str | Reading:
    """A list that the device does not have takes nothing from the others."""
    if failures.keys() >= _MAIN_LISTS:
        return reason(failures["compute"])
    if answered == 0:
        return reason(next(iter(failures.values())))
    broken = [e for e in failures.values() if e.code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND)]
    return "partial" if broken else "complete"


def utilisation(
    nvml: Nvml, device: str, since_us: int, warn: Callable[[str, object], None]
) -> dict[int, dict[str, Reading]] | Reading:
    """pid -> gpu_percent, video engines, from the driver's ring of samples; a null reading if there is none.

    A sample older than `since_us` is stale, not current; shares outside 0..100 are the garbage of zombies
    (nvtop#110, DCGM#83).
    """
    function = "nvmlDeviceGetProcessUtilization"
    try:
        answer = cast("list[dict[str, int]]", nvml.call(function, device, since_us))
    except NvmlError as error:
        # 6: no sample; 0: what the binding raises when the size query succeeds at once (go-nvml#27).
        return null("none", "no fresh sample") if error.code in (0, 6) else reason(error)
    latest: dict[int, dict[str, int]] = {}
    for sample in answer:
        if sample["timeStamp"] < since_us:
            continue
        known = latest.get(sample["pid"])
        if known is None or sample["timeStamp"] > known["timeStamp"]:
            latest[sample["pid"]] = sample
    source = source_of(function)
    return {pid: _shares(sample, source, warn) for pid, sample in latest.items()}


def _shares(sample: dict[str, int], source: str, warn: Callable[[str, object], None]) -> dict[str, Reading]:
    leaves = {
        "gpu_percent": "smUtil",
        "engines_percent.video_encode": "encUtil",
        "engines_percent.video_decode": "decUtil",
    }
    shares = {}
    for leaf, name in leaves.items():
        value = sample[name]
        if 0 <= value <= 100:
            shares[leaf] = measured(value, source)
        else:
            warn(f"{source} {name} of pid {sample['pid']}", value)
            shares[leaf] = null("out-of-range")
    return shares
