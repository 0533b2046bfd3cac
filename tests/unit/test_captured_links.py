"""Links of a kept machine lead where they led on the machine: from /proc into /dev, from /sys into /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusnap.captured import CapturedHost

TREE = b"""\
--- proc/77/fd/5 -> /dev/gpu0
--- proc/77/fd/6 -> /dev/null
--- root/dev/gpu0 rdev=226:128
--- proc/99/root -> /sys/devices/x
--- sys/devices/x/vendor
0x1002
--- sys/class/drm/card0 -> ../../devices/x
"""


@pytest.fixture
def host(tmp_path: Path) -> CapturedHost:
    (tmp_path / "tree.txt").write_bytes(TREE)
    (tmp_path / "ioctls.json").write_text(
        '{"dev/dri/renderD128 xe.query.1": {"hex": "01ff"}, "dev/dri/renderD129 xe.query.1": {"errno": "EACCES"}}'
    )
    (tmp_path / "perf.json").write_text('{"10 0x0": [100, 600], "10 0x1": {"errno": "EPERM"}}')
    return CapturedHost(tmp_path)


def test_a_descriptor_of_a_node_has_the_nodes_number(host: CapturedHost) -> None:
    assert host.proc.stat("77/fd/5").rdev == (226, 128)


def test_a_descriptor_of_a_node_that_was_not_kept_is_missing(host: CapturedHost) -> None:
    with pytest.raises(FileNotFoundError):
        host.proc.stat("77/fd/6")


def test_an_absolute_link_into_another_tree_is_followed_there(host: CapturedHost) -> None:
    assert host.proc.read("99/root/vendor") == b"0x1002\n"
    assert host.sys.read("class/drm/card0/vendor") == b"0x1002\n"
    assert host.sys.real("class/drm/card0/vendor") == "devices/x/vendor"


def test_kept_queries_answer_or_fail_as_they_did(host: CapturedHost) -> None:
    assert host.drm_query("/dev/dri/renderD128", "xe", 1) == b"\x01\xff"
    with pytest.raises(PermissionError):
        host.drm_query("/dev/dri/renderD129", "xe", 1)
    assert host.opened == ["root/dev/dri/renderD128 xe.query.1", "root/dev/dri/renderD129 xe.query.1"]


def test_a_kept_counter_moves_with_the_samples(host: CapturedHost) -> None:
    counter = host.perf_counter(10, 0, 0)
    assert counter.read() == (100, 0)
    host.sleep(0.5)
    assert counter.read() == (600, 500_000_000)
    with pytest.raises(PermissionError):
        host.perf_counter(10, 1, 0)
