"""Cards are paired by what identifies them, never by their index: the README's "Who is who"."""

from __future__ import annotations

import itertools
from typing import Any

from gpusnap.diff import diff
from tests.builders import GIB, Row, adapter, process, snapshot
from tests.unit.diff.helpers import card_row, card_statuses, codes, process_row, statuses

UUID_A = "GPU-aaaaaaaa-0000-4000-8000-000000000000"
UUID_B = "GPU-bbbbbbbb-0000-4000-8000-000000000000"
A100 = "NVIDIA A100-SXM4-40GB"


def card(
    index: int,
    *,
    uuid: str | None = None,
    pci: str | None = None,
    model: str | None = "NVIDIA GeForce RTX 4080 SUPER",
    used: int | str = 0,
    health: str = "ok",
    **more: Any,
) -> Row:
    """A card whose id follows the contract: the UUID, else the PCI address, else the backend's number."""
    row = adapter(index, used=used, model=model or "null:device-lost", **more)
    row.update(uuid=uuid, pci_address=pci, health=health, model=model)
    row["id"] = uuid or (f"pci:{pci}" if pci else f"x-index:{index}")
    return row


def partition(parent: Row, gpu_instance: int, profile: str, uuid: str | None) -> Row:
    row = card(gpu_instance, uuid=uuid, model=parent["model"])
    row["id"] = uuid or f"{parent['id']}/{gpu_instance}"
    row.update(kind="partition", parent=parent["id"])
    row["partition"] = {"gpu_instance": gpu_instance, "compute_instance": 0, "profile": profile}
    return row


def test_report_109_swapped_indices_are_followed_by_uuid() -> None:
    """arcnmx/nvapi-rs#5: A: idx0=UUID-a idx1=UUID-b (same model); B: swapped."""
    before = snapshot([card(0, uuid=UUID_A, used=9 * GIB), card(1, uuid=UUID_B, used=2 * GIB)])
    after = snapshot([card(0, uuid=UUID_B, used=2 * GIB), card(1, uuid=UUID_A, used=9 * GIB)])
    result = diff(before, after)
    assert card_statuses(result) == [
        (UUID_B, UUID_B, "matched", "uuid"),
        (UUID_A, UUID_A, "matched", "uuid"),
    ]
    assert [row["index_changed"] for row in result["adapters"]] == [True, True]
    assert [row["changes"] for row in result["adapters"]] == [{}, {}]


def test_without_uuids_the_place_on_the_bus_identifies() -> None:
    before = snapshot([card(0, pci="0000:03:00.0", used=GIB), card(1, pci="0000:43:00.0", used=5 * GIB)])
    after = snapshot([card(0, pci="0000:43:00.0", used=5 * GIB), card(1, pci="0000:03:00.0", used=GIB)])
    result = diff(before, after)
    assert {(row["before_id"], row["matched_by"]) for row in result["adapters"]} == {
        ("pci:0000:03:00.0", "pci"),
        ("pci:0000:43:00.0", "pci"),
    }
    assert all(row["before_id"] == row["after_id"] for row in result["adapters"])


def test_one_card_of_a_model_on_each_side_is_paired_by_model() -> None:
    result = diff(snapshot([card(0, model="Ascend 910B")]), snapshot([card(3, model="Ascend 910B")]))
    assert card_statuses(result) == [("x-index:0", "x-index:3", "matched", "model")]


def test_two_nameless_cards_of_a_model_are_their_ids_within_one_boot() -> None:
    """Two chips of an Atlas 300I Duo stand behind one address; nothing changed is nothing changed."""
    both = [card(0, model="Ascend 310P"), card(1, model="Ascend 310P")]
    result = diff(snapshot(both), snapshot(both))
    assert [(status, by) for _, _, status, by in card_statuses(result)] == [("matched", None)] * 2


def test_two_nameless_cards_of_a_model_are_ambiguous_across_boots() -> None:
    both = [card(0, model="Ascend 910B"), card(1, model="Ascend 910B")]
    after = snapshot(both)
    after["boot_id"] = "00000000-0000-4000-8000-000000000002"
    result = diff(snapshot(both), after)
    assert sorted(status for _, _, status, _ in card_statuses(result)) == ["appeared"] * 2 + ["disappeared"] * 2
    assert "ambiguous-model" in codes(result)


def test_two_different_models_never_pair_whatever_else_agrees() -> None:
    """Another card was put into the slot."""
    before = snapshot([card(0, uuid=UUID_A, pci="0000:01:00.0")])
    after = snapshot([card(0, uuid=UUID_B, pci="0000:01:00.0", model="NVIDIA GeForce RTX 5090")])
    assert card_statuses(diff(before, after)) == [
        (UUID_A, None, "disappeared", None),
        (None, UUID_B, "appeared", None),
    ]


def test_a_driver_that_puts_its_vendor_before_the_model_renames_no_card() -> None:
    """NVIDIA's driver 470 began to say "NVIDIA GeForce RTX 3090"."""
    before = snapshot([card(0, uuid=UUID_A, model="GeForce RTX 3090")])
    after = snapshot([card(0, uuid=UUID_A, model="NVIDIA GeForce RTX 3090")])
    assert card_statuses(diff(before, after)) == [(UUID_A, UUID_A, "matched", "uuid")]


def test_the_same_model_in_the_same_slot_under_another_uuid_is_paired_with_a_warning() -> None:
    before = snapshot([card(0, uuid=UUID_A, pci="0000:01:00.0")])
    after = snapshot([card(0, uuid=UUID_B, pci="0000:01:00.0")])
    result = diff(before, after)
    assert card_statuses(result) == [(UUID_A, UUID_B, "matched", "pci")]
    assert codes(result) == ["other-card"]


def test_report_023_a_lost_card_pairs_by_elimination_when_one_is_left() -> None:
    """wookayin/gpustat#81: one lost GPU of four; it can't say who it is, the others can."""
    uuids = [f"GPU-{number}" for number in range(4)]
    before = snapshot(
        [card(n, uuid=uuids[n], used=GIB) for n in range(4)], [process(7, GIB, on=card(2, uuid=uuids[2]))]
    )
    lost = card(2, model=None, health="lost", used="null:device-lost", listed="null:device-lost")
    after = snapshot([*(card(n, uuid=uuids[n], used=GIB) for n in (0, 1, 3)), lost])
    result = diff(before, after)
    row = card_row(result, "GPU-2")
    assert (row["after_id"], row["status"], row["matched_by"]) == ("x-index:2", "lost", "elimination")
    assert row["model"] == "NVIDIA GeForce RTX 4080 SUPER"
    assert row["changes"]["health"]["after"] == "lost"
    assert row["changes"]["memory.used_bytes"] == {
        "before": GIB,
        "after": None,
        "delta": None,
        "reset": False,
        "before_provenance": "measured:test",
        "after_provenance": "null:device-lost",
    }
    # Its process may hang in the driver: nothing says that it exited.
    assert statuses(result) == {7: "unknown"}
    assert "card-lost" in codes(result)


def test_two_lost_cards_are_not_told_apart() -> None:
    before = snapshot([card(0, uuid=UUID_A), card(1, uuid=UUID_B)])
    lost = [card(n, model=None, health="lost", used="null:device-lost") for n in (0, 1)]
    result = diff(before, snapshot(lost))
    assert sorted(status for _, _, status, _ in card_statuses(result)) == ["appeared"] * 2 + ["disappeared"] * 2


def test_a_lost_card_that_keeps_its_bus_address_pairs_by_it() -> None:
    before = snapshot([card(0, uuid=UUID_A, pci="0000:01:00.0"), card(1, uuid=UUID_B, pci="0000:02:00.0")])
    lost = card(1, pci="0000:02:00.0", model=None, health="lost", used="null:device-lost")
    result = diff(before, snapshot([card(0, uuid=UUID_A, pci="0000:01:00.0"), lost]))
    assert card_statuses(result)[1] == (UUID_B, "pci:0000:02:00.0", "lost", "pci")


def test_a_lost_card_at_another_address_is_not_the_one_that_is_left() -> None:
    before = snapshot([card(0, uuid=UUID_A, pci="0000:01:00.0")])
    lost = card(0, pci="0000:99:00.0", model=None, health="lost", used="null:device-lost")
    assert [status for _, _, status, _ in card_statuses(diff(before, snapshot([lost])))] == [
        "disappeared",
        "appeared",
    ]


def test_a_card_that_came_back_is_matched_and_its_health_changed() -> None:
    lost = card(0, model=None, health="lost", used="null:device-lost")
    result = diff(snapshot([lost]), snapshot([card(0, uuid=UUID_A)]))
    assert card_statuses(result) == [("x-index:0", UUID_A, "matched", "elimination")]


def test_a_card_that_only_one_snapshot_has_leaves_its_rows_unknown() -> None:
    """A second snapshot taken with `--adapter` is no proof that processes ended."""
    cards = [card(0, uuid=UUID_A, used=GIB), card(1, uuid=UUID_B, used=GIB)]
    before = snapshot(cards, [process(5, GIB, on=cards[1])])
    result = diff(before, snapshot(cards[:1]))
    assert card_statuses(result)[1] == (UUID_B, None, "disappeared", None)
    assert statuses(result) == {5: "unknown"}
    assert card_row(result, UUID_B)["changes"]["memory.used_bytes"] == {
        "before": GIB,
        "after": None,
        "delta": -GIB,
        "reset": False,
        "before_provenance": "measured:test",
        "after_provenance": "null:none",
    }


def test_partitions_are_followed_by_uuid_and_their_card_stays_matched() -> None:
    whole = card(0, uuid=UUID_A, model=A100)
    half = partition(whole, 1, "3g.20gb", "MIG-1")
    result = diff(snapshot([whole, half]), snapshot([whole, half]))
    assert {row["matched_by"] for row in result["adapters"]} == {"uuid"}


def test_new_partitions_are_not_the_old_ones() -> None:
    """1 × 7g becomes 2 × 3g: the card is the same, its partitions are others."""
    whole = card(0, uuid=UUID_A, model=A100)
    old = partition(whole, 0, "7g.40gb", "MIG-old")
    new = [partition(whole, number, "3g.20gb", f"MIG-{number}") for number in (1, 2)]
    before = snapshot([whole, old], [process(5, GIB, on=old)])
    after = snapshot([whole, *new], [process(6, GIB, on=new[0])])
    result = diff(before, after)
    assert card_row(result, UUID_A)["status"] == "matched"
    assert card_row(result, "MIG-old")["status"] == "disappeared"
    assert [card_row(result, f"MIG-{number}")["status"] for number in (1, 2)] == ["appeared", "appeared"]
    assert statuses(result) == {5: "exited", 6: "appeared"}
    assert process_row(result, 6)["adapter"] == "MIG-1"


def test_a_partition_of_the_same_size_made_anew_is_another() -> None:
    whole = card(0, uuid=UUID_A, model=A100)
    result = diff(
        snapshot([whole, partition(whole, 1, "3g.20gb", "MIG-old")]),
        snapshot([whole, partition(whole, 1, "3g.20gb", "MIG-new")]),
    )
    assert card_row(result, "MIG-old")["status"] == "disappeared"


def test_a_partition_without_a_uuid_is_its_place_on_its_card() -> None:
    whole = card(0, uuid=UUID_A, pci="0000:01:00.0", model=A100)
    parts = [partition(whole, number, "1g.5gb", None) for number in (7, 8)]
    result = diff(snapshot([whole, *parts]), snapshot([whole, *reversed(parts)]))
    assert [row["matched_by"] for row in result["adapters"]] == ["uuid", "pci", "pci"]
    assert all(row["before_id"] == row["after_id"] for row in result["adapters"])


def test_a_card_never_pairs_with_a_partition() -> None:
    whole = card(0, uuid=UUID_A, pci="0000:01:00.0", model=A100)
    part = partition(whole, 1, "3g.20gb", None)
    part["pci_address"] = "0000:01:00.0"
    result = diff(snapshot([whole]), snapshot([part]))
    assert {row["status"] for row in result["adapters"]} == {"disappeared", "appeared"}


def test_report_019_every_card_is_a_row_of_its_own() -> None:
    cards = [card(n, uuid=f"GPU-{n}", used=n * GIB) for n in range(3)]
    grown = [card(n, uuid=f"GPU-{n}", used=(n + 1) * GIB) for n in range(3)]
    result = diff(snapshot(cards), snapshot(grown))
    assert [row["changes"]["memory.used_bytes"]["delta"] for row in result["adapters"]] == [GIB] * 3


def test_the_order_of_cards_plays_no_part() -> None:
    cards = [
        card(0, uuid=UUID_A, pci="0000:01:00.0"),
        card(1, pci="0000:02:00.0"),
        card(2, model="Ascend 910B"),
    ]
    expected = diff(snapshot(cards), snapshot(cards))
    for order in itertools.permutations(cards):
        assert diff(snapshot(order), snapshot(cards))["adapters"] == expected["adapters"]
        assert diff(snapshot(cards), snapshot(order))["adapters"] == expected["adapters"]


def test_a_card_whose_backend_failed_on_the_other_side_may_be_there_all_the_same() -> None:
    """NVML timed out and nothing else sees the card (Windows, WSL): it was not pulled out."""
    late = {"name": "nvml", "status": "timeout", "version": None, "driver_version": None, "detail": "10 s"}
    other = {**late, "name": "amdgpu", "status": "failed", "detail": None}
    result = diff(snapshot([adapter(0)]), snapshot([], None, backends=[late, other]))
    assert [(note["code"], note["message"]) for note in result["warnings"]] == [
        (
            "card-unread",
            "the card may be there all the same: nvml could not read the after snapshot (timeout: 10 s)",
        )
    ]
    assert codes(diff(snapshot([adapter(0)]), snapshot([], backends=[{**late, "status": "absent"}]))) == []
