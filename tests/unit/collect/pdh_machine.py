"""Windows machines for these tests: counters in the raw form of `live_pdh.py`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusnap.captured import CapturedHost

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
CARD = {
    "luid": "0x00000000_0x0001d6f4",
    "description": "AMD Radeon RX 7800 XT",
    "vendor_id": 0x1002,
    "dedicated_bytes": 16 * GIB,
    "shared_bytes": 32 * GIB,
    "software": False,
    "integrated": False,
    "pci": "0000:03:00.0",
}
NO_OBJECT, ACCESS_DENIED, INVALID_DATA = 0xC0000BB8, 0xC0000BDB, 0xC0000BC6
PROCESS, ADAPTER, ENGINE = "\\GPU Process Memory(*)\\", "\\GPU Adapter Memory(*)\\", "\\GPU Engine(*)\\"
LUID = "luid_0x00000000_0x0001D6F4_phys_0"

Rows = list[list[Any]]


def memory(
    pid: int, local: int, spill: int = 0, dedicated: int | None = None, luid: str = LUID
) -> dict[str, Rows]:
    name = f"pid_{pid}_{luid}"
    return {
        f"{PROCESS}Local Usage": [[name, 0, local]],
        f"{PROCESS}Non Local Usage": [[name, 0, spill]],
        f"{PROCESS}Dedicated Usage": [[name, 0, local if dedicated is None else dedicated]],
    }


def used(size: int, luid: str = LUID) -> dict[str, Rows]:
    return {f"{ADAPTER}Dedicated Usage": [[luid, 0, size]]}


def engine(pid: int, number: int, kind: str, percent: float | None, status: int = 0) -> dict[str, Rows]:
    return {
        f"{ENGINE}Utilization Percentage": [[f"pid_{pid}_{LUID}_eng_{number}_engtype_{kind}", status, percent]]
    }


def pdh(*parts: dict[str, Rows]) -> dict[str, Any]:
    counters: dict[str, Rows] = {}
    for part in parts:
        for path, rows in part.items():
            counters.setdefault(path, []).extend(rows)
    return {"counters": counters}


def windows(folder: Path, raw: dict[str, Any], *later: dict[str, Any], **nvml: Any) -> CapturedHost:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.json").write_text(json.dumps({"platform": "windows", "own_pid": 999}))
    (folder / "raw.json").write_text(json.dumps({"adapters": [CARD], **raw}))
    for step, overlay in enumerate(later, 2):
        (folder / f"raw.{step}.json").write_text(json.dumps(overlay))
    if nvml:
        (folder / "nvml.json").write_text(json.dumps({"version": "13", "calls": nvml["calls"]}))
    return CapturedHost(folder)
