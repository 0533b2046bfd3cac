"""KFD's figures beside fdinfo's: for processes that fdinfo can't show, never added to those that it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.harvest import ProcessFacts, warning
from gpusnap.reading import Reading, null

if TYPE_CHECKING:
    from gpusnap.collect.drm_targets import Target, Targets
    from gpusnap.collect.harvest import Harvest

    Rows = dict[tuple[str, int], ProcessFacts]
    Charged = dict[int, dict[str, Reading]]

# Where the two books differ by more, both are told: managed memory stands only in KFD's.
_NOISE_BYTES = 64 << 20
_USER_QUEUES = null("not-exposed", "ROCm's user queues are not in fdinfo")


def add_kfd(
    rows: Rows, charged: Charged, targets: Targets, apus: set[str], *, host_pids: bool
) -> list[ProcessFacts]:
    """Complete `rows` with what KFD charges; returns the rows of processes that fdinfo did not show.

    `apus`: keys of adapters whose KFD figure counts carve-out and system memory alike. `host_pids`: whether
    KFD's pids are those of `proc`.
    """
    more = []
    for pid, by_gpu in charged.items():
        for gpu_id, reading in by_gpu.items():
            target = targets.by_gpu_id.get(gpu_id)
            if target is None:
                continue
            row = rows.get((target.key, pid)) if host_pids else None
            if row is not None:
                _complete(row, reading, ambiguous=target.key in apus)
            elif reading.value != 0:
                more.append(_new_row(target, pid, reading, ambiguous=target.key in apus, host_pids=host_pids))
    return more


def _complete(row: ProcessFacts, reading: Reading, *, ambiguous: bool) -> None:
    """Engine time of ROCm is not in fdinfo; memory only where fdinfo gave none."""
    figures = row.figures
    figures["engines_percent.compute"] = figures["gpu_percent"] = _USER_QUEUES
    both = figures["type"].value in ("graphics", "both")
    figures["type"] = Reading("both" if both else "compute", "inferred:kfd")
    if figures["vram_bytes"].value is None and not ambiguous:
        figures["vram_bytes"] = reading


def _new_row(target: Target, pid: int, reading: Reading, *, ambiguous: bool, host_pids: bool) -> ProcessFacts:
    row = ProcessFacts(target.key, pid, "driver")
    if ambiguous and reading.value is not None:
        # On an APU what ROCr asks for as VRAM lives in system memory (amdkfd, all APUs in 6.12).
        reading = null("ambiguous", f"kfd.vram says {reading.value}, carve-out or system memory")
    elif not host_pids and reading.value is not None:
        # The same process may stand here already, under the pid that it has in this namespace.
        reading = null("other-pid-namespace", f"kfd.vram says {reading.value}")
    row.figures = {
        "type": Reading("compute", "measured:kfd"),
        "vram_bytes": reading,
        "vram_shared_bytes": null("not-exposed", "kfd knows no shared part"),
        "spill_bytes": null("not-exposed", "kfd counts no system memory"),
        "shared_with": null("not-exposed", "kfd knows no clients"),
        "gpu_percent": _USER_QUEUES,
        "engines_percent.compute": _USER_QUEUES,
    }
    return row


def tell_differences(
    rows: Rows, charged: dict[int, dict[str, Reading]], targets: Targets, harvest: Harvest
) -> None:
    """Both figures, where KFD counts clearly more than fdinfo: managed memory that moved to the card."""
    for pid, by_gpu in charged.items():
        for gpu_id, reading in by_gpu.items():
            target = targets.by_gpu_id.get(gpu_id)
            row = rows.get((target.key, pid)) if target is not None else None
            if row is None or target is None or not isinstance(reading.value, int):
                continue
            known = [row.figures[leaf].value for leaf in ("vram_bytes", "spill_bytes")]
            total = sum(value for value in known if isinstance(value, int))
            if known[0] is not None and reading.value > total + _NOISE_BYTES:
                text = f"kfd counts {reading.value} bytes, fdinfo {total}: managed memory is in kfd's figure only"
                harvest.warnings.append(warning("kfd-differs", text, target.device.id, pid))
