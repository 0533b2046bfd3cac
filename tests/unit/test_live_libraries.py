"""The ctypes layers for Windows and macOS, against small C libraries with the headers' own structs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpusnap.host import Unsupported

if sys.platform == "win32":
    pytest.skip("the stand-ins are built with cc", allow_module_level=True)

STANDIN = Path(__file__).parents[1] / "standin"
MEMORY = "\\GPU Process Memory(*)\\Local Usage"
ENGINES = "\\GPU Engine(*)\\Utilization Percentage"
LUID = "_luid_0x00000000_0x0001D6F4_phys_0"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("libraries")

    def built(name: str) -> ctypes.CDLL:
        library = folder / f"{Path(name).stem}.so"
        if not library.exists():
            flags = ("-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
            command = [os.environ.get("CC", "cc"), *flags, "-o", str(library), str(STANDIN / name)]
            subprocess.run(command, check=True)
        return ctypes.CDLL(str(library))

    return built


def test_one_query_grows_its_buffers_and_copies_the_names(build: Any) -> None:
    from gpusnap.live_pdh import PdhQuery

    query = PdhQuery(build("windows/pdh.c"))
    first = query.collect()["counters"]
    assert first[MEMORY] == [[f"pid_4242{LUID}", 0, 5368709120], [f"pid_4243{LUID}", 1, 5368709121]]
    # The array grew between the call for its size and the one that fills it.
    second = query.collect()["counters"]
    assert [row[0] for row in second[MEMORY]] == [f"pid_{pid}{LUID}" for pid in (4242, 4243, 4244)]
    assert first[MEMORY][0][0] == f"pid_4242{LUID}"  # outlives its buffer
    query.close()


def test_shares_need_two_collections_and_statuses_are_unsigned(build: Any) -> None:
    from gpusnap.live_pdh import PdhQuery

    query = PdhQuery(build("windows/pdh.c"))
    assert query.collect()["counters"][ENGINES] == {"error": 0xC0000BC6}
    rows = query.collect()["counters"][ENGINES]
    # A value above 100 comes as it is; one without a first sample and NaN are null.
    assert rows == [
        [f"pid_4242{LUID}_eng_0_engtype_3D", 0, 51.25],
        [f"pid_4243{LUID}_eng_0_engtype_3D", 0xC0000BBA, None],
        [f"pid_4244{LUID}_eng_0_engtype_3D", 0, None],
    ]


def test_a_counter_that_a_system_lacks_takes_nothing_from_the_others(build: Any) -> None:
    from gpusnap.live_pdh import PdhQuery

    counters = PdhQuery(build("windows/pdh.c")).collect()["counters"]
    assert counters["\\GPU Process Memory(*)\\Shared Usage"] == {"error": 0xC0000BB9}
    assert len(counters[MEMORY]) == 2


def test_no_gpu_counters_at_all(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusnap.live_pdh import PdhQuery

    monkeypatch.setenv("PDH_NO_OBJECT", "1")
    counters = PdhQuery(build("windows/pdh.c")).collect()["counters"]
    assert set(map(str, counters.values())) == {str({"error": 0xC0000BB8})}
    assert len(counters) == 8


def test_an_array_that_grows_for_ever_ends(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusnap.live_pdh import PdhQuery

    monkeypatch.setenv("PDH_GROWS", "1")
    assert PdhQuery(build("windows/pdh.c")).collect()["counters"][MEMORY] == {"error": 0x800007D2}


def test_a_counter_item_is_as_large_as_windows_makes_it() -> None:
    from gpusnap.live_pdh import _Item

    assert ctypes.sizeof(_Item) == 24
    assert (_Item.counter.offset, _Item.name.offset) == (8, 0)


def test_adapters_with_their_places_and_kinds(build: Any) -> None:
    from gpusnap.live_dxgi import graphics_adapters

    library = build("windows/dxgi.c")
    first, second, third = graphics_adapters(library, library, library)
    assert first == {
        "luid": "0x00000000_0x0001d6f4",
        "description": "NVIDIA GeForce RTX 4060",
        "vendor_id": 0x10DE,
        "device_id": 0x2882,
        "dedicated_bytes": 8442085376,
        "shared_bytes": 17066450944,
        "software": False,
        "integrated": False,
        "pci": "0000:01:00.0",
        "driver_version": "32.0.15.6636",
    }
    assert (second["integrated"], second["pci"]) == (True, "0000:65:00.0")
    assert (third["software"], third["integrated"], third["pci"], third["driver_version"]) == (
        True,
        None,
        None,
        None,
    )
    assert ctypes.c_int.in_dll(library, "open_objects").value == 0


def test_without_dxcore_and_gdi_the_adapters_are_still_listed(build: Any) -> None:
    from gpusnap.live_dxgi import graphics_adapters

    bare = build("macos/libsystem.c")  # has none of their functions
    first, *_ = graphics_adapters(build("windows/dxgi.c"), bare, bare)
    assert (first["description"], first["integrated"], first["pci"]) == ("NVIDIA GeForce RTX 4060", None, None)


def test_boot_time_does_not_move_with_the_clock(build: Any) -> None:
    from gpusnap.live_windows import boot_time

    assert boot_time(build("windows/dxgi.c")) == {"boot_time": 134088912000000000}


def test_graphics_footprint_of_an_own_process(build: Any) -> None:
    """claude-code#35804: 7 MB resident at 1.3 GB of footprint."""
    from gpusnap.live_macos import graphics_footprint

    library = build("macos/libsystem.c")
    assert graphics_footprint(501, library) == {
        "graphics_footprint": 1288490189,
        "graphics_footprint_compressed": 4194304,
        "graphics_nofootprint": 65536,
        "graphics_nofootprint_compressed": 0,
    }
    assert ctypes.c_int.in_dll(library, "open_ports").value == 0


def test_other_users_processes_and_old_kernels_give_none(build: Any) -> None:
    from gpusnap.live_macos import graphics_footprint

    library = build("macos/libsystem.c")
    with pytest.raises(PermissionError):
        graphics_footprint(502, library)
    with pytest.raises(Unsupported):
        graphics_footprint(503, library)
    assert ctypes.c_int.in_dll(library, "open_ports").value == 0


def test_libraries_of_other_platforms_are_unsupported_here() -> None:
    from gpusnap.live import LiveHost

    for source, *args in (("pdh",), ("adapters",), ("boot",), ("footprint", 1), ("energy",), ("nothing",)):
        if sys.platform == "linux":
            with pytest.raises(Unsupported):
                LiveHost().raw(source, *args)
