"""Who owns a client that several processes show. The rule is the contract's, under `shared_with`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusnap.collect.drm_clients import owner_of
from tests.unit.drm.kit import (
    MIB,
    adapter,
    amd_client,
    amdgpu,
    card,
    client,
    host_of,
    process,
    row,
    snapshot,
    source,
)

NODE = "/dev/dri/renderD128"


@pytest.mark.parametrize(
    ("holders", "parents", "owner"),
    [
        ({5}, {}, 5),
        ({1}, {1: 0}, 1),  # the only holder owns, be it pid 1: in a container that is the server itself
        ({1, 1967}, {1967: 900}, 1967),  # init passed it on
        ({1967, 2300}, {1967: 900, 2300: 1967}, 1967),  # a child inherited it
        ({1967, 2300, 2301}, {1967: 900, 2300: 1967, 2301: 2300}, 1967),
        ({1, 800, 1967}, {800: 1, 1967: 900}, 1967),  # logind is a child of pid 1, which holds it too
        ({700, 1300}, {700: 1, 1300: 1200}, None),  # logind and a compositor: nobody can say
        ({10, 11}, {10: 5, 11: 5}, None),  # sent over a socket between siblings
        ({1, 7}, {7: 1}, None),
        ({5, 6}, {}, None),  # parents not to be had
    ],
)
def test_the_owner_is_the_one_holder_left(holders: set[int], parents: dict[int, int], owner: int | None) -> None:
    assert owner_of(holders, parents.get) == owner


def test_one_client_on_many_descriptors_counts_once(tmp_path: Path) -> None:
    """Report 70, xpumanager#145 and compute-runtime#964: 7692 MiB by descriptor on a card that uses 3642."""
    fds = {n: (NODE, amd_client(7, "641 MiB")) for n in range(10, 22)}
    tree = card(files=amdgpu(used=3642 * MIB)) + process(300, fds)
    document = snapshot(host_of(tmp_path, tree))
    assert row(document, 300)["vram_bytes"] == 641 * MIB
    assert adapter(document)["accounting"]["attributed_bytes"] == 641 * MIB


def test_several_clients_of_one_process_are_added(tmp_path: Path) -> None:
    """Mesa and VA-API open the node each for itself."""
    fds = {10: (NODE, amd_client(7, "100 MiB", "4 MiB")), 11: (NODE, amd_client(8, "20 MiB", "1 MiB"))}
    document = snapshot(host_of(tmp_path, card(files=amdgpu()) + process(300, fds)))
    assert (row(document, 300)["vram_bytes"], row(document, 300)["spill_bytes"]) == (120 * MIB, 5 * MIB)
    assert row(document, 300)["shared_with"] == []


def test_a_clients_figure_is_unknown_when_one_part_is(tmp_path: Path) -> None:
    fds = {10: (NODE, amd_client(7, "100 MiB")), 11: (NODE, client(8, resident_vram="?", resident_gtt="0"))}
    document = snapshot(host_of(tmp_path, card(files=amdgpu()) + process(300, fds)))
    assert row(document, 300)["vram_bytes"] is None
    assert source(document, row(document, 300), "vram_bytes").startswith("null:unknown-format")
    assert adapter(document)["accounting"]["unmeasured_processes"] == 1


def test_the_same_id_on_two_cards_is_two_clients(tmp_path: Path) -> None:
    """Ids up to Linux 6.4 count from 0 on each card."""
    other = "0000:07:00.0"
    tree = card(files=amdgpu()) + card(other, 1, files=amdgpu())
    fds = {
        5: (NODE, amd_client(0, "10 MiB")),
        6: ("/dev/dri/renderD129", amd_client(0, "3 MiB", pdev=other)),
    }
    tree += process(300, fds)
    document = snapshot(host_of(tmp_path, tree))
    assert row(document, 300)["vram_bytes"] == 10 * MIB
    assert row(document, 300, other)["vram_bytes"] == 3 * MIB


def test_memory_without_a_single_owner_is_told_apart(tmp_path: Path) -> None:
    fd = {4: (NODE, amd_client(9, "50 MiB", "2 MiB"))}
    tree = (
        card(files=amdgpu())
        + process(300, fd, ppid=20)
        + process(301, {**fd, 5: (NODE, amd_client(10, "7 MiB"))}, ppid=21)
    )
    document = snapshot(host_of(tmp_path, tree))
    books = adapter(document)
    assert books["shared_clients"] == [
        {"client": "9", "vram_bytes": 50 * MIB, "spill_bytes": 2 * MIB, "holders": [300, 301]}
    ]
    assert books["accounting"]["shared_bytes"] == 50 * MIB
    assert books["accounting"]["attributed_bytes"] == 57 * MIB
    assert books["accounting"]["unmeasured_processes"] == 0
    assert row(document, 301)["vram_bytes"] == 7 * MIB
    assert row(document, 301)["shared_with"] == [300]
    assert source(document, row(document, 300), "vram_bytes").startswith("null:shared")


def test_shared_with_is_symmetric(tmp_path: Path) -> None:
    fd = {4: (NODE, amd_client(9, "50 MiB"))}
    tree = (
        card(files=amdgpu()) + process(300, fd, ppid=20) + process(301, fd, ppid=300) + process(302, fd, ppid=301)
    )
    document = snapshot(host_of(tmp_path, tree))
    assert {pid: row(document, pid)["shared_with"] for pid in (300, 301, 302)} == {
        300: [301, 302],
        301: [300, 302],
        302: [300, 301],
    }
    assert [row(document, pid)["vram_bytes"] for pid in (300, 301, 302)] == [50 * MIB, 0, 0]
    assert source(document, row(document, 302), "vram_bytes") == "computed:inherited-client"


def test_a_process_that_inherited_one_client_keeps_its_own(tmp_path: Path) -> None:
    inherited, own = (NODE, amd_client(9, "50 MiB")), (NODE, amd_client(11, "8 MiB"))
    tree = card(files=amdgpu()) + process(300, {4: inherited}) + process(301, {4: inherited, 5: own}, ppid=300)
    document = snapshot(host_of(tmp_path, tree))
    assert row(document, 301)["vram_bytes"] == 8 * MIB
    assert source(document, row(document, 301), "vram_bytes").startswith("measured:")


def test_two_descriptors_without_a_client_id_may_be_one_client_or_two(tmp_path: Path) -> None:
    def anonymous(size: str) -> tuple[str, str]:
        text = client(3, "i915", resident_local0=size, shared_local0="0", resident_system0="0")
        return "/dev/dri/renderD128", text.replace("drm-client-id:\t3\n", "")

    two, one = {4: anonymous("16 MiB"), 5: anonymous("32 MiB")}, {4: anonymous("16 MiB")}
    tree = card(driver="i915", vendor="8086", device="56a0") + process(300, two) + process(301, one)
    document = snapshot(host_of(tmp_path, tree))
    assert source(document, row(document, 300), "vram_bytes").startswith("null:ambiguous")
    assert row(document, 301)["vram_bytes"] == 16 * MIB
