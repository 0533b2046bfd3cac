"""xe's performance counters: opened for one window on a card that is awake, and closed."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedCounter, CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from tests.unit.drm.kit import adapter, card, client, host_of, process, snapshot, source

FOLDER = "sys/bus/event_source/devices/xe_0000_03_00.0"
FORMATS = {
    "event": "config:0-11",
    "engine_class": "config:20-27",
    "engine_instance": "config:12-19",
    "function": "config:44-59",
    "gt": "config:60-63",
}
FILES = {
    "type": "31",
    "cpumask": "0",
    "events/gt-c6-residency": "event=0x01",
    "events/engine-active-ticks": "event=0x02",
    "events/engine-total-ticks": "event=0x03",
    **{f"format/{name}": bits for name, bits in FORMATS.items()},
}
RENDER, COPY, DECODE, ENHANCE, COMPUTE, VM_BIND = range(6)
ENGINES = [(RENDER, 0, 0), (COPY, 0, 0), (DECODE, 0, 1), (DECODE, 2, 1), (ENHANCE, 0, 1), (COMPUTE, 0, 0)]
# Of 5,000,000 ticks: render 2,000,000, copy none, one video engine all, the other none, compute 500,000.
COUNTS = {
    "31 0x2": [0, 2_000_000],
    "31 0x3": [0, 5_000_000],
    "31 0x100002": [0, 0],
    "31 0x100003": [0, 5_000_000],
    "31 0x1000000000200002": [0, 5_000_000],
    "31 0x1000000000200003": [0, 5_000_000],
    "31 0x1000000000202002": [7, 7],
    "31 0x1000000000202003": [7, 5_000_007],
    "31 0x400002": [0, 500_000],
    "31 0x400003": [0, 5_000_000],
}


def engines_blob(*engines: tuple[int, int, int]) -> bytes:
    """xe_drm.h: u32 num_engines, u32 pad; each u16 class, u16 instance, u16 gt_id, u16 pad, u64 reserved[3]."""
    return struct.pack("<II", len(engines), 0) + b"".join(struct.pack("<HHHH24x", *e, 0) for e in engines)


def machine(folder: Path, *, status: str = "active", more: str = "", **changes: Any) -> CapturedHost:
    """A card that fdinfo calls 25 % busy; `perf`, `blob` and `files` take the place of what it answers."""
    files = {**FILES, **changes.get("files", {})}
    texts = "".join(f"--- {FOLDER}/{name}\n{value}\n" for name, value in files.items() if value is not None)
    info = client(
        3, "xe", resident_vram0="0", shared_vram0="0", cycles_rcs="0", total_cycles_rcs="0", resident_gtt="0"
    )
    later = info.replace("cycles-rcs:\t0", "cycles-rcs:\t250").replace(
        "total-cycles-rcs:\t250", "total-cycles-rcs:\t1000"
    )
    blob = changes.get("blob", engines_blob(*ENGINES))
    return host_of(
        folder,
        card(driver="xe", vendor="8086", device="e20b", status=status)
        + process(300, {4: ("/dev/dri/renderD128", info)})
        + texts
        + more,
        f"--- proc/300/fdinfo/4\n{later}",
        ioctls={"dev/dri/renderD128 xe.query.0": {"hex": blob.hex()}},
        perf=changes.get("perf", COUNTS),
    )


def test_the_counters_see_the_whole_card(tmp_path: Path) -> None:
    document = snapshot(machine(tmp_path), window=0.25)
    found = adapter(document)
    assert found["load"]["engines_percent"] == {
        "graphics": 40.0,
        "compute": 10.0,
        "copy": 0.0,
        "video_decode": 50.0,  # the mean of two engines
        "video_encode": None,
    }
    assert found["load"]["gpu_percent"] == 40.0
    assert source(document, found, "load.gpu_percent") == "computed:xe.pmu"


def test_without_a_window_no_counter_is_opened(tmp_path: Path) -> None:
    host = machine(tmp_path)
    snapshot(host)
    assert [path for path in host.opened if path.startswith("perf/") or path.endswith("query.0")] == []


@pytest.mark.parametrize("status", ["suspended", "suspending", "error", "nonsense"])
def test_a_sleeping_card_is_not_woken_by_a_counter(tmp_path: Path, status: str) -> None:
    host = machine(tmp_path, status=status)
    snapshot(host, window=0.25)
    assert [path for path in host.opened if path.startswith("perf/") or path.endswith("query.0")] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"perf": {"31 0x2": {"errno": "EACCES"}}},
        {"perf": {"31 0x2": [0, 5], "31 0x3": {"errno": "EINVAL"}}},
        {"perf": {}},
        {"perf": {key: [0, 0] for key in COUNTS}},  # its firmware has not begun to count
        {"files": {"events/engine-active-ticks": None, "events/engine-total-ticks": None}},  # Linux 6.14
        {"files": {"events/engine-active-ticks": "config=0x2"}},
        {"files": {"format/gt": "config1:60-63"}},
        {"files": {"format/gt": None}},
        {"files": {"format/engine_instance": "config:12-12"}},  # too narrow for instance 2
        {"files": {"type": "thirty-one"}},
        {"blob": b""},
        {"blob": engines_blob(*ENGINES)[:-1]},
        {"blob": struct.pack("<II", 2**31, 0)},
        {"more": "--- sys/devices/pci0000:00/0000:03:00.0/sriov_numvfs\n2\n"},
    ],
)
def test_without_the_counters_the_sum_over_processes_stands(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Denied, older, unreadable, or not the whole card's because virtual functions were given away."""
    document = snapshot(machine(tmp_path, **changes), window=0.25)
    found = adapter(document)
    assert found["load"]["gpu_percent"] == 25.0
    assert source(document, found, "load.gpu_percent").startswith("computed:fdinfo.drm-cycles-rcs")


def test_a_card_without_virtual_functions_in_use_is_counted(tmp_path: Path) -> None:
    more = "--- sys/devices/pci0000:00/0000:03:00.0/sriov_numvfs\n0\n"
    assert adapter(snapshot(machine(tmp_path, more=more), window=0.25))["load"]["gpu_percent"] == 40.0


class CountedHost(CapturedHost):
    """Knows how many counters are open."""

    still_open = 0

    def perf_counter(self, pmu: int, config: int, cpu: int) -> CapturedCounter:
        counter = super().perf_counter(pmu, config, cpu)
        self.still_open += 1
        host = self

        class Closing(CapturedCounter):
            def close(self) -> None:
                host.still_open -= 1

        return Closing(self, counter._values)


def test_no_counter_stays_open_after_its_window(tmp_path: Path) -> None:
    """A recording's later samples count by fdinfo: an open counter would keep the card awake all day."""
    machine(tmp_path)
    host = CountedHost(tmp_path)
    collector = Collector(host, CollectOptions(window=0.25))
    first = json.loads(dumps(collector.sample()))
    assert adapter(first)["load"]["gpu_percent"] == 40.0
    assert host.still_open == 0
    host.sleep(1.0)
    collector.sample()
    assert host.still_open == 0
    assert sum(path.startswith("perf/") for path in host.opened) == len(COUNTS)


def test_a_counter_that_fails_leaves_none_open(tmp_path: Path) -> None:
    machine(tmp_path, perf={**COUNTS, "31 0x400003": {"errno": "ENODEV"}})
    host = CountedHost(tmp_path)
    Collector(host, CollectOptions(window=0.25)).sample()
    assert host.still_open == 0


def test_a_node_under_another_cards_name_is_asked_for_no_engines(tmp_path: Path) -> None:
    host = machine(tmp_path, more="--- root/dev/dri/renderD128 rdev=226:129\n")
    snapshot(host, window=0.25)
    assert [path for path in host.opened if path.startswith("perf/") or path.endswith("query.0")] == []
