"""What `--save-raw` keeps gives the same document again, and names nobody."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.redact import redact
from gpusnap.raw_folder import Private, write_raw
from gpusnap.saving import SavingHost
from tests.snapping import run_gpusnap
from tests.standin import Card, Proc, Scenario
from tests.unit.test_machines import MACHINES, options_of

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions

TIMES = ("taken_at", "uptime_seconds", "duration_seconds", "window_seconds")


def document_of(host: Any, options: CollectOptions) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collect(host, options)))
    return document


@pytest.mark.parametrize("machine", MACHINES, ids=lambda folder: folder.name)
@pytest.mark.parametrize("window", [0.0, 0.25])
def test_a_kept_machine_gives_the_same_document(machine: Path, window: float, tmp_path: Path) -> None:
    options = options_of(machine)
    options.window = window
    options.holders = True
    saving = SavingHost(CapturedHost(machine))
    before = document_of(saving, options)
    write_raw(saving, str(tmp_path / "raw"), redact)
    after = document_of(CapturedHost(tmp_path / "raw"), options)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "raw").iterdir()).decode("utf-8", "replace")
    assert not re.search(r"(?<![A-Za-z0-9_])alice(?![A-Za-z0-9_])", kept)
    # People and the host have other names now; everything else is the same.
    users = {str(name) for name in saving.users.values() if name}
    users |= {row["user"].rpartition("\\")[2] for row in before["processes"] or () if row["user"]}
    homes = set(re.findall(r"/home/([A-Za-z0-9_-]+)", json.dumps(before)))
    names = sorted(n for n in users | homes if n not in ("root", "nobody", "SYSTEM", "DWM-1", "_windowserver"))
    private = Private(names, before["host"]["hostname"])
    for row in before["processes"] or ():
        for leaf in ("user", "cwd", "exe", "cmdline", "model"):
            row[leaf] = json.loads(private.text(json.dumps(row[leaf], ensure_ascii=False)))
    for row in before["adapters"]:
        for holder in row["holders"] or ():
            holder["user"] = private.text(holder["user"]) if holder["user"] is not None else None
    before["host"]["hostname"] = "host"
    assert after == before


def test_the_hosts_name_is_replaced_as_a_word() -> None:
    private = Private(["bob"], "node12")
    assert (
        private.text("node12: bob@node12.lan /home/bob/bobby node123")
        == "host: user1@host.lan /home/user1/bobby node123"
    )


def test_nobody_is_named_in_what_is_kept(tmp_path: Path) -> None:
    machine = Scenario(cards=[Card(processes=[])])
    secret = "sk-proj-" + "A8f3kQ9zLm2Xw7Rt5Yb1"
    command = ["python3", "-c", "import time; time.sleep(60)", "--api-key", secret]
    child = subprocess.Popen(command, env={**os.environ, "HF_TOKEN": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm"})
    try:
        machine.cards[0].processes.append(Proc(child.pid, 1 << 30))
        target = tmp_path / "raw"
        done = run_gpusnap("snap", "--save-raw", str(target), machine=machine, folder=tmp_path)
        assert done.returncode == 0
        again = run_gpusnap("snap", "--replay", str(target))
    finally:
        child.kill()
        child.wait()
    kept = b"".join(path.read_bytes() for path in target.iterdir())
    assert secret.encode() not in kept
    assert b"hf_QwEr" not in kept
    first, second = json.loads(done.stdout), json.loads(again.stdout)
    for document in (first, second):
        for key in TIMES:
            document.pop(key)
    assert second["host"]["hostname"] == "host"
    second["host"]["hostname"] = first["host"]["hostname"]
    assert second["processes"] == first["processes"]
    assert second["adapters"] == first["adapters"]
    assert second["backends"] == first["backends"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    done = run_gpusnap("snap", "--save-raw", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"gpusnap snap: --save-raw {tmp_path}: not an empty folder".encode()]
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
