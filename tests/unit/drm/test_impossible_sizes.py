"""Sizes that no driver should give: none becomes a figure, and the raw number is told."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.unit.drm.kit import GIB, MIB, adapter, amdgpu, card, client, host_of, process, row, snapshot, source


@pytest.mark.parametrize(
    "text",
    [
        "18446744073709551615",
        "18014398509481980 KiB",  # a counter that went 4 MiB below 0
        "9007199254740992",
    ],
)
def test_a_size_that_cant_be_is_out_of_range_and_told(tmp_path: Path, text: str) -> None:
    """It is a number: no unknown format. The contract keeps the raw number in a warning."""
    info = client(3, resident_vram=text, shared_vram="0", resident_gtt="1 MiB", resident_cpu="0")
    tree = card(files=amdgpu()) + process(300, {4: ("/dev/dri/renderD128", info)})
    document = snapshot(host_of(tmp_path, tree))
    found = row(document, 300)
    assert (found["vram_bytes"], found["spill_bytes"]) == (None, MIB)
    assert source(document, found, "vram_bytes") == "null:out-of-range"
    (told,) = [w for w in document["warnings"] if w["code"] == "out-of-range"]
    assert (told["pid"], told["message"]) == (300, f"vram_bytes: fdinfo.drm-resident-vram says {text}")


@pytest.mark.parametrize("number", [2**64 - 1, 2**53])
@pytest.mark.parametrize(("driver", "query"), [("i915", 4), ("xe", 1)])
def test_a_card_of_all_ones_has_no_known_size(tmp_path: Path, driver: str, query: int, number: int) -> None:
    """The -1 that i915_drm.h and xe_drm.h keep for a size that is not known."""
    header = struct.pack("<I12x" if driver == "i915" else "<I4x", 2)
    blob = header + b"".join(struct.pack("<HHIQQ64x", kind, 0, 0, number, 5) for kind in (0, 1))
    ioctls = {f"dev/dri/renderD128 {driver}.query.{query}": {"hex": blob.hex()}}
    document = snapshot(host_of(tmp_path, card(driver=driver, vendor="8086", device="56a0"), ioctls=ioctls))
    memory = adapter(document)["memory"]
    assert (memory["total_bytes"], memory["used_bytes"], memory["shared_total_bytes"]) == (None, None, None)
    assert source(document, adapter(document), "memory.total_bytes") == "null:out-of-range"


@pytest.mark.parametrize("number", [2**64 - 1, 2**53])
def test_a_group_of_all_ones_has_no_known_size(tmp_path: Path, number: int) -> None:
    dmem = f"--- sys/fs/cgroup/dmem.capacity\ndrm/0000:03:00.0/vram0 {number}\n"
    dmem += f"--- sys/fs/cgroup/a.slice/dmem.current\ndrm/0000:03:00.0/vram0 {number}\n"
    document = snapshot(host_of(tmp_path, card(driver="xe", vendor="8086", device="56a0") + dmem))
    assert source(document, adapter(document), "memory.total_bytes") == "null:out-of-range"
    assert source(document, adapter(document), "memory.used_bytes") == "null:out-of-range"


@pytest.mark.parametrize("number", [2**64 - 1, 2**53])
def test_a_partition_of_all_ones_has_no_known_size(tmp_path: Path, number: int) -> None:
    nodes = "".join(
        f"--- sys/class/kfd/kfd/topology/nodes/{place}/gpu_id\n{place}7\n"
        f"--- sys/class/kfd/kfd/topology/nodes/{place}/properties\nlocation_id 768\ndomain 0\n"
        f"drm_render_minor {127 + place}\n"
        f"--- sys/class/kfd/kfd/topology/nodes/{place}/mem_banks/0/properties\nsize_in_bytes {size}\n"
        for place, size in ((1, number), (2, 24 * GIB))
    )
    document = snapshot(host_of(tmp_path, card(files=amdgpu()) + nodes))
    parts = [found for found in document["adapters"] if found["kind"] == "partition"]
    assert [part["memory"]["total_bytes"] for part in parts] == [None, 24 * GIB]
    assert source(document, parts[0], "memory.total_bytes") == "null:out-of-range"
