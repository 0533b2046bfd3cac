"""Jetson boards: what `/proc/meminfo` and the GPU's `load` file say, and what they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpusnap.collect.tegra import gpu_load, system_share
from tests.unit.collect.machine import host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("folder", "text", "value", "provenance"),
    [
        ("devices/gpu.0", "1000\n", 100.0, "measured:sysfs.load"),
        ("devices/platform/gpu.0", "5\n", 0.5, "measured:sysfs.load"),
        ("devices/platform/17000000.gpu", "0\n", 0.0, "measured:sysfs.load"),
        ("devices/platform/bus@0/17000000.gpu", "437\n", 43.7, "measured:sysfs.load"),
        ("devices/platform/17000000.gpu", "1001\n", None, "null:out-of-range sysfs.load says 1001"),
        ("devices/platform/17000000.gpu", "-1\n", None, "null:unknown-format sysfs.load"),
        ("devices/platform/serial8250", "437\n", None, "null:not-exposed no load of a gpu platform device"),
    ],
)
def test_load_is_in_tenths(tmp_path: Path, folder: str, text: str, value: float | None, provenance: str) -> None:
    reading = gpu_load(host(tmp_path, f"--- sys/{folder}/load\n{text}"))
    assert (reading.value, reading.provenance) == (value, provenance)


def test_thor_reads_0_where_it_does_not_count(tmp_path: Path) -> None:
    """jetson_stats PR#849, PR#852."""
    share = system_share(host(tmp_path, "--- proc/meminfo\nMemTotal: 1024 kB\nNvMapMemUsed: 0 kB\n"))
    assert share["memory.shared_total_bytes"].value == 1 << 20
    assert share["memory.shared_used_bytes"].provenance == "null:not-supported NvMapMemUsed reads 0"


def test_without_meminfo_nothing_is_known(tmp_path: Path) -> None:
    share = system_share(host(tmp_path, "--- sys/x\n\n"))
    assert [reading.provenance for reading in share.values()] == [
        "null:not-exposed meminfo MemTotal",
        "null:not-exposed meminfo NvMapMemUsed",
    ]
