"""GPU power of a Mac from two readings of an energy counter: right, or null, never a made-up 0."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.collect.ioreport_energy import Energy, energy_of, power_between
from gpusnap.reading import Reading, measured, null
from tests.unit.collect.taking import source, taken
from tests.unit.collect.test_apple import accelerator, client, mac

if TYPE_CHECKING:
    from pathlib import Path

BUSY, IDLE = measured(40, "ioreg"), measured(0, "ioreg")
SECOND = 24_000_000  # ticks


def raw(
    value: int = 10**12, stamp: int | None = 100 * SECOND, *, now: int = 100 * SECOND, **row: Any
) -> dict[str, Any]:
    channel = {"name": "GPU Energy", "unit": "nJ", "value": value, "stamp": stamp, **row}
    return {"channels": [channel], "now": now, "numer": 125, "denom": 3}


def test_all_smi_424_power_of_an_m1_ultra() -> None:
    """Its log: 32912460 nJ in the 120.7 ms between two stamps, which it calls 0.27 W."""
    before = energy_of(raw(10**12, 100 * SECOND))
    later = 100 * SECOND + 2_896_800  # 120.7 ms
    after = energy_of(raw(10**12 + 32_912_460, later, now=later))
    assert power_between(before, after, BUSY) == Reading(0.273, "computed:ioreport.GPU Energy")


@pytest.mark.parametrize(("unit", "watts"), [("mJ", 2000.0), ("uJ", 2.0), ("nJ", 0.002)])
def test_each_unit_is_of_its_own_size(unit: str, watts: float) -> None:
    """4 million counts in 2 s are 4000 J, 4 J or 4 mJ: 2 kW are no GPU of Apple's."""
    before = energy_of(raw(0, 98 * SECOND, unit=unit))
    found = power_between(before, energy_of(raw(4_000_000, unit=unit)), BUSY)
    if watts > 1000:
        assert (found.value, found.provenance.split(" ")[0]) == (None, "null:out-of-range")
        assert "2000.0 W" in found.provenance
    else:
        assert found.value == watts


def test_all_smi_412_time_is_the_drivers_not_the_windows() -> None:
    """8.8 J that were published 2.2 s after the last batch are 4 W, though we looked 0.5 s apart."""
    before = energy_of(raw(0, 98 * SECOND, now=99 * SECOND, unit="mJ"))
    stamp = 98 * SECOND + 52_800_000
    after = energy_of(raw(8800, stamp, now=stamp + 1000, unit="mJ"))
    assert power_between(before, after, BUSY).value == 4.0


@pytest.mark.parametrize(
    ("after", "busy"),
    [
        (raw(10**12 + 10**9), BUSY),  # the value moved, its stamp did not
        (raw(10**12 + 10**9, 100 * SECOND + 480_000, now=101 * SECOND), BUSY),  # a batch's tail, 20 ms later
        (raw(5, 101 * SECOND, now=101 * SECOND), BUSY),  # a counter that began anew
        (raw(10**12, 101 * SECOND, now=101 * SECOND), BUSY),  # stands still under load
        (raw(10**12, 101 * SECOND, now=101 * SECOND), null("not-exposed")),
        (raw(10**6, 101 * SECOND, now=101 * SECOND, unit="mJ"), BUSY),  # another unit than before
    ],
)
def test_no_span_no_figure(after: dict[str, Any], busy: Reading) -> None:
    found = power_between(energy_of(raw()), energy_of(after), busy)
    assert (found.value, found.provenance.split(" ")[0]) == (None, "null:needs-two-samples")


def test_an_idle_gpu_that_was_asked_again_draws_nothing() -> None:
    """M1 Ultra, all-smi#424: `GPU Energy dv=0nJ dts=127.4ms`."""
    later = 100 * SECOND + 3_057_600
    found = power_between(energy_of(raw()), energy_of(raw(10**12, later, now=later)), IDLE)
    assert found == Reading(0.0, "computed:ioreport.GPU Energy")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"channels": [], "now": 1, "numer": 1, "denom": 1}, "not-exposed"),
        ({**raw(), "channels": raw()["channels"] * 2}, "ambiguous"),
        (raw(name="GPU0_0"), "not-exposed"),
        (raw(unit="pJ"), "unknown-format"),
        (raw(-(1 << 63)), "failed"),
        (raw(stamp=None), "unknown-format"),
        (raw(now=99 * SECOND), "unknown-format"),  # stamped in the future: by a clock that counts sleep
        (raw(now=111 * SECOND), "unknown-format"),  # eleven seconds old
        # Rosetta: our clock counts nanoseconds, the driver's stamp ticks.
        ({**raw(now=100 * 10**9), "numer": 1, "denom": 1}, "unknown-format"),
        ({**raw(), "denom": 0}, "unknown-format"),
    ],
)
def test_what_is_not_as_it_is_known_has_no_energy(told: dict[str, Any], reason: str) -> None:
    found = energy_of(told)
    assert not isinstance(found, Energy)
    assert found.provenance.startswith(f"null:{reason}")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"unsupported": "IOReport: no group Energy Model"}, "null:not-exposed IOReport: no group Energy Model"),
        ({"errno": "EIO"}, "null:failed"),
    ],
)
def test_all_smi_337_no_counter_is_null_and_not_0_watts(
    tmp_path: Path, answer: dict[str, Any], reason: str
) -> None:
    document = taken(mac(tmp_path, accelerator(client(1, "pid 42, a", 1)), energy=answer), window=0.5)
    (card,) = document["adapters"]
    assert card["power"]["draw_watts"] is None
    assert source(document, card, "power.draw_watts").startswith(reason)


def test_one_sample_is_no_power(tmp_path: Path) -> None:
    document = taken(mac(tmp_path, accelerator(client(1, "pid 42, a", 1)), energy=raw()))
    (card,) = document["adapters"]
    assert source(document, card, "power.draw_watts") == "null:needs-two-samples"


def test_a_window_gives_watts(tmp_path: Path) -> None:
    """3 J within the half second between the stamps."""
    host = mac(tmp_path, accelerator(client(1, "pid 42, a", 1)), energy=raw())
    half = 100 * SECOND + SECOND // 2
    (tmp_path / "raw.2.json").write_text(json.dumps({"energy": raw(10**12 + 3 * 10**9, half, now=half)}))
    (card,) = taken(host, window=0.5)["adapters"]
    assert card["power"]["draw_watts"] == 6.0
