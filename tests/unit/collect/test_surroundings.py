"""Parents and listening sockets, against this very process and a real child: the kernel is the witness."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpusnap.collect.surroundings import kin_of
from gpusnap.live import LiveHost

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' /proc")


def test_a_childs_parent_is_this_process() -> None:
    with subprocess.Popen(["sleep", "30"]) as child:
        try:
            kin = kin_of(LiveHost(None, None), [child.pid])
        finally:
            child.kill()
    name = open(f"/proc/{os.getpid()}/comm", encoding="ascii").read().strip()  # noqa: SIM115
    assert kin.parents == {child.pid: (os.getpid(), name)}
    assert kin.listening == frozenset()


def test_a_listening_socket_is_seen_and_a_connected_one_is_none() -> None:
    host = LiveHost(None, None)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert kin_of(host, [os.getpid()]).listening == frozenset()
        server.listen()
        assert kin_of(host, [os.getpid()]).listening == {os.getpid()}


def test_a_listening_unix_socket_counts_too(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        assert kin_of(LiveHost(None, None), [os.getpid()]).listening == {os.getpid()}


def test_a_process_that_is_gone_is_left_out() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert kin_of(LiveHost(None, None), [child.pid]) == ({}, frozenset(), frozenset())
