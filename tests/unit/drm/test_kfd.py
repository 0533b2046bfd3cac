"""ROCm's books beside fdinfo: the two overlap and are never added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.drm.kit import GIB, MIB, adapter, amdgpu, card, client, host_of, process, row, snapshot, source

NODE, KFD = "/dev/dri/renderD128", ("/dev/kfd", "")
TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"


def node(number: int = 1, gpu_id: int = 42700, location: int = 0x0300, minor: int = 128) -> str:
    return (
        f"--- {TOPOLOGY}/{number}/gpu_id\n{gpu_id}\n--- {TOPOLOGY}/{number}/properties\nsimd_count 480\n"
        f"location_id {location}\ndomain 0\ndrm_render_minor {minor}\n"
    )


def charge(pid: int, size: int, gpu_id: int = 42700) -> str:
    return f"--- sys/class/kfd/kfd/proc/{pid}/vram_{gpu_id}\n{size}\n"


def amd(size: str, gtt: str = "0") -> str:
    return client(7, resident_vram=size, shared_vram="0", resident_gtt=gtt)


def test_fdinfo_is_the_headline_and_kfd_is_not_added(tmp_path: Path) -> None:
    tree = (
        card(files=amdgpu())
        + node()
        + charge(300, 1000 * MIB)
        + process(300, {4: (NODE, amd("1010 MiB")), 5: KFD})
    )
    document = snapshot(host_of(tmp_path, tree))
    assert row(document, 300)["vram_bytes"] == 1010 * MIB
    assert adapter(document)["accounting"]["attributed_bytes"] == 1010 * MIB
    assert document["warnings"] == []


def test_kfd_stands_in_for_a_process_that_cant_be_looked_into(tmp_path: Path) -> None:
    """Its files are world-readable (kfd_process.c)."""
    tree = card(files=amdgpu()) + node() + charge(400, 2 * GIB) + process(400) + "--- proc/400/fd !EACCES\n"
    document = snapshot(host_of(tmp_path, tree))
    found = row(document, 400)
    assert (found["vram_bytes"], found["spill_bytes"], found["type"]) == (2 * GIB, None, "compute")
    assert source(document, found, "vram_bytes") == "measured:kfd.vram"
    assert adapter(document)["processes_listed"] == "partial"


def test_report_013_a_source_that_does_not_fill_a_field_gives_no_zero(tmp_path: Path) -> None:
    """rocm_smi_lib#165: the list call says 0 by design; fdinfo without memory keys says nothing, KFD does."""
    bare = client(7, engine_gfx="5 ns")
    tree = card(files=amdgpu(total=32 * GIB, used=16 * GIB)) + node() + charge(300, 15 * GIB)
    document = snapshot(host_of(tmp_path, tree + process(300, {4: (NODE, bare), 5: KFD})))
    assert row(document, 300)["vram_bytes"] == 15 * GIB
    assert source(document, row(document, 300), "vram_bytes") == "measured:kfd.vram"


def test_report_032_who_only_opened_kfd_is_no_gpu_process(tmp_path: Path) -> None:
    """ROCm#4411: a row with 0 0 0."""
    tree = card(files=amdgpu()) + node() + charge(400, 0) + process(400, {5: KFD})
    assert snapshot(host_of(tmp_path, tree))["processes"] == []


def test_drm_31_a_process_without_a_file_for_a_card_has_no_row_there(tmp_path: Path) -> None:
    """ROCm#3002: it sees only some GPUs."""
    other = "0000:07:00.0"
    tree = card(files=amdgpu()) + card(other, 1, files=amdgpu()) + node() + node(2, 53211, 0x0700, 129)
    document = snapshot(host_of(tmp_path, tree + charge(400, GIB, 53211) + process(400)))
    assert [(r["adapter"], r["vram_bytes"]) for r in document["processes"]] == [(f"pci:{other}", GIB)]


def test_drm_32_load_of_user_queues_is_not_in_fdinfo(tmp_path: Path) -> None:
    """amdgpu_top#49."""
    tree = card(files=amdgpu()) + node() + charge(300, GIB) + process(300, {4: (NODE, amd("1 GiB")), 5: KFD})
    document = snapshot(host_of(tmp_path, tree), window=0.25)
    found = row(document, 300)
    assert found["engines_percent"]["graphics"] == 0.0
    assert found["engines_percent"]["compute"] is None
    assert source(document, found, "gpu_percent").startswith("null:not-exposed ROCm's user queues")
    assert source(document, adapter(document), "load.engines_percent.compute").startswith("null:not-exposed ROCm")


def test_managed_memory_stands_in_kfd_only_and_both_are_told(tmp_path: Path) -> None:
    tree = card(files=amdgpu(total=16 * GIB, used=9 * GIB)) + node() + charge(300, 8 * GIB)
    document = snapshot(host_of(tmp_path, tree + process(300, {4: (NODE, amd("1024 MiB", "16 MiB")), 5: KFD})))
    assert row(document, 300)["vram_bytes"] == GIB
    (note,) = document["warnings"]
    assert (note["code"], note["pid"], note["adapter"]) == ("kfd-differs", 300, "pci:0000:03:00.0")
    assert str(8 * GIB) in note["message"]
    assert str(GIB + 16 * MIB) in note["message"]


def test_on_an_apu_kfd_cant_tell_carve_out_from_system_memory(tmp_path: Path) -> None:
    """Allocations flagged VRAM live in GTT there."""
    files = amdgpu(total=512 * MIB, used=100 * MIB)
    files["hwmon/hwmon0/in1_label"] = "vddnb"
    tree = card(files=files) + node() + charge(400, 24 * GIB) + process(400) + "--- proc/400/fd !EACCES\n"
    document = snapshot(host_of(tmp_path, tree))
    assert source(document, row(document, 400), "vram_bytes").startswith(
        f"null:ambiguous kfd.vram says {24 * GIB}"
    )
    assert adapter(document)["accounting"]["attributed_bytes"] == 0


@pytest.mark.parametrize(
    ("local_user", "vram", "reason"),
    [(False, 2 * GIB, "measured:kfd.vram"), (True, None, "null:other-pid-namespace")],
)
def test_drm_30_kfds_pids_are_the_hosts(tmp_path: Path, local_user: bool, vram: int | None, reason: str) -> None:
    """rocm-systems PR3752. In a container a process that uses ROCm here may be the one that KFD names otherwise:
    counted twice it would be more than the card holds."""
    tree = card(files=amdgpu()) + node() + charge(48211, 2 * GIB) + "--- proc/self/ns/pid -> pid:[4026532999]\n"
    fds = {4: (NODE, amd("2048 MiB"))}
    tree += process(7, {**fds, 5: KFD} if local_user else fds)
    document = snapshot(host_of(tmp_path, tree))
    found = row(document, 48211)
    assert (found["vram_bytes"], found["pid_namespace"], found["name"]) == (vram, "host", None)
    assert source(document, found, "vram_bytes").startswith(reason)
    assert row(document, 7)["vram_bytes"] == 2 * GIB


@pytest.mark.parametrize("text", ["", "12", "lots\n", "-5\n"])
def test_a_torn_kfd_file_costs_its_own_figure(tmp_path: Path, text: str) -> None:
    tree = card(files=amdgpu()) + node() + process(400) + "--- proc/400/fd !EACCES\n"
    host = host_of(tmp_path, tree + charge(400, 5))
    entry = host.entries["sys/class/kfd/kfd/proc/400/vram_42700"]
    entry.data = text.encode()
    document = snapshot(host)
    assert row(document, 400)["vram_bytes"] is None


def test_cpu_nodes_and_hidden_nodes_are_passed_over(tmp_path: Path) -> None:
    tree = f"--- {TOPOLOGY}/0/gpu_id\n0\n--- {TOPOLOGY}/0/properties\ncpu_cores_count 32\n"
    tree += f"--- {TOPOLOGY}/2/gpu_id\n77\n--- {TOPOLOGY}/2/properties !EPERM\n"
    document = snapshot(host_of(tmp_path, card(files=amdgpu()) + tree + node() + charge(400, GIB) + process(400)))
    assert [r["pid"] for r in document["processes"]] == [400]
