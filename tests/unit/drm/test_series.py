"""A series of samples: rates come from the sample before, identity is read once, sleep and waking are seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpusnap.captured import CapturedHost
from gpusnap.captured_tree import Entry
from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from tests.unit.drm.kit import MIB, adapter, amd_client, amdgpu, card, client, host_of, process, row, source

NODE = "/dev/dri/renderD128"
INTEL = "sys/devices/pci0000:00/0000:03:00.0"


def sample(collector: Collector) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collector.sample()))
    return document


def put(host: CapturedHost, path: str, text: str) -> None:
    host.overlay({path: Entry(data=text.encode())})


def test_each_sample_counts_since_the_one_before(tmp_path: Path) -> None:
    def info(ns: int) -> str:
        return client(3, "i915", resident_local0="0", shared_local0="0", engine_render=f"{ns} ns")

    tree = card(driver="i915", vendor="8086", device="56a0", files={"hwmon/hwmon1/energy1_input": 1_000_000})
    host = host_of(tmp_path, tree + process(300, {4: (NODE, info(0))}))
    collector = Collector(host, CollectOptions())
    first = sample(collector)
    assert source(first, row(first, 300), "gpu_percent") == "null:needs-two-samples"
    assert source(first, adapter(first), "power.draw_watts") == "null:needs-two-samples"
    shares, watts = [], []
    busy = energy = 0
    for spent, joules in ((2_500_000_000, 100), (0, 50), (10_000_000_000, 0)):
        host.sleep(10)
        busy, energy = busy + spent, energy + joules
        put(host, "proc/300/fdinfo/4", info(busy))
        put(host, f"{INTEL}/hwmon/hwmon1/energy1_input", f"{1_000_000 + energy * 1_000_000}\n")
        document = sample(collector)
        shares.append(row(document, 300)["gpu_percent"])
        watts.append(adapter(document)["power"]["draw_watts"])
    assert shares == [25.0, 0.0, 100.0]
    assert watts == [10.0, 5.0, 0.0]


def test_a_card_that_falls_asleep_is_left_alone_and_read_again_when_it_wakes(tmp_path: Path) -> None:
    host = host_of(
        tmp_path, card(files=amdgpu(gpu_busy_percent=7)) + process(300, {4: (NODE, amd_client(7, "1 MiB"))})
    )
    collector = Collector(host, CollectOptions())
    seen = []
    for status in ("active", "suspended", "active"):
        put(host, f"{INTEL}/power/runtime_status", f"{status}\n")
        host.opened.clear()
        host.sleep(10)
        document = sample(collector)
        touched = any(path.endswith("gpu_busy_percent") for path in host.opened)
        seen.append((adapter(document)["power_state"], adapter(document)["load"]["gpu_percent"], touched))
        assert row(document, 300)["vram_bytes"] == MIB
    # Asleep, its clients' counters still tell: they stood still.
    assert seen == [("active", 7, True), ("suspended", 0.0, False), ("active", 7, True)]


def test_a_card_that_is_pulled_out_leaves_and_comes_back_under_its_name(tmp_path: Path) -> None:
    tree = card(files=amdgpu())
    host = host_of(tmp_path, tree)
    collector = Collector(host, CollectOptions())
    kept = dict(host.entries)
    assert [r["id"] for r in sample(collector)["adapters"]] == ["pci:0000:03:00.0"]
    for path in ("sys/class", "sys/bus", "sys/devices"):
        host.overlay({path: None})
    assert sample(collector)["adapters"] == []
    host.overlay(kept)
    assert [r["id"] for r in sample(collector)["adapters"]] == ["pci:0000:03:00.0"]


def test_names_and_ids_are_read_once(tmp_path: Path) -> None:
    tree = card(files=amdgpu(revision="0xc8")) + "--- root/usr/share/libdrm/amdgpu.ids\n744C,\tC8,\tRX 7900 XTX\n"
    host = host_of(tmp_path, tree)
    collector = Collector(host, CollectOptions())
    assert adapter(sample(collector))["model"] == "RX 7900 XTX"
    host.opened.clear()
    host.sleep(10)
    assert adapter(sample(collector))["model"] == "RX 7900 XTX"
    assert [path for path in host.opened if path.endswith(("amdgpu.ids", "/device", "/vendor", "/revision"))] == [
        f"{INTEL}/vendor"  # display-only vendors are told anew at each look
    ]
