"""What each driver's regions mean: local memory, system memory, shared part. Cases from public captures."""

from __future__ import annotations

from gpusnap.collect.drm_fdinfo import parse
from gpusnap.collect.drm_memory import add, of_client
from gpusnap.reading import Reading, computed, measured, null

MIB, KIB = 1024**2, 1024


def memory(text: str, *, integrated: bool = False) -> tuple[object, object, object]:
    found = of_client(parse(text.encode()), integrated=integrated)
    return found.vram.value, found.spill.value, found.shared.value


def test_amdgpu_memory_is_an_alias_of_resident_and_counts_once() -> None:
    text = "drm-driver:\tamdgpu\ndrm-resident-vram:\t10 MiB\ndrm-memory-vram:\t10240 KiB\ndrm-shared-vram:\t0\n"
    assert memory(text + "drm-resident-gtt:\t1 MiB\ndrm-memory-gtt:\t1024 KiB\n") == (10 * MIB, MIB, 0)


def test_evicted_bytes_are_resident_in_gtt_and_are_not_added_again() -> None:
    text = (
        "drm-driver:\tamdgpu\ndrm-total-vram:\t100 MiB\ndrm-shared-vram:\t0\ndrm-resident-vram:\t60 MiB\n"
        "drm-total-gtt:\t5 MiB\ndrm-resident-gtt:\t45 MiB\ndrm-resident-cpu:\t0\n"
        "amd-evicted-vram:\t40960 KiB\namd-requested-vram:\t102400 KiB\n"
    )
    assert memory(text) == (60 * MIB, 45 * MIB, 0)


def test_on_chip_stores_of_amdgpu_are_no_memory() -> None:
    text = "drm-driver:\tamdgpu\ndrm-resident-vram:\t1 MiB\ndrm-shared-vram:\t0\ndrm-resident-gtt:\t0\n"
    text += "".join(f"drm-resident-{name}:\t4 MiB\n" for name in ("gds", "gws", "oa", "doorbell", "mmioremap"))
    assert memory(text) == (MIB, 0, 0)


def test_shared_under_the_preferred_place_is_limited_to_what_is_resident() -> None:
    """Linux 6.14: shared and total are filed where a buffer wants to be, resident where it is."""
    text = "drm-driver:\tamdgpu\ndrm-shared-vram:\t90 MiB\ndrm-resident-vram:\t60 MiB\ndrm-resident-gtt:\t40 MiB\n"
    found = of_client(parse(text.encode()), integrated=False)
    assert (found.vram.value, found.shared.value) == (60 * MIB, 60 * MIB)
    assert found.shared.provenance.startswith("computed:")


def test_a_kernel_without_shared_keys_leaves_the_shared_part_unknown() -> None:
    found = of_client(parse(b"drm-driver:\tamdgpu\ndrm-memory-vram:\t1024 KiB\n"), integrated=False)
    assert found.shared.provenance == "null:not-exposed fdinfo.drm-shared-vram"


def test_local_in_a_name_does_not_make_a_card_of_an_integrated_part() -> None:
    """Meteor Lake prints stolen-local0 (Core Ultra 5 125U)."""
    text = "drm-driver:\ti915\ndrm-resident-system0:\t3835792 KiB\n"
    text += "drm-total-stolen-local0:\t0\ndrm-resident-stolen-local0:\t0\n"
    assert memory(text, integrated=True) == (None, 3835792 * KIB, None)


def test_a_discrete_i915_card_keeps_local_and_stolen_local_together() -> None:
    text = "drm-driver:\ti915\n" + "".join(
        f"drm-{kind}-{region}:\t{size}\n"
        for region, size in (("system0", "8 MiB"), ("local0", "5 MiB"), ("stolen-local0", "1 MiB"))
        for kind in ("resident", "shared")
    )
    assert memory(text) == (6 * MIB, 8 * MIB, 6 * MIB)


def test_xe_counts_both_tiles() -> None:
    text = "drm-driver:\txe\n" + "".join(
        f"drm-resident-{region}:\t{size} MiB\ndrm-shared-{region}:\t0\n"
        for region, size in (("system", 1), ("gtt", 2), ("vram0", 4), ("vram1", 8), ("stolen", 16))
    )
    assert memory(text) == (28 * MIB, 3 * MIB, 0)


def test_panthor_adds_the_drivers_own_buffers() -> None:
    text = (
        "drm-driver:\tpanthor\npanthor-resident-memory:\t10396 KiB\npanthor-active-memory:\t10396 KiB\n"
        "drm-total-memory:\t16480 KiB\ndrm-resident-memory:\t16480 KiB\n"
    )
    assert memory(text, integrated=True) == (None, (10396 + 16480) * KIB, None)


def test_active_above_resident_changes_nothing() -> None:
    """Documentation/gpu/panfrost: active 226 MiB, resident 36496 KiB."""
    text = "drm-driver:\tpanfrost\ndrm-total-memory:\t290 MiB\n"
    text += "drm-active-memory:\t226 MiB\ndrm-resident-memory:\t36496 KiB\n"
    assert memory(text, integrated=True)[1] == 36496 * KIB


def test_total_alone_is_a_wish_and_no_residence() -> None:
    found = of_client(parse(b"drm-driver:\tv3d\ndrm-total-memory:\t128 KiB\n"), integrated=True)
    assert found.spill.provenance == "null:not-exposed fdinfo.drm-resident-memory"
    assert of_client(parse(b"drm-driver:\tv3d\ndrm-total-memory:\t0\n"), integrated=True).spill.value == 0


def test_engine_time_without_memory_keys_is_no_zero() -> None:
    """msm, Linux 6.0."""
    found = of_client(parse(b"drm-driver:\tmsm\ndrm-engine-gpu:\t1734371319 ns\n"), integrated=True)
    assert found.spill.provenance == "null:not-exposed no memory keys in fdinfo"


def test_a_text_that_is_no_size_costs_its_own_figure() -> None:
    found = of_client(
        parse(b"drm-driver:\tamdgpu\ndrm-resident-vram:\tlots\ndrm-resident-gtt:\t1 MiB\n"), integrated=False
    )
    assert found.vram.provenance == "null:unknown-format fdinfo.drm-resident-vram"
    assert found.spill.value == MIB


def test_a_sum_keeps_every_source_and_loses_nothing_to_a_null() -> None:
    assert add(measured(1, "a"), measured(2, "a")) == measured(3, "a")
    assert add(measured(1, "a"), measured(2, "b")) == measured(3, "a, b")
    assert add(measured(1, "a"), computed(2, "b")) == computed(3, "a, b")
    assert add(null("no-permission"), measured(2, "b")) == null("no-permission")
    assert add(measured(2, "b"), null("not-exposed")) == Reading(None, "null:not-exposed")
