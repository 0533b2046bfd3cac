"""The ctypes layer over libIOReport, against a small C library with XNU's own element struct."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpusnap.collect.ioreport_energy import energy_of, power_between
from gpusnap.host import Unsupported
from gpusnap.live_ioreport import EnergyReader
from gpusnap.reading import Reading, measured

if sys.platform == "win32":
    pytest.skip("the stand-in is built with cc", allow_module_level=True)

STANDIN = Path(__file__).parents[1] / "standin" / "macos"
# The group, its mutable copy and the lent subscription stay open: what was subscribed, and the subscription.
KEPT = 3


def build(folder: Path, source: str, scenario: int = 0) -> ctypes.CDLL:
    path = folder / f"{Path(source).stem}.so"
    flags = ("-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", str(path), str(STANDIN / source)], check=True)
    library = ctypes.CDLL(str(path))
    if scenario:
        ctypes.c_int.in_dll(library, "scenario").value = scenario
    return library


def held(library: ctypes.CDLL) -> int:
    return ctypes.c_int.in_dll(library, "open_objects").value


def test_two_samples_of_one_subscription_give_watts(tmp_path: Path) -> None:
    """12.5 J more in a second of 24 million ticks; everything that was created is released."""
    library = build(tmp_path, "ioreport.c")
    reader = EnergyReader(library, library, library)
    assert held(library) == KEPT
    first, second = reader.read(), reader.read()
    assert held(library) == KEPT
    assert first == {
        "channels": [
            {"name": "GPU Energy", "unit": "nJ", "value": 5_000_000_000_000, "stamp": 1_000_023_997_600},
            {"name": "GPU0_0", "unit": "mJ", "value": 5_000_000, "stamp": 1_000_015_000_000},
        ],
        "now": 1_000_024_000_000,
        "numer": 125,
        "denom": 3,
    }
    watts = power_between(energy_of(first), energy_of(second), measured(78, "ioreg"))
    assert watts == Reading(12.5, "computed:ioreport.GPU Energy")


@pytest.mark.parametrize(("scenario", "why"), [(1, "no group Energy Model"), (2, "no subscription")])
def test_a_virtual_machine_has_no_such_group(tmp_path: Path, scenario: int, why: str) -> None:
    library = build(tmp_path, "ioreport.c", scenario)
    with pytest.raises(Unsupported, match=why):
        EnergyReader(library, library, library)
    assert held(library) == 0


@pytest.mark.parametrize("scenario", [3, 4])
def test_an_element_of_another_layout_times_nothing(tmp_path: Path, scenario: int) -> None:
    library = build(tmp_path, "ioreport.c", scenario)
    reader = EnergyReader(library, library, library)
    raw: dict[str, Any] = reader.read()
    assert [row["stamp"] for row in raw["channels"]] == [None, None]
    assert power_between(energy_of(raw), energy_of(reader.read()), measured(78, "ioreg")).value is None


def test_a_sample_that_fails_is_an_error(tmp_path: Path) -> None:
    library = build(tmp_path, "ioreport.c", 5)
    with pytest.raises(OSError, match="IOReportCreateSamples"):
        EnergyReader(library, library, library).read()


def test_a_library_without_its_functions_is_unsupported(tmp_path: Path) -> None:
    library = build(tmp_path, "libsystem.c")
    with pytest.raises(Unsupported, match="IOReportCopyChannelsInGroup"):
        EnergyReader(library, library, library)
