"""`explain GPU` of an amdgpu card: the part of its memory that the processor reaches, beside the document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.snapping import run_gpusnap
from tests.unit.drm.kit import GIB, MIB, amdgpu, card, host_of


def figures(folder: Path, tree: str) -> dict[str, tuple[Any, str]]:
    host_of(folder, tree)
    document = json.loads(run_gpusnap("explain", "gpu:0", "--replay", str(folder), "--json").stdout)
    return {
        figure["field"]: (figure["value"], figure["provenance"])
        for figure in document["figures"]
        if figure["field"].startswith("visible_")
    }


def visible(total: object, used: object) -> dict[str, Any]:
    return amdgpu(mem_info_vis_vram_total=total, mem_info_vis_vram_used=used)


@pytest.mark.parametrize("status", ["active", "suspended"])
def test_without_a_resizable_bar_it_is_256_mib(tmp_path: Path, status: str) -> None:
    """The driver's books: a sleeping card keeps them, and reading them wakes nothing."""
    found = figures(tmp_path, card(files=visible(256 * MIB, 250 * MIB), status=status))
    assert found == {
        "visible_total_bytes": (256 * MIB, "measured:sysfs.mem_info_vis_vram_total"),
        "visible_used_bytes": (250 * MIB, "measured:sysfs.mem_info_vis_vram_used"),
    }


def test_more_used_than_there_is_is_no_figure(tmp_path: Path) -> None:
    found = figures(tmp_path, card(files=visible(256 * MIB, 16 * GIB)))
    value, provenance = found["visible_used_bytes"]
    assert value is None
    assert provenance == f"null:out-of-range sysfs.mem_info_vis_vram_used says {16 * GIB} of {256 * MIB}"


def test_a_kernel_without_the_files_says_so(tmp_path: Path) -> None:
    found = figures(tmp_path, card(files=amdgpu()))
    assert found["visible_total_bytes"] == (None, "null:not-exposed sysfs.mem_info_vis_vram_total")


def test_another_drivers_card_has_no_such_figures(tmp_path: Path) -> None:
    assert figures(tmp_path, card(driver="i915", vendor="8086", device="56a0")) == {}
