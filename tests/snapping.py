"""Run the real command as a user would, on a stand-in NVIDIA machine or none."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.contract import check_contract
from tests.surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.standin import Scenario


def run_gpusnap(
    *words: str,
    machine: Scenario | None = None,
    folder: Path | None = None,
    missing: Iterable[str] = (),
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
    this_machine: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """`folder` holds the stand-in's scenario file, `missing` the symbols that its library lacks.

    Without `machine` there is no card, or with `this_machine` what is really here.
    """
    environ = surroundings(this_machine=this_machine)
    if machine is not None:
        assert folder is not None
        environ |= machine.environment(folder, missing=missing)
    environ |= env or {}
    command = [sys.executable, "-m", "gpusnap", *words]
    return subprocess.run(command, env=environ, input=stdin, capture_output=True, timeout=timeout, check=False)


def snap(
    machine: Scenario | None, folder: Path, *words: str, code: int = 0, missing: Iterable[str] = ()
) -> dict[str, Any]:
    """The document of `gpusnap snap`, checked against the contract."""
    done = run_gpusnap("snap", *words, machine=machine, folder=folder, missing=missing)
    assert done.returncode == code, done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    check_contract(document)
    return document


def source(document: dict[str, Any], row: dict[str, Any], leaf: str) -> str:
    """The provenance entry of a row's leaf."""
    entry: str = document["provenance"][row["provenance"]][leaf]
    return entry
