"""A backend whose device is not there is not imported, and its row says what the backend itself would say."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.collect.absent import TESTS, LazyBackend
from gpusnap.collect.options import CollectOptions
from gpusnap.collect.registry import BACKENDS, backends_for
from tests.unit.test_machines import MACHINES

if TYPE_CHECKING:
    from pathlib import Path

# Backends that leave it to `absent.py` to say so.
ONLY_THERE = {"tegra"}
CLASSES = {module: name for module, name, _ in BACKENDS}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", sorted(TESTS.keys() - ONLY_THERE))
def test_an_absent_device_is_told_in_the_backends_own_words(machine: Path, name: str) -> None:
    host, options = CapturedHost(machine), CollectOptions()
    backend = getattr(import_module(f"gpusnap.collect.backends.{name}"), CLASSES[name])
    assert (
        LazyBackend(name, host, lambda: backend(host, options)).read().backend
        == backend(host, options).read().backend
    )


def test_a_card_that_is_plugged_in_while_recording_is_met(tmp_path: Path) -> None:
    """No driver at the first sample; at the second an eGPU has come with its driver."""
    (tmp_path / "tree.txt").write_text("--- sys/bus/pci/devices/ dir\n")
    (tmp_path / "tree.2.txt").write_text("--- sys/bus/pci/drivers/amdgpu/ dir\n")
    host = CapturedHost(tmp_path)
    amdgpu = next(backend for backend in backends_for(host, CollectOptions()) if backend.name == "amdgpu")
    assert amdgpu.read().backend["status"] == "absent"
    host.sleep(1)
    assert amdgpu.read().backend["status"] == "ok"


def test_a_driver_folder_that_may_not_be_read_is_no_absence(tmp_path: Path) -> None:
    (tmp_path / "tree.txt").write_text(
        "--- sys/bus/pci/drivers/amdgpu !EACCES\n--- sys/bus/pci/drivers/xe !EACCES\n"
    )
    host = CapturedHost(tmp_path)
    rows = {backend.name: backend.read().backend["status"] for backend in backends_for(host, CollectOptions())}
    assert (rows["amdgpu"], rows["intel"], rows["ascend"]) == ("denied", "denied", "absent")
