"""fdinfo texts, from kernel documentation and public captures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusnap.collect import drm_memory
from gpusnap.collect.drm_fdinfo import parse, parse_size

MIB = 1024**2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("4097", 4097),
        ("23992 KiB", 24_567_808),
        ("16 MiB", 16_777_216),
        ("204800 kB", 209_715_200),
        ("", None),
        ("-1", None),
        ("16 PiB", None),
        ("lots", None),
        ("1.5 MiB", None),
        ("99999999999999999999 MiB", None),
        ("9007199254740992", None),
    ],
)
def test_a_size_is_bytes_kib_or_mib_by_its_alignment(text: str, expected: int | None) -> None:
    assert parse_size(text) == expected


def test_units_may_differ_from_line_to_line() -> None:
    """Documentation/gpu/xe: `16 MiB` beside `23992 KiB`; nvtop's reader loses the first."""
    info = parse(
        b"drm-driver:\txe\ndrm-shared-vram0:\t16 MiB\ndrm-resident-vram0:\t23992 KiB\ndrm-total-gtt:\t0\n"
    )
    assert info.size("shared", "vram0") == 16 * MIB
    assert info.size("resident", "vram0") == 23992 * 1024
    assert info.size("total", "gtt") == 0


def test_keys_that_share_a_prefix_are_told_apart() -> None:
    info = parse(
        b"drm-driver:\txe\ndrm-total-cycles-rcs:\t7655183225\ndrm-cycles-rcs:\t28257900\n"
        b"drm-engine-capacity-vcs:\t2\ndrm-engine-render:\t346249 ns\ndrm-total-memory:\t290 MiB\n"
        b"drm-maxfreq-rcs:\t800000000 Hz\n"
    )
    assert info.total_cycles == {"rcs": 7655183225}
    assert info.cycles == {"rcs": 28257900}
    assert info.capacities == {"vcs": 2}
    assert info.engines == {"render": 346249}
    assert info.regions() == ["memory"]


def test_blanks_before_the_tab_are_stripped() -> None:
    """amdgpu_fdinfo.c prints `drm-memory-gtt: <TAB>8192 KiB`."""
    info = parse(b"drm-driver:\tamdgpu\ndrm-memory-gtt: \t8192 KiB\ndrm-engine-bin: \t5 ns\n")
    assert info.size("memory", "gtt") == 8192 * 1024
    assert info.engines == {"bin": 5}


def test_client_id_zero_is_an_id() -> None:
    """i915's allocator starts at 0 (Linux 5.19 to 6.4)."""
    assert parse(b"drm-client-id:\t0\n").client_id == "0"


def test_a_client_name_may_hold_anything() -> None:
    info = parse(b"drm-client-name:\tdrm-resident-vram: 5 MiB\ndrm-client-id:\t4\n")
    assert (info.client_id, info.sizes) == ("4", {})


@pytest.mark.parametrize(
    "text",
    [
        b"pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t377\n",  # nouveau, radeon, NVIDIA; a pulled card
        b"pos:\t0\nsize:\t16384\ncount:\t10\nexp_name:\tdrm\n",  # a dma-buf
        b"pos:\t0\ntfd:       20 events:       19 data:               14  pos:0 ino:19b201 sdev:9\n",  # epoll
        b"",
    ],
)
def test_descriptors_without_drm_keys_say_nothing(text: bytes) -> None:
    info = parse(text)
    assert not info.has_keys
    memory = drm_memory.of_client(info, integrated=False)
    assert {memory.vram.provenance, memory.spill.provenance} == {"null:not-exposed no drm keys in fdinfo"}


def test_a_last_line_without_its_end_was_torn() -> None:
    """`drm-resident-vram:\\t155068 KiB` cut to `15506` would be another number."""
    assert parse(b"drm-total-vram:\t5 MiB\ndrm-resident-vram:\t15506").sizes == {("total", "vram"): 5 * MIB}


def test_the_text_of_linux_5_14_has_other_keys() -> None:
    info = parse(b"pdev:\t0000:03:00.0\npasid:\t32770\nvram mem:\t204800 kB\ngtt mem:\t8192 kB\ngfx0:\t3.5%\n")
    assert (info.driver, info.pdev, info.client_id) == ("amdgpu", "0000:03:00.0", "pasid 32770")
    memory = drm_memory.of_client(info, integrated=False)
    assert (memory.vram.value, memory.spill.value) == (209_715_200, 8_388_608)


@given(st.binary(max_size=300))
def test_no_text_breaks_the_parser(raw: bytes) -> None:
    info = parse(raw)
    for value in info.sizes.values():
        assert value is None or 0 <= value < 2**53


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["drm-resident-", "drm-memory-", "drm-total-", "drm-shared-"]),
            st.sampled_from(["vram", "gtt", "cpu", "local0", "system0", "memory", "stolen"]),
            st.integers(0, 2**40),
        )
    )
)
def test_every_region_counts_once(keys: list[tuple[str, str, int]]) -> None:
    """Local and system parts together are the sum of one key a region: resident, else memory."""
    lines = [f"{key}{region}:\t{size}\n" for key, region, size in keys]
    info = parse("".join(["drm-driver:\tthing\n", *lines]).encode())
    memory = drm_memory.of_client(info, integrated=True)
    last = {(key, region): size for key, region, size in keys}
    by_region = {}
    for region in {region for _, region, _ in keys}:
        resident = last.get(("drm-resident-", region), last.get(("drm-memory-", region)))
        by_region[region] = 0 if resident is None and last.get(("drm-total-", region)) == 0 else resident
    if not by_region or None in by_region.values():
        assert memory.spill.value is None
    else:
        assert memory.spill.value == sum(size for size in by_region.values() if size is not None)
