"""Commands of this machine: found where the system keeps them, whatever PATH says."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from gpusnap import live
from gpusnap.live import LiveHost

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("scripts with #! are not Windows'", allow_module_level=True)


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "npu-smi"
    path.write_text('#!/bin/sh\necho "$0 $*"\n')
    path.chmod(0o755)
    return path


def test_a_tool_outside_of_crons_path_is_found(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(live, "_SYSTEM_FOLDERS", (str(tool.parent),))
    assert LiveHost().run(["npu-smi", "info"], 5.0).stdout == f"{tool} info\n".encode()


def test_path_goes_first(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(live, "_SYSTEM_FOLDERS", ("/nowhere",))
    assert LiveHost().run(["npu-smi"], 5.0).stdout == f"{tool} \n".encode()


def test_what_is_nowhere_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError):
        LiveHost().run(["npu-smi-that-is-nowhere"], 5.0)
