"""A look at what stands around the processes of a live snapshot: parents and listening sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusnap.explain.view import Surroundings
    from gpusnap.host import Host
    from gpusnap.model import Snapshot


def look_around(host: Host, document: Snapshot) -> Surroundings:
    from gpusnap.collect.surroundings import kin_of
    from gpusnap.explain.view import Parent, Surroundings

    pids = {row["pid"] for row in document["processes"] or ()}
    pids.update(holder["pid"] for card in document["adapters"] for holder in card["holders"] or ())
    kin = kin_of(host, pids)
    parents = {pid: Parent(*parent) for pid, parent in kin.parents.items()}
    return Surroundings(parents, kin.listening, kin.unseen)
