"""Contract-complete documents for tests, built by hand arithmetic and not by gpusnap's own code.

A value that is written as `"null:REASON words"` becomes a null with that provenance; every other figure gets
`measured:test` unless `provenance` says otherwise:

    card = adapter(total=16 * GIB, used=15 * GIB, busy=0, leaves={"temperature.gpu_celsius": 61})
    row = process(4711, vram=8 * GIB, user="alice", name="llama-server", cpu_percent=98.0)
    document = snapshot([card], [row])

`snapshot` adds the account of each card from its rows, as the contract defines it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from gpusnap import fields
from gpusnap.timefmt import rfc3339
from tests.accounts import account

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.model import Snapshot

Row = dict[str, Any]

MIB = 1024**2
GIB = 1024**3
START = 1_796_040_000.0  # 2026-11-30T12:00:00Z
BOOT = "0f7c9a52-3a55-4d9e-9b7f-6f1f2f6f8a01"
SOURCE = "measured:test"


def set_leaf(row: Row, leaf: str, value: object) -> None:
    """`set_leaf(row, "memory.used_bytes", 5)`; a `null:` text becomes a null with that provenance."""
    provenance: dict[str, str] = row.setdefault("_provenance", {})
    if isinstance(value, str) and value.startswith("null:"):
        provenance[leaf] = value
        value = None
    elif provenance.get(leaf, "").startswith("null:"):
        provenance[leaf] = SOURCE
    *path, last = leaf.split(".")
    for key in path:
        row = row[key]
    row[last] = value


def _empty(groups: Mapping[str, Sequence[str]]) -> Row:
    row: Row = {}
    for group, leaves in groups.items():
        inner: Row = {}
        for leaf in leaves:
            if leaf.startswith("engines_percent."):
                inner.setdefault("engines_percent", {})[leaf.split(".")[1]] = None
            else:
                inner[leaf] = None
        row[group] = inner
    return row


def adapter(
    index: int = 0,
    *,
    total: int | str = 16 * GIB,
    used: int | str = 0,
    busy: float | str = 0,
    model: str = "NVIDIA GeForce RTX 4080 SUPER",
    vendor: str = "nvidia",
    listed: str = "complete",
    holders: list[Row] | str = "null:not-requested",
    provenance: Mapping[str, str] | None = None,
    leaves: Mapping[str, object] | None = None,
) -> Row:
    """One card. `listed="null:not-supported"` makes its list unavailable for that reason."""
    row: Row = {
        "id": f"GPU-{index:08x}-0000-4000-8000-000000000000",
        "index": index,
        "vendor": vendor,
        "model": model,
        "kind": "discrete",
        "uuid": f"GPU-{index:08x}-0000-4000-8000-000000000000",
        "pci_address": f"0000:{index + 1:02x}:00.0",
        "driver": "nvidia" if vendor == "nvidia" else vendor,
        "driver_version": "580.95.05",
        "parent": None,
        "partition": None,
        **_empty(fields.ADAPTER_GROUPS),
        "health": "ok",
        "power_state": "active",
        "processes_listed": "complete",
        "unreadable_pids": 0,
        "holders": None,
        "shared_clients": None,
        "accounting": None,
        "_provenance": {"parent": "null:none", "partition": "null:none"},
    }
    for leaf in fields.ADAPTER_FIGURES:
        row["_provenance"][leaf] = "null:not-exposed"
    row["memory"]["kind"] = "dedicated"
    set_leaf(row, "memory.total_bytes", total)
    set_leaf(row, "memory.used_bytes", used)
    if isinstance(total, int) and isinstance(used, int):
        set_leaf(row, "memory.free_bytes", total - used)
    set_leaf(row, "load.gpu_percent", busy)
    set_leaf(row, "holders", holders)
    set_leaf(row, "shared_clients", "null:not-exposed" if vendor == "nvidia" else [])
    if listed.startswith("null:"):
        row["processes_listed"] = "unavailable"
        row["_provenance"]["processes_listed"] = listed
    else:
        row["processes_listed"] = listed
    for leaf, value in (leaves or {}).items():
        set_leaf(row, leaf, value)
    row["_provenance"].update(provenance or {})
    return row


def holder(
    pid: int,
    name: str | None = "python",
    user: str | None = "bob",
    *,
    state: str | None = "sleeping",
    via: str = "/dev/nvidia0",
    start_ticks: int | None = 360_000,
    **more: object,
) -> Row:
    return {"pid": pid, "start_ticks": start_ticks, "name": name, "user": user, "state": state, "via": via, **more}


def process(
    pid: int,
    vram: int | str = GIB,
    *,
    on: Row | int = 0,
    name: str | None = "python",
    user: str | None = "alice",
    uid: int | None = 1000,
    start_ticks: int | None = 360_000,
    busy: float | str = "null:not-requested",
    category: str = "ai",
    provenance: Mapping[str, str] | None = None,
    leaves: Mapping[str, object] | None = None,
    **texts: object,
) -> Row:
    """One row; `on` is the adapter row or its index. `name="null:exited"` and the like work for texts too."""
    card = on["id"] if isinstance(on, dict) else f"GPU-{on:08x}-0000-4000-8000-000000000000"
    row: Row = {
        "adapter": card,
        "pid": pid,
        "pid_namespace": "host",
        "start_ticks": start_ticks,
        "started_at": None if start_ticks is None else rfc3339(START - 86_400 + start_ticks / 100),
        "ppid": 900,
        "name": None,
        "exe": f"/usr/bin/{name}",
        "cmdline": [f"/usr/bin/{name}"],
        "cwd": "/home/alice",
        "uid": uid,
        "user": None,
        "state": "sleeping",
        "container_id": None,
        "pod_uid": None,
        "systemd_unit": None,
        "slurm_job_id": None,
        "self": False,
        "type": "compute",
        "vram_bytes": None,
        "spill_bytes": None,
        "paged_bytes": None,
        "vram_shared_bytes": 0,
        "shared_with": [],
        "gpu_percent": None,
        "engines_percent": dict.fromkeys(fields.ENGINES),
        "cpu_percent": None,
        "rss_bytes": None,
        "category": category,
        "role": None,
        "runtimes": [],
        "model": None,
        "llm": None,
        "_provenance": dict.fromkeys(
            ("container_id", "pod_uid", "systemd_unit", "slurm_job_id", "role", "model", "llm"), "null:none"
        ),
    }
    for leaf in fields.PROCESS_FIGURES:
        row["_provenance"][leaf] = "null:not-exposed"
    row["_provenance"]["vram_shared_bytes"] = "computed:per-process-driver"
    set_leaf(row, "name", name)
    set_leaf(row, "user", user)
    set_leaf(row, "vram_bytes", vram)
    set_leaf(row, "gpu_percent", busy)
    for leaf, value in {**(leaves or {}), **texts}.items():
        set_leaf(row, leaf, value)
    row["_provenance"].update(provenance or {})
    return row


def llm_facts(**leaves: object) -> Row:
    """The `llm` value of a process row with what is given; the rest null."""
    keys = (*fields.LLM_TEXTS[:1], *fields.LLM_FIGURES[:2], *fields.LLM_TEXTS[1:], *fields.LLM_FIGURES[2:])
    return {**dict.fromkeys(keys), **leaves}


def model_facts(**leaves: object) -> Row:
    keys = (*fields.MODEL_TEXTS[:2], "parameters", "quantization", *fields.MODEL_FIGURES[1:], "path")
    return {**dict.fromkeys(keys), **leaves}


def snapshot(
    adapters: Sequence[Row] = (),
    processes: Sequence[Row] | None = (),
    *,
    at: float = START,
    uptime: float = 86_400.0,
    boot: str | None = BOOT,
    hostname: str = "node12",
    container: bool | None = False,
    platform: str = "linux",
    backends: Sequence[Row] | None = None,
    warnings: Sequence[Row] = (),
    labels: Mapping[str, str] | None = None,
    recording: Row | None = None,
) -> Snapshot:
    """A whole document; rows are copied, so they can serve in many."""
    cards = copy.deepcopy(list(adapters))
    rows = copy.deepcopy(list(processes)) if processes is not None else None
    for card in cards:
        if card["accounting"] is None:
            account(card, rows or [])
    table: list[dict[str, str]] = []
    for row in [*cards, *(rows or [])]:
        entry = row.pop("_provenance")
        for leaf in [leaf for leaf in entry if "." not in leaf and not entry[leaf].startswith("null:")]:
            if leaf not in fields.PROCESS_FIGURES:
                del entry[leaf]
        for leaf in (*fields.ADAPTER_FIGURES, *fields.PROCESS_FIGURES):
            if entry.get(leaf, "").startswith("null:") and _leaf(row, leaf) is not None:
                entry[leaf] = SOURCE
        if entry not in table:
            table.append(entry)
        row["provenance"] = table.index(entry)
    return cast(
        "Snapshot",
        {
            "schema": "gpusnap.snapshot/1",
            "version": "0.1.0",
            "taken_at": rfc3339(at),
            "boot_id": boot,
            "uptime_seconds": uptime,
            "duration_seconds": 0.031,
            "window_seconds": None,
            "labels": dict(labels or {}),
            "host": {
                "hostname": hostname,
                "os": "Debian GNU/Linux 12 (bookworm)",
                "kernel": "6.1.0-31-amd64",
                "arch": "x86_64",
                "platform": platform,
                "container": container,
            },
            "backends": list(backends) if backends is not None else [backend()],
            "adapters": cards,
            "processes": rows,
            "recording": recording,
            "warnings": list(warnings),
            "provenance": table,
        },
    )


def backend(name: str = "nvml", status: str = "ok", detail: str | None = None) -> Row:
    return {
        "name": name,
        "status": status,
        "version": "13.615.71" if name == "nvml" else None,
        "driver_version": "580.95.05" if name == "nvml" else None,
        "detail": detail,
    }


def recording(sequence: int, writer: int = 777, missed: int = 0) -> Row:
    return {"writer_pid": writer, "sequence": sequence, "missed_ticks": missed, "late_seconds": 0.0}


def _leaf(row: Row, leaf: str) -> object:
    value: Any = row
    for key in leaf.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
