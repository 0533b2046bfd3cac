"""The tests' own documents keep the contract: else everything that rests on them proves nothing."""

from __future__ import annotations

import msgspec

from gpusnap.model import Snapshot
from tests.builders import GIB, MIB, adapter, holder, process, snapshot


def test_a_built_document_has_every_key_and_type_of_the_contract() -> None:
    document = snapshot(
        [adapter(used=9 * GIB, holders=[holder(7)]), adapter(1, used="null:device-lost", busy="null:device-lost")],
        [process(4711, 8 * GIB), process(5, "null:no-permission", name="null:exited")],
    )
    assert msgspec.convert(document, Snapshot, strict=True) == document


def test_the_account_of_a_built_card_is_the_contracts_arithmetic() -> None:
    card = adapter(total=16 * GIB, used=9 * GIB, leaves={"memory.free_bytes": 7 * GIB - 300 * MIB})
    card["memory"]["reserved_bytes"] = 300 * MIB
    document = snapshot([card], [process(1, 8 * GIB), process(2, "null:wddm")])
    account = document["adapters"][0]["accounting"]
    # used + free + reserved = total: the reserved part does not lie inside used.
    assert account["reserved_bytes"] == 0
    assert account["unattributed_bytes"] == GIB
    assert account["unmeasured_processes"] == 1
    assert account["by_category"]["ai"] == 8 * GIB


def test_a_list_that_is_unavailable_leaves_nothing_attributed() -> None:
    document = snapshot([adapter(used=350 * MIB, listed="null:not-supported")], None)
    account = document["adapters"][0]["accounting"]
    assert account["attributed_bytes"] is None
    assert account["unattributed_bytes"] is None
    entry = document["provenance"][document["adapters"][0]["provenance"]]
    assert entry["processes_listed"] == "null:not-supported"
    assert entry["accounting.unattributed_bytes"] == "null:not-supported"
