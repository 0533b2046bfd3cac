"""Chaos: a bad file costs the figures that come from it, and nothing else.

Two nets. FEEDS says, by hand and from the kernels' documentation, which leaves each kind of file may touch at all,
and that a card's files touch no other card. `chaos.json` beside each machine says to the leaf what each fault
does; `python -m tests.chaos` writes it, a reviewer reads its diff.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedHost
from tests.chaos import MACHINES, document_of, effects, table_of

MACHINE_FOLDERS = sorted(folder for folder in MACHINES.iterdir() if folder.is_dir())
ACCOUNT = r"accounting\..*"
OF_PROCESS = (
    r"name|exe|cmdline|cwd|uid|user|state|ppid|start_ticks|started_at|cpu_percent|rss_bytes|role|category|runtimes"
    r"|container_id|pod_uid|systemd_unit|slurm_job_id|model.*|llm.*|self|pid_namespace"
)
CLIENT = r"vram_bytes|spill_bytes|vram_shared_bytes|shared_with|type|gpu_percent|engines_percent\..*|llm\..*"

# file -> the leaves that it feeds, of adapters and of process rows alike. First match counts.
TOTALS = r"accounting\.(free|unattributed|unattributed_max)_bytes"
METRICS = (
    r"clocks\..*|temperature\.(gpu|memory)_celsius|power\.(draw_watts|energy_joules)|pcie\.width"
    r"|load\.(gpu|memory_bandwidth)_percent|health"
)
FEEDS: tuple[tuple[str, str], ...] = (
    ("*/mem_info_vram_total", rf"memory\.(total|used|free)_bytes|{TOTALS}"),
    ("*/mem_info_vram_used", rf"memory\.(used|free)_bytes|{TOTALS}|health"),
    ("*/mem_info_gtt_total", r"memory\.shared_(total|used)_bytes"),
    ("*/mem_info_gtt_used", r"memory\.shared_used_bytes"),
    ("*/gpu_busy_percent", r"load\.gpu_percent|health"),
    ("*/mem_busy_percent", r"load\.memory_bandwidth_percent"),
    ("*/gpu_metrics", METRICS),
    ("*/hwmon/*/temp*", r"temperature\.(gpu|memory)_celsius"),
    ("*/hwmon/*/freq*", r"clocks\.(graphics|memory)_mhz"),
    ("*/hwmon/*/power*_cap", r"power\.limit_watts"),
    ("*/hwmon/*/power*_max", r"power\.limit_watts"),
    ("*/hwmon/*/power*", r"power\.draw_watts"),
    ("*/hwmon/*/energy*", r"power\.(energy_joules|draw_watts)"),
    ("*/hwmon/*/pwm1", r"temperature\.fan_percent"),
    ("*/hwmon/*/in1_label", rf"kind|memory\.kind|vram_bytes|type|{ACCOUNT}"),
    ("*/hwmon/*/*", r"kind|memory\.kind"),
    ("*/pp_dpm_sclk", r"clocks\.graphics_mhz"),
    ("*/pp_dpm_mclk", r"clocks\.memory_mhz"),
    ("*/*_link_speed", r"pcie\.(max_)?generation"),
    ("*/*_link_width", r"pcie\.(max_)?width"),
    ("*/ras/*_err_count", r"ecc\.(un)?corrected_volatile|health"),
    ("*/ras/features", r"ecc\.enabled"),
    ("*/ras/gpu_vram_bad_pages", r"ecc\.retired_pages"),
    ("*/unique_id", r"uuid"),
    ("*/product_name", r"model"),
    ("*/current_compute_partition", r"partition"),
    ("*/of_node/compatible", r"model"),
    ("*/profiling", r"load\..*|gpu_percent|engines_percent\..*"),
    ("*/throttle/*", r"clocks\.throttle_reasons|health"),
    ("*/throttle_reason_*", r"clocks\.throttle_reasons|health"),
    ("*act_freq*", r"clocks\.graphics_mhz|health"),
    ("*/dmem.capacity", r"memory\.(total|free)_bytes|accounting\.free_bytes"),
    ("*/dmem.current", r"memory\.used_bytes|accounting\.unattributed(_max)?_bytes"),
    ("*/event_source/*", r"load\..*"),
    # What may be read of a card depends on whether it sleeps.
    ("*/power/runtime_status", r".*"),
    ("sys/*/vendor", r"vendor|model|kind|memory\.kind"),
    ("sys/*/device", r"model|kind|memory\.kind"),
    ("sys/*/revision", r"model"),
    ("sys/*/class", r"model|kind|power_state"),
    ("root/usr/share/*", r"model"),
    ("root/dev/*", rf"memory\..*|{CLIENT}|{ACCOUNT}|health|load\..*"),
    ("sys/class/kfd/*/mem_banks/*", r"memory\.total_bytes"),
    ("sys/class/kfd/*", rf"{CLIENT}|{ACCOUNT}|load\..*|processes_listed|shared_clients|unreadable_pids"),
    ("proc/*/fdinfo/*", rf"{CLIENT}|{ACCOUNT}|load\..*|shared_clients"),
    # Ownership of an inherited client is told by who is whose parent.
    ("proc/*/stat", rf"{OF_PROCESS}|{CLIENT}|{ACCOUNT}|shared_clients|load\..*|unreadable_pids|processes_listed"),
    ("proc/*/status", r"uid|user|category|role|pid_namespace"),
    ("proc/*/cmdline", rf"cmdline|exe|role|category|model.*|llm.*|{ACCOUNT}"),
    ("proc/*/comm", rf"{OF_PROCESS}|{ACCOUNT}"),
    ("proc/*/cgroup", r"container_id|pod_uid|systemd_unit|slurm_job_id"),
    ("proc/*/environ", r"llm.*|model.*"),
    ("proc/*/maps", r"runtimes|role|category"),
    ("proc/self/mounts", r"processes_listed|unreadable_pids"),
    ("proc/sys/kernel/random/boot_id", r"boot_id"),
    ("proc/meminfo", r"memory\.(kind|shared_total_bytes|shared_used_bytes)|kind|model.*|llm.*"),
    # Jetson: the device tree says that there is one.
    ("*.gpu/load", r"load\.gpu_percent"),
    ("proc/device-tree/*", r"detail|status|model|kind|memory\.kind"),
    ("proc/uptime", r"uptime_seconds"),
    ("proc/stat", r"started_at"),
    ("proc/driver/nvidia/version", r"driver_version|detail"),
    ("proc/driver/nvidia/gpus/*", r"model|uuid|pci_address|holders|health"),
    ("proc/*", rf"{OF_PROCESS}|llm.*|model.*"),
    ("root/*", rf"{OF_PROCESS}|llm.*|model.*"),
)
# Files of which one decides whether something is there at all, or what stands where.
DECIDES_ROWS = (
    "*/power/runtime_status",
    "*/fdinfo/*",
    "sys/class/kfd/*",
    "root/dev/*",
    "sys/*/class",
    "sys/*/vendor",
    "proc/self/mounts",
    "proc/driver/nvidia/*",
    "proc/device-tree/compatible",
    "proc/*/stat",
)
ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


@cache
def effects_of(machine: str) -> dict[str, Any]:
    return table_of(effects(MACHINES / machine))


@pytest.mark.parametrize("machine", MACHINE_FOLDERS, ids=lambda folder: folder.name)
def test_each_fault_does_to_the_leaf_what_the_table_says(machine: Path) -> None:
    """Nothing raises, no contract breaks, exactly the listed leaves become null, nothing else changes."""
    path = machine / "chaos.json"
    assert path.exists(), f"python -m tests.chaos {machine.name}, and review what it wrote"
    expected = json.loads(path.read_bytes())
    found = effects_of(machine.name)
    assert found.keys() == expected.keys()
    for file, by_fault in expected.items():
        assert found[file] == by_fault, file


@pytest.mark.parametrize("machine", MACHINE_FOLDERS, ids=lambda folder: folder.name)
def test_a_file_touches_only_what_it_feeds(machine: Path) -> None:
    table = json.loads((machine / "chaos.json").read_bytes())
    places = places_of(machine)
    wrong = []
    for file, by_fault in table.items():
        allowed = next((leaves for pattern, leaves in FEEDS if fnmatchcase(file, pattern)), None)
        assert allowed is not None, f"which leaves does {file} feed?"
        for fault, effect in by_fault.items():
            wrong += [f"{file} {fault}: {what}" for what in strangers(file, effect, allowed, places)]
    assert wrong == []


def places_of(machine: Path) -> dict[str, str]:
    """adapter id -> the PCI address that it, or its card, has."""
    document = document_of(CapturedHost(machine))
    by_id = {row["id"]: row for row in document["adapters"]}
    parents = {ident: by_id.get(row["parent"], row) for ident, row in by_id.items()}
    return {ident: row["pci_address"] for ident, row in parents.items() if row["pci_address"] is not None}


def strangers(
    file: str, effect: dict[str, dict[str, list[str]]], allowed: str, places: dict[str, str]
) -> list[str]:
    """What a fault touched that the file does not feed: other leaves, other cards, other processes, rows."""
    found = []
    decides = any(fnmatchcase(file, pattern) for pattern in DECIDES_ROWS)
    card = ADDRESS.findall(file)[-1] if file.startswith("sys/devices/") and ADDRESS.findall(file) else None
    pid = file.split("/")[1] if file.startswith("proc/") and file.split("/")[1].isdigit() else None
    for kind, rows in effect.items():
        for row, leaves in rows.items():
            if row.startswith("warning internal-error"):
                found.append(row)
            if row.startswith(("warning", "backend", "document")):
                own = f"{allowed}|boot_id|processes"
                found += [f"{row}.{leaf}" for leaf in leaves if not decides and not re.fullmatch(own, leaf)]
                continue
            if kind in ("new", "gone") and not decides:
                found.append(f"{kind} {row}")
            place = places.get(row.split(" ")[0])
            if card is not None and place is not None and place != card:
                found.append(f"another card: {row}")
            if pid is not None and not decides and " " in row and row.split(" ")[1] != pid:
                found.append(f"another process: {row}")
            found += [f"{row}.{leaf}" for leaf in leaves if not re.fullmatch(allowed, leaf)]
    return found
