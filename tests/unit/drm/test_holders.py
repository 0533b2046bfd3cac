"""`--holders` for /dev/dri, /dev/accel and /dev/kfd: what `fuser -v` would show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.captured_tree import Entry
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions

MACHINES = Path(__file__).parents[2] / "machines"


@pytest.mark.parametrize(
    ("machine", "adapter", "expected"),
    [
        (
            "rx7900-desktop-6.14",
            "pci:0000:03:00.0",
            {1: "card1", 1967: "card1", 2300: "card1", 3100: "renderD128", 4711: "renderD128"},
        ),
        ("rpi5-v3d-6.12", "drm-index:0", dict.fromkeys((2390, 2501, 2600, 2700), "renderD128")),
        ("nouveau-gtx1080-6.12", "pci:0000:01:00.0", {1500: "card0"}),
        ("hybrid-xe-sleeping-6.14", "pci:0000:03:00.0", {1400: "renderD129"}),
        ("container-renamed-nodes-6.8", "pci:0000:03:00.0", {7: "renderD128", 8: "renderD128"}),
        ("container-renamed-nodes-6.8", "pci:0000:07:00.0", {}),
        ("mi300x-cpx-6.12", "amdgpu-index:128", {8000: "renderD128"}),
        ("mi300x-cpx-6.12", "amdgpu-index:129", {8001: "renderD129"}),
        ("apu-beside-nvidia-6.11", "pci:0000:0b:00.0", {1800: "card1"}),
    ],
)
def test_who_has_a_node_open(machine: str, adapter: str, expected: dict[int, str]) -> None:
    """The drivers without fdinfo too: who holds nouveau's card is known though its memory is not."""
    document = json.loads(dumps(collect(CapturedHost(MACHINES / machine), CollectOptions(holders=True))))
    row = next(r for r in document["adapters"] if r["id"] == adapter)
    assert {held["pid"]: held["via"] for held in row["holders"]} == {
        pid: f"/dev/dri/{node}" for pid, node in expected.items()
    }


def test_who_has_an_npu_open() -> None:
    document = json.loads(
        dumps(collect(CapturedHost(MACHINES / "meteorlake-i915-6.8"), CollectOptions(holders=True)))
    )
    npu = next(r for r in document["adapters"] if r["kind"] == "npu")
    assert [(held["pid"], held["via"]) for held in npu["holders"]] == [(7100, "/dev/accel/accel0")]


def test_a_process_with_only_kfd_open_is_a_holder() -> None:
    """It is no row of `processes` (ROCm#4411), yet it holds the driver."""
    host = CapturedHost(MACHINES / "rocm-server-6.8")
    host.overlay({"proc/5200/fd": None})
    host.overlay({"proc/5200/fd/7": Entry(target="/dev/kfd")})
    document = json.loads(dumps(collect(host, CollectOptions(holders=True))))
    assert [r for r in document["processes"] if r["pid"] == 5200] == []
    for row in document["adapters"]:
        assert (5200, "/dev/kfd") in [(held["pid"], held["via"]) for held in row["holders"]]
