"""What holds for any two snapshots. The machines are drawn; the arithmetic checked here is not gpusnap's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusnap.diff import diff
from gpusnap.diff.delta import value_at
from tests.builders import GIB, MIB, START, Row, adapter, process, set_leaf, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot

MIRRORED = {"appeared": "exited", "exited": "appeared", "disappeared": "appeared"}
NULLS = ("null:no-permission", "null:timeout NVML_ERROR_TIMEOUT", "null:not-supported")
PIDS = (7, 8, 9, 4711)

figure = st.one_of(st.integers(0, 9000).map(lambda count: count * MIB), st.sampled_from(NULLS))
percent = st.one_of(st.floats(0, 100).map(lambda load: round(load, 2)), st.sampled_from(NULLS))


@st.composite
def rows(draw: st.DrawFn, cards: int, *, stamped: bool) -> list[Row]:
    """One row for each (card, pid) at most; start stamps from a small set, so that pids are reused often."""
    places = st.tuples(st.integers(0, cards - 1), st.sampled_from(PIDS))
    found = []
    for card, pid in draw(st.sets(places, max_size=6)) if cards else ():
        start = draw(st.sampled_from((1000, 9000) if stamped else (1000, 9000, None)))
        row = process(pid, draw(figure), on=card, start_ticks=start, busy=draw(percent))
        set_leaf(row, "spill_bytes", draw(figure))
        row["state"] = draw(st.sampled_from(("running", "sleeping")))
        found.append(row)
    return found


@st.composite
def card(draw: st.DrawFn, index: int, *, listed: bool) -> Row:
    used = draw(st.one_of(st.integers(0, 60).map(lambda count: count * GIB), st.sampled_from(NULLS)))
    lists = "complete" if listed else draw(st.sampled_from(("complete", "partial", "null:no-permission")))
    row = adapter(index, total=96 * GIB, used=used, vendor="amd", listed=lists, busy=draw(percent))
    set_leaf(row, "memory.reserved_bytes", draw(figure))
    set_leaf(row, "ecc.corrected_volatile", draw(st.integers(0, 3)))
    set_leaf(row, "ecc.corrected_aggregate", draw(st.integers(0, 3)))
    set_leaf(row, "power.energy_joules", draw(percent))
    row["shared_clients"] = [
        {"client": "7", "vram_bytes": draw(st.integers(0, 64)) * MIB, "spill_bytes": 0, "holders": [7, 8]}
    ]
    return row


@st.composite
def machine(draw: st.DrawFn, *, uptime: float = 1000.0, certain: bool = False) -> Snapshot:
    """`certain`: the same boot, every list complete, every start stamp known."""
    count = draw(st.integers(0, 3))
    cards = [draw(card(index, listed=certain)) for index in range(count)]
    boot = "boot" if certain else draw(st.sampled_from(("boot", "boot", "other", None)))
    listed = draw(rows(count, stamped=certain))
    missing = not certain and draw(st.integers(0, 9)) == 0
    return snapshot(cards, None if missing else listed, boot=boot, uptime=uptime, at=START + uptime)


thorough = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(machine())
def test_a_snapshot_does_not_differ_from_itself(doc: Snapshot) -> None:
    result = diff(doc, doc)
    assert all((row["status"], row["changes"]) == ("matched", {}) for row in result["adapters"])
    assert not result["elapsed_seconds"]
    for row in result["processes"]:
        assert row["changes"] == {}
        # Only what can't be told to be itself is anything but the same.
        stands_alone = row["start_ticks"] is None or doc["boot_id"] is None
        assert (
            row["status"] == "same"
            or (row["status"] == "unknown" and stands_alone)
            or _shares_pid(doc, row["pid"])
        )
    for item in result["unattributed"]:
        assert item["delta_bytes"] in (0, None)
        assert (item["delta_bytes"] is None) == (item["reason"] is not None)


def _shares_pid(doc: Snapshot, pid: int) -> bool:
    """A pid that also stands on the card without a stamp: either row may be either process."""
    return any(row["pid"] == pid and row["start_ticks"] is None for row in doc["processes"] or ())


@thorough
@given(machine(), machine(uptime=2000.0))
def test_the_reverse_comparison_is_the_mirror(one: Snapshot, two: Snapshot) -> None:
    forth, back = diff(one, two), diff(two, one)
    assert _mirrored(forth) == _plain(back)
    there = {item["adapter"]: item for item in forth["unattributed"]}
    for item in back["unattributed"]:
        other = there[item["adapter"]]
        assert (item["before_bytes"], item["after_bytes"]) == (other["after_bytes"], other["before_bytes"])
        assert item["delta_bytes"] == (None if other["delta_bytes"] is None else -other["delta_bytes"])


def _plain(result: Diff) -> list[Any]:
    cards = [
        (row["status"], row["before_id"], row["after_id"], _changes(row["changes"])) for row in result["adapters"]
    ]
    found = [
        (row["status"], row["adapter"], row["pid"], str(row["start_ticks"]), _changes(row["changes"]))
        for row in result["processes"]
    ]
    return [sorted(cards, key=str), sorted(found, key=str)]


def _changes(changes: dict[str, Any]) -> list[Any]:
    return [(leaf, tuple(change.values())) for leaf, change in changes.items()]


def _mirrored(result: Diff) -> list[Any]:
    def turn(changes: dict[str, Any]) -> list[Any]:
        return [
            (
                leaf,
                (
                    change["after"],
                    change["before"],
                    None if change["delta"] is None else -change["delta"],
                    change["reset"],
                    change["after_provenance"],
                    change["before_provenance"],
                ),
            )
            for leaf, change in changes.items()
        ]

    def status(row: Any) -> str:
        if row["status"] == "appeared" and "before_id" in row:
            return "disappeared"
        return str(MIRRORED.get(row["status"], row["status"]))

    cards = [(status(row), row["after_id"], row["before_id"], turn(row["changes"])) for row in result["adapters"]]
    found = [
        (status(row), row["adapter"], row["pid"], str(row["start_ticks"]), turn(row["changes"]))
        for row in result["processes"]
    ]
    return [sorted(cards, key=str), sorted(found, key=str)]


@thorough
@given(machine(certain=True), machine(uptime=2000.0, certain=True))
def test_deltas_lead_from_one_side_to_the_other(one: Snapshot, two: Snapshot) -> None:
    result = diff(one, two)
    old = {(row["adapter"], row["pid"], row["start_ticks"]): row for row in one["processes"] or ()}
    new = {(row["adapter"], row["pid"], row["start_ticks"]): row for row in two["processes"] or ()}
    ids = {item["id"] for item in one["adapters"]} & {item["id"] for item in two["adapters"]}
    seen = set()
    for row in result["processes"]:
        key = (row["adapter"], row["pid"], row["start_ticks"])
        seen.add(key)
        if row["adapter"] in ids:
            _lead(old.get(key), new.get(key), row["changes"], ("vram_bytes", "spill_bytes", "gpu_percent"))
    assert seen == old.keys() | new.keys()
    before, after = ({item["id"]: item for item in doc["adapters"]} for doc in (one, two))
    for item in result["adapters"]:
        if item["status"] == "matched":
            leaves = ("memory.used_bytes", "memory.reserved_bytes", "ecc.corrected_aggregate", "load.gpu_percent")
            _lead(before[str(item["before_id"])], after[str(item["after_id"])], item["changes"], leaves)


def _lead(old: Any, new: Any, changes: Any, leaves: tuple[str, ...]) -> None:
    for leaf in leaves:
        was = None if old is None else value_at(old, leaf)
        now = None if new is None else value_at(new, leaf)
        if leaf not in changes:
            assert was == now
            continue
        change = changes[leaf]
        assert (change["before"], change["after"]) == (was, now)
        if change["delta"] is not None:
            assert (was or 0) + change["delta"] == pytest.approx(now or 0, abs=1e-6)
        elif old is not None and new is not None:
            assert was is None or now is None


@thorough
@given(machine(), machine(uptime=2000.0), st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(one: Snapshot, two: Snapshot, chance: random.Random) -> None:
    expected = diff(one, two)
    for doc in (one, two):
        chance.shuffle(doc["adapters"])
        if doc["processes"] is not None:
            chance.shuffle(doc["processes"])
    assert diff(one, two) == expected


@thorough
@given(machine(certain=True), machine(uptime=2000.0, certain=True))
def test_what_the_parts_gained_is_what_the_card_gained(one: Snapshot, two: Snapshot) -> None:
    """used = Σ rows + shared + reserved inside used + unattributed, so the same holds for the changes."""
    result = diff(one, two)
    before, after = ({item["id"]: item for item in doc["adapters"]} for doc in (one, two))
    for item in result["unattributed"]:
        old, new = before[item["adapter"]], after[item["adapter"]]
        was, now = old["memory"]["used_bytes"], new["memory"]["used_bytes"]
        if item["delta_bytes"] is None:
            assert item["reason"]
            continue
        assert was is not None
        assert now is not None
        deltas = [
            row["changes"]["vram_bytes"]["delta"]
            for row in result["processes"]
            if row["adapter"] == item["adapter"] and "vram_bytes" in row["changes"]
        ]
        measured = [int(delta) for delta in deltas if delta is not None]
        if len(measured) < len(deltas):
            continue  # a part that was not measured on one side: the sum is unknown, and its row says why
        shared = (new["accounting"]["shared_bytes"] or 0) - (old["accounting"]["shared_bytes"] or 0)
        reserved = (new["accounting"]["reserved_bytes"] or 0) - (old["accounting"]["reserved_bytes"] or 0)
        assert sum(measured) + shared + reserved + item["delta_bytes"] == now - was


@thorough
@given(machine(), machine(uptime=2000.0))
def test_nobody_is_blamed_for_more_than_he_held(one: Snapshot, two: Snapshot) -> None:
    held = {
        (row["adapter"], row["pid"]): max(
            other["vram_bytes"] or 0
            for doc in (one, two)
            for other in doc["processes"] or ()
            if (other["adapter"], other["pid"]) == (row["adapter"], row["pid"])
        )
        for doc in (one, two)
        for row in doc["processes"] or ()
    }
    for item in diff(one, two)["unattributed"]:
        for suspect in item["explained_by"]:
            assert item["delta_bytes"]
            assert 0 < suspect["bytes"] <= min(held[item["adapter"], suspect["pid"]], abs(item["delta_bytes"]))


@thorough
@given(machine(), machine(uptime=2000.0))
def test_every_row_of_either_side_is_in_the_result_exactly_once(one: Snapshot, two: Snapshot) -> None:
    result = diff(one, two)
    both = sum(row["status"] in ("same", "changed") for row in result["processes"])
    count = len(one["processes"] or ()) + len(two["processes"] or ())
    assert len(result["processes"]) + both == count
    programs = diff(one, two, match="program")["processes"]
    both = sum(row["status"] in ("same", "changed", "replaced") for row in programs)
    assert len(programs) + both == count
