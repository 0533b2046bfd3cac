"""Engine counters that one sample lacks, or that are all ones: no load is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.drm.kit import adapter, amdgpu, card, client, host_of, process, row, snapshot

NODE = "/dev/dri/renderD128"
SIZES = {"resident_local0": "0", "shared_local0": "0", "resident_system0": "0"}
IDLE_AMD = client(3, resident_vram="0", shared_vram="0", resident_gtt="0", resident_cpu="0")
WITHOUT = client(3, "i915", **SIZES)


def busy(nanoseconds: object) -> str:
    return client(3, "i915", **SIZES, engine_render=f"{nanoseconds} ns")


def cycles(spent: int, total: int) -> str:
    sizes = {"resident_vram0": "0", "shared_vram0": "0", "resident_gtt": "0"}
    return client(3, "xe", **sizes, cycles_rcs=str(spent), total_cycles_rcs=str(total))


def intel(folder: Path, first: str, second: str, driver: str = "i915") -> tuple[dict[str, Any], dict[str, Any]]:
    """(the process's row, the document) of one client on a discrete card in a window of half a second."""
    tree = card(driver=driver, vendor="8086", device="56a0") + process(300, {4: (NODE, first)})
    document = snapshot(host_of(folder, tree, f"--- proc/300/fdinfo/4\n{second}"), window=0.5)
    return row(document, 300), document


@pytest.mark.parametrize(
    ("first", "second"), [(2**64 - 1, 2**64 - 1), (5, 2**64 - 1), (2**64 - 1, 5), (2**63, 2**63 + 5)]
)
def test_an_engine_counter_of_all_ones_is_no_counter(tmp_path: Path, first: int, second: int) -> None:
    """Taken for one it would show 0 % for ever: the larger of two readings stands."""
    found, _ = intel(tmp_path, busy(first), busy(second))
    assert (found["engines_percent"]["graphics"], found["gpu_percent"]) == (None, None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((5, 5), (5, 2**64 - 1)),  # 0.0 %
        ((5, 5), (2**64 - 1, 2**64 - 1)),  # 100 %
        ((2**64 - 1, 5), (2**64 - 1, 1000)),
    ],
)
def test_cycles_of_all_ones_are_no_cycles(tmp_path: Path, first: tuple[int, int], second: tuple[int, int]) -> None:
    found, _ = intel(tmp_path, cycles(*first), cycles(*second), "xe")
    assert (found["engines_percent"]["graphics"], found["gpu_percent"]) == (None, None)


def test_the_raw_counter_is_told(tmp_path: Path) -> None:
    _, document = intel(tmp_path, busy(5), busy(2**64 - 1))
    told = [w["message"] for w in document["warnings"] if w["code"] == "out-of-range" and w["pid"] == 300]
    assert told == ["gpu_percent: fdinfo.drm-engine-render says 18446744073709551615"]


@pytest.mark.parametrize(
    ("first", "second"), [(WITHOUT, busy(100_000_000)), (busy(100_000_000), WITHOUT), (busy("many"), busy(1000))]
)
def test_an_engine_that_one_sample_lacks_has_no_load(tmp_path: Path, first: str, second: str) -> None:
    """Only amdgpu leaves an engine out while it has not run; elsewhere its total would pass for the window's."""
    found, document = intel(tmp_path, first, second)
    assert (found["engines_percent"]["graphics"], found["gpu_percent"]) == (None, None)
    assert adapter(document)["load"]["gpu_percent"] is None


@pytest.mark.parametrize("second", [(500, 1000), (0, 1000)])
def test_cycles_that_the_first_sample_lacks_give_no_load(tmp_path: Path, second: tuple[int, int]) -> None:
    found, _ = intel(tmp_path, cycles(0, 0).replace("drm-cycles", "drm-cyc"), cycles(*second), "xe")
    assert found["engines_percent"]["graphics"] is None


def amd(folder: Path, first: str, second: str) -> dict[str, Any]:
    tree = card(files=amdgpu()) + process(300, {4: (NODE, first)})
    return row(snapshot(host_of(folder, tree, f"--- proc/300/fdinfo/4\n{second}"), window=0.5), 300)


def test_amdgpus_engine_that_begins_within_the_window_is_busy_from_then(tmp_path: Path) -> None:
    found = amd(tmp_path, IDLE_AMD, f"{IDLE_AMD}drm-engine-gfx:\t100000000 ns\n")
    assert found["engines_percent"]["graphics"] == 20.0


def test_amdgpus_engine_that_vanishes_is_not_less_than_idle(tmp_path: Path) -> None:
    """It was -20 %."""
    found = amd(tmp_path, f"{IDLE_AMD}drm-engine-gfx:\t100000000 ns\n", IDLE_AMD)
    assert found["engines_percent"]["graphics"] is None
