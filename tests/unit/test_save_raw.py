"""What `--save-raw` keeps gives the same document again, and names nobody."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.redact import redact
from gpusnap.raw_folder import write_raw
from gpusnap.raw_private import Private
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
    private = Private([], "Node12.example.org")
    assert private.text("Node12.example.org node12 NODE12 Node12 example.org") == "host host host host example.org"


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
    assert [without_names(row) for row in second["processes"]] == [
        without_names(row) for row in first["processes"]
    ]
    assert second["adapters"] == first["adapters"]
    assert second["backends"] == first["backends"]


def without_names(row: dict[str, Any]) -> dict[str, Any]:
    """An ordinary user is renamed in what was kept, and so is a folder of that name; root is not."""
    return {key: value for key, value in row.items() if key not in ("user", "cwd", "exe", "cmdline")}


def all_that_is_said(folder: Path) -> str:
    """Everything in a kept machine, what is written as escapes or base64 too."""
    said = []
    for path in folder.iterdir():
        data = path.read_bytes()
        said += [data, re.sub(rb"\\\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), data)]
        said += [base64.b64decode(found) for found in re.findall(rb"base64\n((?:[A-Za-z0-9+/=]+\n)+)", data)]
    return b"\n".join(said).decode("utf-8", "replace")


EXAMPLE = Path(__file__).parents[2] / "examples" / "machines" / "rtx4080-desktop"
ISSUED = "sk-proj-A8f3kQ9zLm2Xw7Rt5Yb1"


def changed(tmp_path: Path, more: str = "", *, user: str = "alice", hostname: str = "node12") -> Path:
    """The example machine with more files, under other names."""
    folder = tmp_path / "machine"
    shutil.copytree(EXAMPLE, folder)
    escaped = "".join(chr(byte) if byte < 0x7F else f"\\x{byte:02x}" for byte in user.encode())
    tree = (folder / "tree.txt").read_text().replace("alice", escaped) + more
    (folder / "tree.txt").write_text(tree)
    facts = json.loads((folder / "machine.json").read_text().replace("alice", user))
    facts["uname"]["hostname"] = hostname
    (folder / "machine.json").write_text(json.dumps(facts))
    return folder


def kept(machine: Path, tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """(the document of the machine, that of what was kept of it, all that is said there)."""
    options = options_of(machine)
    saving = SavingHost(CapturedHost(machine))
    before = document_of(saving, options)
    write_raw(saving, str(tmp_path / "raw"), redact)
    return before, document_of(CapturedHost(tmp_path / "raw"), options), all_that_is_said(tmp_path / "raw")


LOG = f"""llama_model_loader: loaded by carol on wolfsburg from /home/carol/m.gguf
main: api key {ISSUED} set by alice on WOLFSBURG.example.org
load_tensors:        CUDA0 model buffer size =  8148.38 MiB
srv: --api-key {ISSUED} --host wolfsburg
"""


@pytest.mark.parametrize("filler", [0, 2_200_000, 5_000_000], ids=["one part", "two that meet", "head and tail"])
def test_a_log_that_was_read_in_parts_says_no_names_and_no_secrets(filler: int, tmp_path: Path) -> None:
    lines = (filler // 100) * ("x" * 99 + "\n")
    more = f"--- proc/4711/fd/1 -> /home/alice/server.log\n--- root/home/alice/server.log\n{LOG}{lines}{LOG}"
    machine = changed(tmp_path, more, hostname="wolfsburg.example.org")
    before, after, said = kept(machine, tmp_path)
    for private in (ISSUED, "alice", "carol", "wolfsburg", "WOLFSBURG"):
        assert private not in said
    (was,) = [row for row in before["processes"] if row["pid"] == 4711]
    (now,) = [row for row in after["processes"] if row["pid"] == 4711]
    assert now["llm"] == was["llm"]
    assert "model buffer size =  8148.38 MiB" in said


def test_a_name_that_is_not_ascii_is_replaced_too(tmp_path: Path) -> None:
    _, after, said = kept(changed(tmp_path, user="jürgen"), tmp_path)
    assert "jürgen" not in said
    assert after["processes"][0]["cwd"].startswith("/home/user")


@pytest.mark.parametrize("user", ["c", "ngl", "nvidia", "ollama"])
def test_a_name_like_an_options_or_a_drivers_does_not_change_the_machine(user: str, tmp_path: Path) -> None:
    before, after, _ = kept(changed(tmp_path, user=user), tmp_path)
    for document in (before, after):
        for row in document["processes"]:
            for leaf in ("user", "exe", "cmdline", "cwd", "model"):
                del row[leaf]
    assert after["processes"] == before["processes"]
    assert after["adapters"] == before["adapters"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    done = run_gpusnap("snap", "--save-raw", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"gpusnap snap: --save-raw {tmp_path}: not an empty folder".encode()]
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
