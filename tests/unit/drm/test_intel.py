"""i915 and xe: the memory query, the dmem cgroup, sensors, the PMU."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from gpusnap.collect.intel_query import parse
from tests.unit.drm.kit import GIB, MIB, adapter, card, client, host_of, process, snapshot, source

PATH = "sys/devices/pci0000:00/0000:03:00.0"
SYSTEM, LOCAL = 0, 1


def i915_blob(*regions: tuple[int, int, int]) -> bytes:
    """i915_drm.h: u32 count, 12 bytes; regions u16 class, u16 instance, u32, u64 probed, u64 unallocated, 64."""
    return struct.pack("<I12x", len(regions)) + b"".join(
        struct.pack("<HHIQQ64x", kind, 0, 0, probed, unallocated) for kind, probed, unallocated in regions
    )


def xe_blob(*regions: tuple[int, int, int]) -> bytes:
    """xe_drm.h: u32 count, 4 bytes; regions u16 class, u16 instance, u32 page, u64 total, u64 used, 64."""
    return struct.pack("<II", len(regions), 0) + b"".join(
        struct.pack("<HHIQQ64x", kind, 0, 65536, total, used) for kind, total, used in regions
    )


def arc(tmp_path: Path, driver: str, blob: bytes | str | None, more: str = "", **options: Any) -> dict[str, Any]:
    """The document of one discrete card whose query answers so (bytes, or an errno's name)."""
    answer = {"hex": blob.hex()} if isinstance(blob, bytes) else {"errno": blob}
    ioctls = (
        {f"dev/dri/renderD128 {driver}.query.{4 if driver == 'i915' else 1}": answer} if blob is not None else {}
    )
    tree = card(driver=driver, vendor="8086", device="56a0") + more
    return snapshot(host_of(tmp_path, tree, ioctls=ioctls), **options)


def test_i915_tells_used_to_who_may_know(tmp_path: Path) -> None:
    document = arc(tmp_path, "i915", i915_blob((SYSTEM, 32 * GIB, 32 * GIB), (LOCAL, 16 * GIB, 10 * GIB)))
    memory = adapter(document)["memory"]
    assert (memory["total_bytes"], memory["used_bytes"], memory["free_bytes"]) == (16 * GIB, 6 * GIB, 10 * GIB)


@pytest.mark.parametrize(
    ("driver", "blob"),
    [
        ("i915", i915_blob((SYSTEM, 32 * GIB, 32 * GIB), (LOCAL, 16 * GIB, 16 * GIB))),
        ("xe", xe_blob((SYSTEM, 32 * GIB, 0), (LOCAL, 16 * GIB, 0))),
    ],
)
def test_report_088_used_is_not_told_to_everyone(tmp_path: Path, driver: str, blob: bytes) -> None:
    """nvtop#347, drm 17: a normal user gets unallocated = probed, or used = 0; that is no empty card."""
    document = arc(tmp_path, driver, blob)
    found = adapter(document)
    assert (found["memory"]["total_bytes"], found["memory"]["used_bytes"]) == (16 * GIB, None)
    assert source(document, found, "memory.used_bytes") == "null:no-permission CAP_PERFMON"
    assert source(document, found, "memory.free_bytes") == "null:no-permission CAP_PERFMON"
    assert set(found) == set(adapter(arc(tmp_path, "i915", i915_blob((LOCAL, 16 * GIB, GIB)))))


def test_xe_adds_its_tiles(tmp_path: Path) -> None:
    document = arc(
        tmp_path, "xe", xe_blob((SYSTEM, 64 * GIB, GIB), (LOCAL, 16 * GIB, 3 * GIB), (LOCAL, 16 * GIB, GIB))
    )
    memory = adapter(document)["memory"]
    assert (memory["total_bytes"], memory["used_bytes"]) == (32 * GIB, 4 * GIB)
    assert (memory["shared_total_bytes"], memory["shared_used_bytes"]) == (64 * GIB, GIB)


@pytest.mark.parametrize("blob", [b"", b"\x01", xe_blob((LOCAL, GIB, 1))[:-1], struct.pack("<II", 9999, 0)])
def test_an_answer_that_is_none_is_unknown_format(tmp_path: Path, blob: bytes) -> None:
    assert parse("xe", blob) is None
    document = arc(tmp_path, "xe", blob)
    assert source(document, adapter(document), "memory.used_bytes").startswith("null:unknown-format xe.query")


def test_more_used_than_there_is_is_out_of_range(tmp_path: Path) -> None:
    document = arc(tmp_path, "xe", xe_blob((LOCAL, GIB, 2 * GIB)))
    assert source(document, adapter(document), "memory.used_bytes") == "null:out-of-range"
    assert [w["code"] for w in document["warnings"]] == ["out-of-range"]


DMEM = (
    "--- sys/fs/cgroup/dmem.capacity\ndrm/0000:03:00.0/vram0 8514437120\ndrm/0000:03:00.0/stolen 67108864\n"
    "drm/0000:04:00.0/vram0 5\n--- sys/fs/cgroup/user.slice/dmem.current\ndrm/0000:03:00.0/vram0 1000\n"
    "drm/0000:04:00.0/vram0 7\n--- sys/fs/cgroup/system.slice/dmem.current\ndrm/0000:03:00.0/vram0 24\n"
    "--- sys/fs/cgroup/user.slice/user-1000.slice/dmem.current\ndrm/0000:03:00.0/vram0 1000\n"
)


def test_the_dmem_cgroup_knows_the_card_where_its_node_is_closed_to_us(tmp_path: Path) -> None:
    """Readable by everyone, no device access."""
    document = arc(tmp_path, "xe", "EACCES", DMEM)
    found = adapter(document)
    assert found["memory"]["total_bytes"] == 8514437120
    assert found["memory"]["used_bytes"] == 1024
    assert source(document, found, "memory.used_bytes") == "estimated:cgroup.dmem.current"
    assert source(document, found, "memory.free_bytes") == "null:no-permission xe.query: EACCES"


def test_the_driver_is_believed_over_the_cgroup(tmp_path: Path) -> None:
    document = arc(tmp_path, "xe", xe_blob((LOCAL, 8514437120, 5000)), DMEM)
    assert source(document, adapter(document), "memory.used_bytes") == "measured:xe.query"
    assert adapter(document)["memory"]["used_bytes"] == 5000


def test_a_node_under_another_cards_name_is_not_asked(tmp_path: Path) -> None:
    """A container may have given renderD128 to another card."""
    tree = card(driver="xe", vendor="8086", device="56a0") + "--- root/dev/dri/renderD128 rdev=226:129\n"
    ioctls = {"dev/dri/renderD128 xe.query.1": {"hex": xe_blob((LOCAL, GIB, 5)).hex()}}
    host = host_of(tmp_path, tree, ioctls=ioctls)
    document = snapshot(host)
    assert adapter(document)["memory"]["total_bytes"] is None
    assert [path for path in host.opened if "query" in path] == []


def test_power_is_energy_over_time(tmp_path: Path) -> None:
    files = f"--- {PATH}/hwmon/hwmon1/energy1_input\n5000000\n"
    tree = card(driver="i915", vendor="8086", device="56a0") + files
    host = host_of(tmp_path, tree, f"--- {PATH}/hwmon/hwmon1/energy1_input\n17000000\n")
    document = snapshot(host, window=0.5)
    assert adapter(document)["power"]["draw_watts"] == 24.0  # 12 J in half a second
    assert adapter(document)["power"]["energy_joules"] == 17
    once = snapshot(host_of(tmp_path / "once", tree))
    assert source(once, adapter(once), "power.draw_watts") == "null:needs-two-samples"


def test_an_energy_counter_that_restarted_gives_no_power(tmp_path: Path) -> None:
    tree = card(driver="i915", vendor="8086", device="56a0") + f"--- {PATH}/hwmon/hwmon1/energy1_input\n5000000\n"
    host = host_of(tmp_path, tree, f"--- {PATH}/hwmon/hwmon1/energy1_input\n1000\n")
    document = snapshot(host, window=0.5)
    assert source(document, adapter(document), "power.draw_watts").startswith("null:failed")


PMU = "--- sys/bus/event_source/devices/i915_0000_03_00.0/type\n14\n" + "".join(
    f"--- sys/bus/event_source/devices/i915_0000_03_00.0/events/{name}\n{config}\n"
    for name, config in (
        ("rcs0-busy", "config=0x0"),
        ("rcs0-busy.unit", "ns"),
        ("vcs0-busy", "config=0x2000"),
        ("vcs1-busy", "config=0x2010"),
        ("rcs0-wait", "config=0x1"),
        ("actual-frequency", "config=0x100000"),
    )
)


def pmu(tmp_path: Path, counters: dict[str, list[int]], window: float) -> tuple[dict[str, Any], dict[str, Any]]:
    host = host_of(tmp_path, card(driver="i915", vendor="8086", device="56a0") + PMU, perf=counters)
    document = snapshot(host, window=window)
    return adapter(document), document


def test_the_pmu_sees_the_whole_card(tmp_path: Path) -> None:
    counters = {"14 0x0": [0, 400_000_000], "14 0x2000": [0, 100_000_000], "14 0x2010": [0, 0]}
    found, document = pmu(tmp_path, counters, 0.5)
    assert found["load"]["gpu_percent"] == 80.0
    assert found["load"]["engines_percent"]["video_decode"] == 10.0  # the mean of two engines
    assert source(document, found, "load.gpu_percent") == "computed:i915.pmu"


def test_the_pmu_needs_two_samples(tmp_path: Path) -> None:
    found, document = pmu(tmp_path, {"14 0x0": [0], "14 0x2000": [0], "14 0x2010": [0]}, 0.0)
    assert source(document, found, "load.gpu_percent") == "null:needs-two-samples"


@pytest.mark.parametrize("errno", ["EACCES", "EPERM", "ENOENT"])
def test_drm_18_a_denied_pmu_costs_nothing_else(tmp_path: Path, errno: str) -> None:
    """btop#1040 and #942, nixpkgs#309034, netdata#17400: without CAP_PERFMON the card vanished."""
    info = client(3, "i915", resident_local0="0", shared_local0="0", engine_render="0 ns")
    later = info.replace("render:\t0", "render:\t250000000")
    tree = (
        card(driver="i915", vendor="8086", device="56a0") + PMU + process(300, {4: ("/dev/dri/renderD128", info)})
    )
    host = host_of(tmp_path, tree, f"--- proc/300/fdinfo/4\n{later}", perf={"14 0x0": {"errno": errno}})
    document = snapshot(host, window=0.5)
    assert next(b for b in document["backends"] if b["name"] == "intel")["status"] == "ok"
    assert adapter(document)["load"]["gpu_percent"] == 50.0  # the sum over its processes
    assert source(document, adapter(document), "load.gpu_percent").startswith("computed:fdinfo")


@pytest.mark.parametrize(
    ("address", "kind", "unified"), [("0000:00:02.0", "integrated", True), ("0000:03:00.0", "discrete", False)]
)
def test_the_address_tells_an_integrated_part(tmp_path: Path, address: str, kind: str, unified: bool) -> None:
    tree = card(address, driver="i915", vendor="8086", device="7d55")
    sizes = {"resident_system0": "8 MiB", "resident_stolen_local0": "0", "resident_local0": "1 MiB"}
    info = client(3, "i915", address, shared_local0="0", **sizes)
    document = snapshot(host_of(tmp_path, tree + process(300, {4: ("/dev/dri/renderD128", info)})))
    found = adapter(document, address)
    assert (found["kind"], found["memory"]["kind"]) == (kind, "unified" if unified else "dedicated")
    row = document["processes"][0]
    assert (row["vram_bytes"], row["spill_bytes"]) == ((None, 9 * MIB) if unified else (MIB, 8 * MIB))


def test_an_integrated_part_of_xe_has_only_system_memory(tmp_path: Path) -> None:
    """Lunar Lake: one region, of the system; all its clients' memory is there."""
    address = "0000:00:02.0"
    tree = card(address, driver="xe", vendor="8086", device="64a0")
    info = client(3, "xe", address, resident_system="1 MiB", resident_gtt="6 MiB", resident_stolen="512 KiB")
    ioctls = {"dev/dri/renderD128 xe.query.1": {"hex": xe_blob((SYSTEM, 32 * GIB, 64 * MIB)).hex()}}
    tree += process(300, {4: ("/dev/dri/renderD128", info)})
    document = snapshot(host_of(tmp_path, tree, ioctls=ioctls))
    memory = adapter(document, address)["memory"]
    assert (memory["kind"], memory["total_bytes"], memory["used_bytes"]) == ("unified", None, None)
    assert (memory["shared_total_bytes"], memory["shared_used_bytes"]) == (32 * GIB, 64 * MIB)
    (row,) = document["processes"]
    assert (row["vram_bytes"], row["spill_bytes"]) == (None, 7 * MIB + 512 * 1024)
    assert source(document, row, "vram_bytes") == "null:unified-memory"


def test_xe_reads_its_own_folders(tmp_path: Path) -> None:
    more = "".join(
        f"--- {PATH}/{name}\n{value}\n"
        for name, value in {
            "tile0/gt0/freq0/act_freq": 2400,
            "tile0/gt0/freq0/throttle/status": 1,
            "tile0/gt0/freq0/throttle/reason_thermal": 1,
            "tile0/gt0/freq0/throttle/reason_pl1": 0,
            "hwmon/hwmon2/temp2_label": "pkg",
            "hwmon/hwmon2/temp2_input": 61000,
            "hwmon/hwmon2/temp3_label": "vram",
            "hwmon/hwmon2/temp3_input": 64000,
            "hwmon/hwmon2/energy1_label": "card",
            "hwmon/hwmon2/energy1_input": 9000000,
            "hwmon/hwmon2/energy2_label": "pkg",
            "hwmon/hwmon2/energy2_input": 5000000,
        }.items()
    )
    found = adapter(arc(tmp_path, "xe", xe_blob((LOCAL, GIB, 1)), more))
    assert found["clocks"] == {"graphics_mhz": 2400, "memory_mhz": None, "throttle_reasons": ["thermal"]}
    assert (found["temperature"]["gpu_celsius"], found["temperature"]["memory_celsius"]) == (61, 64)
    assert found["power"]["energy_joules"] == 9
    assert found["health"] == "degraded"


def test_a_containers_own_groups_are_not_the_card(tmp_path: Path) -> None:
    """dmem.current stands in every group but the root (kernel/cgroup/dmem.c): where it does, a container looks."""
    here = "--- sys/fs/cgroup/dmem.current\ndrm/0000:03:00.0/vram0 5000\n"
    below = "--- sys/fs/cgroup/system.slice/dmem.current\ndrm/0000:03:00.0/vram0 3000\n"
    tree = card(driver="xe", vendor="8086", device="56a0", status="suspended")
    inside = snapshot(host_of(tmp_path / "in", tree + here + below))
    outside = snapshot(host_of(tmp_path / "out", tree + below))
    assert adapter(inside)["memory"]["used_bytes"] is None
    assert adapter(outside)["memory"]["used_bytes"] == 3000
