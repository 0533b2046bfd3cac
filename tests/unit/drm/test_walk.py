"""The walk over /proc: what it opens, whom it counts as unreadable, what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusnap.captured_tree import CapturedTree
from gpusnap.collect.drm_walk import walk
from tests.unit.drm.kit import (
    BASE,
    adapter,
    amd_client,
    amdgpu,
    card,
    client,
    host_of,
    process,
    row,
    snapshot,
    source,
)

NODE = "/dev/dri/renderD128"
AMD = client(7, resident_vram="1 MiB", shared_vram="0", resident_gtt="0")
KTHREAD = "--- proc/2/stat\n2 (kthreadd) S 0 0 0 0 -1 2129984" + " 0" * 12 + " 5 0 0\n--- proc/2/fd !EACCES\n"
ZOMBIE = "--- proc/44/stat\n44 (gone) Z 1 44 44 0 -1 4194560" + " 0" * 12 + " 5 0 0\n--- proc/44/fd !EACCES\n"


def test_only_hits_have_their_fdinfo_opened(tmp_path: Path) -> None:
    fds = {0: ("/dev/null", ""), 1: ("pipe:[77]", ""), 2: ("/dmabuf:", ""), 3: ("/home/x", ""), 4: (NODE, AMD)}
    host = host_of(tmp_path, card(files=amdgpu()) + process(300, fds))
    snapshot(host)
    assert [path for path in host.opened if "/fdinfo/" in path] == ["proc/300/fdinfo/4"]


def test_report_122_a_process_that_cant_be_looked_into_is_counted(tmp_path: Path) -> None:
    """amdgpu_top#114: KeePassXC is not dumpable, so its own user may not look."""
    tree = card(files=amdgpu(used=5 << 20)) + process(300, {4: (NODE, AMD)}) + "--- proc/400/fd !EACCES\n"
    document = snapshot(host_of(tmp_path, tree))
    found = adapter(document)
    assert (found["processes_listed"], found["unreadable_pids"]) == ("partial", 1)
    assert found["accounting"]["unattributed_bytes"] == 4 << 20


def test_an_fdinfo_that_is_denied_leaves_a_row_without_figures(tmp_path: Path) -> None:
    tree = card(files=amdgpu()) + f"--- proc/300/fd/4 -> {NODE}\n--- proc/300/fdinfo/4 !EACCES\n"
    document = snapshot(host_of(tmp_path, tree))
    assert source(document, row(document, 300), "vram_bytes").startswith("null:no-permission")
    assert adapter(document)["accounting"]["unmeasured_processes"] == 1


def test_a_descriptor_that_was_closed_meanwhile_is_no_row(tmp_path: Path) -> None:
    document = snapshot(host_of(tmp_path, card(files=amdgpu()) + f"--- proc/300/fd/4 -> {NODE}\n"))
    assert document["processes"] == []


def test_kernel_threads_and_zombies_are_not_unreadable_processes_before_linux_6_2(tmp_path: Path) -> None:
    tree = KTHREAD + ZOMBIE + "--- proc/999/fd/ dir size=0\n--- proc/55/fd !EACCES\n"
    assert walk(host_of(tmp_path, tree)).unreadable == 1


def test_a_folder_of_size_zero_is_not_opened_where_the_kernel_counts_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    original = CapturedTree.links

    def links(self: CapturedTree, path: str) -> list[tuple[str, str]]:
        listed.append(path)
        return original(self, path)

    monkeypatch.setattr(CapturedTree, "links", links)
    host = host_of(tmp_path, "--- proc/2/fd/ dir size=0\n" + process(300, {4: (NODE, AMD)}))
    walk(host)
    assert sorted(listed) == ["1/fd", "300/fd", "999/fd"]
    listed.clear()
    older = host_of(tmp_path / "older", "--- proc/2/fd/ dir size=0\n--- proc/999/fd/ dir size=0\n")
    walk(older)
    assert "2/fd" in listed


@pytest.mark.parametrize("driver", ["nouveau", "radeon", "nvidia", "virtio_gpu", "lima"])
def test_drm_37_no_walk_where_no_bound_driver_has_fdinfo(
    tmp_path: Path, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """btop PR1552: every process's descriptors were read on NVIDIA machines for nothing."""
    host = host_of(tmp_path, card(driver=driver, vendor="10de", device="2684") + process(300, {4: (NODE, AMD)}))

    def links(self: CapturedTree, path: str) -> list[tuple[str, str]]:
        raise AssertionError(f"walked into {path}")

    monkeypatch.setattr(CapturedTree, "links", links)
    document = snapshot(host)
    assert document["processes"] is None
    assert document["adapters"][0]["processes_listed"] == "unavailable"


def test_no_walk_without_processes(tmp_path: Path) -> None:
    host = host_of(tmp_path, card(files=amdgpu()) + process(300, {4: (NODE, AMD)}))
    document = snapshot(host, processes=False)
    assert [path for path in host.opened if path.startswith("proc/300")] == []
    assert source(document, adapter(document), "processes_listed").startswith("null:not-requested")


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ("rw,hidepid=2", True),
        ("rw,hidepid=invisible,gid=10", True),
        ("rw,hidepid=ptraceable", True),
        ("rw,hidepid=1", False),
        ("rw,hidepid=noaccess", False),
        ("rw,nosuid", False),
    ],
)
def test_report_005_hidden_processes_are_told(tmp_path: Path, options: str, hidden: bool) -> None:
    """telegraf#15698: hidepid=2, and the monitor said that nothing runs."""
    tree = (
        card(files=amdgpu())
        + process(300, {4: (NODE, AMD)})
        + f"--- proc/self/mounts\nproc /proc proc {options} 0 0\n"
    )
    host = host_of(tmp_path, tree)
    host.overlay({"proc/1/fd/0": None})
    document = snapshot(host)
    found = adapter(document)
    assert found["processes_listed"] == ("partial" if hidden else "complete")
    assert found["unreadable_pids"] == (None if hidden else 0)
    assert [w["code"] for w in document["warnings"]] == (["hidepid"] if hidden else [])


def test_hidepid_hides_nothing_from_who_sees_pid_1(tmp_path: Path) -> None:
    """root, and the members of the mount's gid."""
    tree = card(files=amdgpu()) + "--- proc/self/mounts\nproc /proc proc rw,hidepid=2 0 0\n"
    assert adapter(snapshot(host_of(tmp_path, tree)))["processes_listed"] == "complete"


def test_drm_28_nobody_can_be_looked_into(tmp_path: Path) -> None:
    """nvtop#287, flatpak#3922: a sandbox denies every fd folder; an empty list would be a lie."""
    tree = card(files=amdgpu()) + "--- proc/77/fd !EACCES\n"
    host = host_of(tmp_path, tree)
    host.overlay({"proc/1/fd/0": None})
    document = snapshot(host)
    assert adapter(document)["processes_listed"] == "unavailable"
    assert source(document, adapter(document), "processes_listed").startswith("null:no-permission")
    assert document["processes"] is None


def test_hidden_from_everyone_the_list_is_unavailable_and_says_so(tmp_path: Path) -> None:
    tree = card(files=amdgpu()) + "--- proc/self/mounts\nproc /proc proc rw,hidepid=2 0 0\n"
    host = host_of(tmp_path, tree)
    host.overlay({"proc/1/fd/0": None})
    document = snapshot(host)
    assert source(document, adapter(document), "processes_listed") == "null:no-permission hidepid"


def test_a_proc_that_cant_be_listed_costs_the_list_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_of(tmp_path, card(files=amdgpu(gpu_busy_percent=5)))
    original = CapturedTree.listdir

    def listdir(self: CapturedTree, path: str) -> list[str]:
        if path == "":
            raise PermissionError(13, "Permission denied")
        return original(self, path)

    monkeypatch.setattr(CapturedTree, "listdir", listdir)
    document = snapshot(host)
    assert adapter(document)["load"]["gpu_percent"] == 5
    assert source(document, adapter(document), "processes_listed") == "null:no-permission proc: EACCES"


def test_drm_39_a_node_under_another_name_is_found_by_its_number(tmp_path: Path) -> None:
    """homelab-monitor PR247: `docker run --device /dev/dri/renderD128:/dev/gpu0`; bytes without a unit."""
    raw = client(7, resident_vram="4097", shared_vram="0", resident_gtt="0")
    tree = card(files=amdgpu()) + process(300, {4: ("/dev/gpu0", raw), 5: ("/dev/gpu9", raw)})
    tree += "--- root/dev/gpu0 rdev=226:128\n--- root/dev/gpu9 rdev=10:1\n"
    assert row(snapshot(host_of(tmp_path, tree)), 300)["vram_bytes"] == 4097


def test_the_number_of_a_node_counts_more_than_its_name(tmp_path: Path) -> None:
    other = "0000:07:00.0"
    tree = card(files=amdgpu()) + card(other, 1, files=amdgpu())
    tree += process(300, {4: ("/dev/dri/renderD128", amd_client(7, "1 MiB", pdev=None))})
    tree += "--- root/dev/dri/renderD128 rdev=226:129\n"
    document = snapshot(host_of(tmp_path, tree))
    assert [r["adapter"] for r in document["processes"]] == [f"pci:{other}"]


def test_drm_24_the_client_names_its_card(tmp_path: Path) -> None:
    """nvtop#209: a process of the second card shown on the first."""
    other = "0000:07:00.0"
    tree = card(files=amdgpu()) + card(other, 1, files=amdgpu())
    tree += process(
        300, {4: (NODE, client(7, pdev=other, resident_vram="9 MiB", shared_vram="0", resident_gtt="0"))}
    )
    document = snapshot(host_of(tmp_path, tree))
    assert [(r["adapter"], r["vram_bytes"]) for r in document["processes"]] == [(f"pci:{other}", 9 << 20)]


def test_an_npu_without_keys_has_a_row_without_figures(tmp_path: Path) -> None:
    """Report drm 33 and 34: major 261 (resources PR583); amdxdna of Linux 6.14 prints no key (amdgpu_top#120)."""
    path = "devices/pci0000:00/0000:c6:00.1"
    tree = (
        f"--- sys/class/accel/accel0 -> ../../{path}/accel/accel0\n--- sys/{path}/vendor\n0x1022\n"
        f"--- sys/{path}/device\n0x17f0\n--- sys/{path}/driver -> ../../../bus/pci/drivers/amdxdna\n"
        f"--- proc/300/fd/4 -> /dev/accel/accel0\n--- proc/300/fdinfo/4\n{BASE}"
    )
    document = snapshot(host_of(tmp_path, tree + process(300)))
    npu = adapter(document, "0000:c6:00.1")
    assert (npu["kind"], npu["index"], npu["vendor"]) == ("npu", 0, "amd")
    found = row(document, 300, "0000:c6:00.1")
    assert found["spill_bytes"] is None
    assert source(document, found, "spill_bytes") == "null:not-exposed no drm keys in fdinfo"


def test_a_card_that_was_pulled_out_leaves_its_holder(tmp_path: Path) -> None:
    tree = card(files=amdgpu()) + process(300, {4: ("/dev/dri/renderD130 (deleted)", "")})
    document = snapshot(host_of(tmp_path, tree))
    assert document["processes"] == []
    assert [(w["code"], w["pid"]) for w in document["warnings"]] == [("device-removed", 300)]


def test_a_new_card_does_not_take_over_the_deleted_node_of_an_old_one(tmp_path: Path) -> None:
    tree = card(files=amdgpu()) + process(300, {4: (NODE + " (deleted)", "")})
    assert snapshot(host_of(tmp_path, tree))["processes"] == []


def test_amdgpus_memory_keys_are_asked_for_twice_before_they_are_missed(tmp_path: Path) -> None:
    """Up to Linux 6.12 fdinfo leaves them out while another thread holds the lock."""
    bare = client(7, engine_gfx="5 ns")
    host = host_of(tmp_path, card(files=amdgpu()) + process(300, {4: (NODE, bare)}))
    document = snapshot(host)
    assert host.opened.count("proc/300/fdinfo/4") == 2
    assert source(document, row(document, 300), "vram_bytes").startswith("null:device-busy")
