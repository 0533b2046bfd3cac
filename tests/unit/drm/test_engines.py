"""Engine load from two samples: nanoseconds, cycles, capacities, steps back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.drm.kit import amdgpu, card, client, host_of, process, row, snapshot, source

NODE = "/dev/dri/renderD128"
SECOND = 1_000_000_000


def load(tmp_path: Path, before: str, after: str, **options: float) -> dict[str, float | None]:
    """The row's engines after half a second."""
    tree = card(driver="i915", vendor="8086", device="56a0", files={}) + process(300, {5: (NODE, before)})
    second = f"--- proc/300/fdinfo/5\npos:\t0\n{after}"
    document = snapshot(host_of(tmp_path, tree, second), window=options.get("window", 0.5))
    found = row(document, 300)
    return {"gpu": found["gpu_percent"], **found["engines_percent"]}


def i915(**engines: str) -> str:
    return client(3, "i915", resident_local0="1 MiB", shared_local0="0", **engines)


def test_nanoseconds_of_busy_time_over_the_window(tmp_path: Path) -> None:
    before = i915(engine_render=f"{SECOND} ns", engine_copy="0 ns", engine_video="0 ns")
    after = i915(engine_render=f"{SECOND + SECOND // 8} ns", engine_copy="0 ns", engine_video=f"{SECOND // 2} ns")
    assert load(tmp_path, before, after) == {
        "gpu": 25.0,
        "graphics": 25.0,
        "compute": None,
        "copy": 0.0,
        "video_decode": 100.0,
        "video_encode": None,
    }


def test_a_capacity_divides(tmp_path: Path) -> None:
    before = i915(engine_video="0 ns", engine_capacity_video="2")
    after = i915(engine_video=f"{SECOND // 2} ns", engine_capacity_video="2")
    assert load(tmp_path, before, after)["video_decode"] == 50.0


def test_the_gpu_is_as_busy_as_its_busier_engine(tmp_path: Path) -> None:
    before = i915(engine_render="0 ns", engine_compute="0 ns")
    after = i915(engine_render=f"{SECOND // 10} ns", engine_compute=f"{SECOND // 4} ns")
    assert load(tmp_path, before, after)["gpu"] == 50.0


def test_a_counter_that_stepped_back_stands_still(tmp_path: Path) -> None:
    """drm-usage-stats: a reader keeps the larger value."""
    assert load(tmp_path, i915(engine_render="500 ns"), i915(engine_render="400 ns"))["graphics"] == 0.0


def test_a_little_more_than_all_is_all_and_much_more_is_nothing(tmp_path: Path) -> None:
    zero = i915(engine_render="0 ns")
    assert load(tmp_path, zero, i915(engine_render=f"{int(0.515 * SECOND)} ns"))["graphics"] == 100.0
    assert load(tmp_path, zero, i915(engine_render=f"{3 * SECOND} ns"))["graphics"] is None


def test_an_impossible_load_is_told_with_its_raw_number(tmp_path: Path) -> None:
    tree = card(driver="i915", vendor="8086", device="56a0")
    tree += process(300, {5: (NODE, i915(engine_render="0 ns"))})
    second = f"--- proc/300/fdinfo/5\n{i915(engine_render=f'{3 * SECOND} ns')}"
    document = snapshot(host_of(tmp_path, tree, second), window=0.5)
    assert source(document, row(document, 300), "gpu_percent") == "null:out-of-range"
    warned = [w for w in document["warnings"] if w["code"] == "out-of-range" and w["pid"] == 300]
    assert any("600 %" in w["message"] for w in warned)


def test_one_sample_is_no_load(tmp_path: Path) -> None:
    tree = card(driver="i915", vendor="8086", device="56a0")
    document = snapshot(host_of(tmp_path, tree + process(300, {5: (NODE, i915(engine_render="7 ns"))})))
    assert source(document, row(document, 300), "engines_percent.graphics") == "null:needs-two-samples"
    assert source(document, row(document, 300), "gpu_percent") == "null:needs-two-samples"


def test_a_client_that_came_after_the_first_sample_waits_for_its_second(tmp_path: Path) -> None:
    tree = card(driver="i915", vendor="8086", device="56a0") + process(
        300, {5: (NODE, i915(engine_render="7 ns"))}
    )
    late = process(301, {5: (NODE, i915(engine_render="9 ns").replace("id:\t3", "id:\t4"))})
    document = snapshot(host_of(tmp_path, tree, late), window=0.5)
    assert row(document, 300)["gpu_percent"] == 0.0
    assert source(document, row(document, 301), "gpu_percent") == "null:needs-two-samples"


def test_amdgpu_omits_engines_that_never_ran(tmp_path: Path) -> None:
    amd = client(3, resident_vram="1 MiB", shared_vram="0", resident_gtt="0", engine_gfx="5 ns")
    tree = card(files=amdgpu()) + process(300, {5: (NODE, amd)})
    document = snapshot(host_of(tmp_path, tree, f"--- proc/300/fdinfo/5\n{amd}"), window=0.5)
    assert row(document, 300)["engines_percent"] == {
        "graphics": 0.0,
        "compute": 0.0,
        "copy": 0.0,
        "video_decode": 0.0,
        "video_encode": 0.0,
    }


@pytest.mark.parametrize(("spent", "total", "percent"), [(250, 1000, 25.0), (0, 1000, 0.0), (1000, 1000, 100.0)])
def test_xe_counts_cycles_against_a_total(tmp_path: Path, spent: int, total: int, percent: float) -> None:
    def xe(cycles: int, whole: int) -> str:
        return client(
            3, "xe", resident_vram0="0", shared_vram0="0", cycles_rcs=str(cycles), total_cycles_rcs=str(whole)
        )

    tree = card(driver="xe", vendor="8086", device="56a1") + process(300, {5: (NODE, xe(77, 9000))})
    second = f"--- proc/300/fdinfo/5\n{xe(77 + spent, 9000 + total)}"
    document = snapshot(host_of(tmp_path, tree, second), window=0.5)
    assert row(document, 300)["engines_percent"]["graphics"] == percent


def test_a_total_that_did_not_move_gives_no_load(tmp_path: Path) -> None:
    xe = client(3, "xe", resident_vram0="0", shared_vram0="0", cycles_rcs="5", total_cycles_rcs="900")
    tree = card(driver="xe", vendor="8086", device="56a1") + process(300, {5: (NODE, xe)})
    document = snapshot(host_of(tmp_path, tree), window=0.5)
    assert source(document, row(document, 300), "gpu_percent").startswith("null:failed")


def test_a_card_is_as_busy_as_all_its_clients_when_all_could_be_read(tmp_path: Path) -> None:
    ids = {300: 3, 301: 4}
    first = {
        pid: client(n, "i915", resident_local0="0", shared_local0="0", engine_render="0 ns")
        for pid, n in ids.items()
    }
    later = {pid: text.replace("render:\t0", f"render:\t{SECOND // 10}") for pid, text in first.items()}
    tree = card(driver="i915", vendor="8086", device="56a0")
    tree += "".join(process(pid, {5: (NODE, text)}) for pid, text in first.items())
    second = "".join(f"--- proc/{pid}/fdinfo/5\n{text}" for pid, text in later.items())
    document = snapshot(host_of(tmp_path, tree, second), window=0.5)
    card_row = document["adapters"][0]
    assert card_row["load"]["gpu_percent"] == 40.0
    assert card_row["load"]["engines_percent"]["graphics"] == 40.0
    denied = tree + "--- proc/302/fd !EACCES\n"
    document = snapshot(host_of(tmp_path, denied, second), window=0.5)
    assert document["adapters"][0]["load"]["gpu_percent"] is None
    assert source(document, document["adapters"][0], "load.gpu_percent").startswith("null:no-permission")
