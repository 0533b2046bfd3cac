"""Ascend machines: what follows from npu-smi's and the DCMI library's answers; the library as a C stand-in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.codec import dumps
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from tests.contract import check_contract
from tests.snapping import run_gpusnap

MACHINES = Path(__file__).parents[2] / "machines"
STANDIN = Path(__file__).parents[2] / "standin" / "dcmi" / "dcmi.c"
MIB = 1 << 20


def taken(folder: Path, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dumps(collect(CapturedHost(folder), CollectOptions(**options))))
    check_contract(document)
    return document


def changed(tmp_path: Path, name: str, **files: Any) -> Path:
    """A machine of the tests with other files."""
    folder = tmp_path / name
    shutil.copytree(MACHINES / name, folder)
    for leaf, content in files.items():
        (folder / f"{leaf}.json").write_text(json.dumps(content))
    return folder


def source(document: dict[str, Any], row: dict[str, Any], leaf: str) -> str:
    return str(document["provenance"][row["provenance"]][leaf])


def test_eight_rows_without_the_longer_list_may_be_cut_short(tmp_path: Path) -> None:
    """PaddleCustomDevice#767: eight contexts on chip 0; npu-smi prints no ninth row."""
    commands = json.loads((MACHINES / "ascend-910b-eight-rows" / "commands.json").read_bytes())
    document = taken(
        changed(
            tmp_path,
            "ascend-910b-eight-rows",
            commands={
                "npu-smi info": commands["npu-smi info"],
                "npu-smi info -t proc-mem -i 0 -c 0": {"stdout": 'Failed to query "proc-mem" info.\n'},
            },
        )
    )
    full, idle = document["adapters"]
    assert full["processes_listed"] == "partial"
    assert idle["processes_listed"] == "complete"
    assert len(document["processes"]) == 8
    (note,) = document["warnings"]
    assert (note["code"], note["adapter"]) == ("list-truncated", "pci:0000:c1:00.0")


def test_a_card_that_the_table_does_not_name_has_no_empty_list(tmp_path: Path) -> None:
    printed = json.loads((MACHINES / "ascend-910b-eight-rows" / "commands.json").read_bytes())["npu-smi info"]
    cut = printed["stdout"].split("| No running processes")[0]
    document = taken(changed(tmp_path, "ascend-910b-eight-rows", commands={"npu-smi info": {"stdout": cut}}))
    idle = document["adapters"][1]
    assert idle["processes_listed"] == "unavailable"
    assert source(document, idle, "processes_listed").startswith("null:not-exposed")
    assert idle["accounting"]["unattributed_bytes"] is None


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("dcmi module initialize failed. ret is -8005", "failed"),
        ("dcmi module initialize failed. ret is -8002", "denied"),
        ("dcmi module initialize failed. ret is -8013", "denied"),
    ],
)
def test_errors_are_no_empty_machine(tmp_path: Path, words: str, status: str) -> None:
    """vllm-ascend#632, vllm-ascend#2698."""
    commands = {"npu-smi info": {"stdout": "", "stderr": words, "returncode": 1}}
    document = taken(changed(tmp_path, "ascend-busy-in-container", commands=commands))
    row = next(row for row in document["backends"] if row["name"] == "ascend")
    assert (row["status"], row["detail"]) == (status, f"npu-smi: {words}")
    assert document["processes"] is None


def test_a_tool_that_hangs_costs_its_backend(tmp_path: Path) -> None:
    document = taken(changed(tmp_path, "ascend-a3", commands={"npu-smi info": {"timeout": True}}))
    row = next(row for row in document["backends"] if row["name"] == "ascend")
    assert row["status"] == "timeout"
    assert document["processes"] is None


def test_report_014_what_no_process_holds_is_named_unattributed(tmp_path: Path) -> None:
    """vllm-ascend#89: usage beyond the engine's budget is a figure of its own, given to no process."""
    table = (Path(__file__).parent / "npu_smi" / "910b_container_column_26.1.0.txt").read_text()
    table = table.replace("8676 / 65536", "37069/ 65536").replace("5175 ", "26214")
    document = taken(changed(tmp_path, "ascend-a3", commands={"npu-smi info": {"stdout": table}}))
    card = document["adapters"][0]
    assert card["memory"]["used_bytes"] == 37069 * MIB
    assert card["accounting"]["attributed_bytes"] == 26214 * MIB
    assert card["accounting"]["unattributed_bytes"] == (37069 - 26214) * MIB


def test_a_process_larger_than_the_chip_says_is_not_mended(tmp_path: Path) -> None:
    """The two tables are read at two moments: 30784 MB of a process on a chip with 30711 MB in use."""
    printed = json.loads((MACHINES / "ascend-910b-eight-rows" / "commands.json").read_bytes())["npu-smi info"]
    table = printed["stdout"].replace("27000", "30784")
    document = taken(changed(tmp_path, "ascend-910b-eight-rows", commands={"npu-smi info": {"stdout": table}}))
    card = document["adapters"][0]
    assert document["processes"][0]["vram_bytes"] == 30784 * MIB
    assert card["accounting"]["unattributed_bytes"] is None
    assert source(document, card, "accounting.unattributed_bytes") == "null:over-attributed"


def test_dcmi_gives_bytes_and_more_than_eight(tmp_path: Path) -> None:
    rows = [(4100 + n, 94_372_001 + n) for n in range(12)]
    chips = [{"card": 0, "chip": 0, "processes": rows}, {"card": 1, "chip": 0, "processes": {"error": -8255}}]
    document = taken(changed(tmp_path, "ascend-910b-eight-rows", raw={"dcmi": {"chips": chips}}))
    assert {row["pid"]: row["vram_bytes"] for row in document["processes"]} == dict(rows)
    assert document["adapters"][0]["processes_listed"] == "complete"
    first = document["processes"][0]
    assert source(document, first, "vram_bytes") == "measured:dcmi.device_resource_info"
    # The chip for which the library does not answer keeps what npu-smi prints.
    assert document["adapters"][1]["processes_listed"] == "complete"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dcmi")
    built = folder / "libdcmi.so"
    flags = ("-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", str(built), str(STANDIN)], check=True)
    return folder


def ask_library(monkeypatch: pytest.MonkeyPatch, library: Path, **scenario: str) -> Any:
    from gpusnap.live_dcmi import read_dcmi

    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    for name, value in scenario.items():
        monkeypatch.setenv(name, value)
    return read_dcmi()


@pytest.mark.skipif(sys.platform != "linux", reason="the library exists for Linux only")
class TestLibrary:
    def test_bytes_of_processes_by_card_and_chip(self, monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
        """The stand-in's struct has the header's layout: an int, four bytes of padding, an unsigned long."""
        answer = ask_library(monkeypatch, library)
        assert answer == {
            "chips": [
                {"card": 2, "chip": 0, "processes": [[51001, 42_163_241_985], [51002, 94_371_841]]},
                {"card": 2, "chip": 1, "processes": []},
                {"card": 8217, "chip": 0, "processes": {"error": -8255}},
            ]
        }

    def test_a_library_that_prints_does_not_spoil_the_document(
        self, monkeypatch: pytest.MonkeyPatch, library: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        answer = ask_library(monkeypatch, library, DCMI_PRINTS="DrvMngGetConsoleLogLevel failed. ")
        assert len(answer["chips"]) == 3
        assert capfd.readouterr().out == ""

    def test_a_failed_init_is_said(self, monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
        assert ask_library(monkeypatch, library, DCMI_INIT="-8020") == {"error": -8020}

    def test_a_library_that_hangs_is_ended(self, monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
        monkeypatch.setattr("gpusnap.live_dcmi._TIMEOUT", 0.5)
        with pytest.raises(TimeoutError):
            ask_library(monkeypatch, library, DCMI_HANGS="1")

    def test_no_library_is_no_failure(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        from gpusnap.host import Unsupported

        with pytest.raises(Unsupported):
            ask_library(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("machine", "chips"),
    [("ascend-910b-eight-rows", []), ("ascend-310p-duo", []), ("ascend-a3", ["pci:0000:83:00.0"])],
)
def test_vllm_ascend_1903_an_idle_chips_3_gb_are_its_firmware(machine: str, chips: list[str]) -> None:
    """31 GB that nobody holds are a finding; the 2.8 to 3.4 GB of every idle chip are none."""
    done = run_gpusnap("explain", "--replay", str(MACHINES / machine), "--json")
    findings = json.loads(done.stdout)["findings"]
    assert [f["subject"]["adapter"] for f in findings if f["code"] == "unattributed-memory"] == chips


def test_a_tool_that_never_stops_talking_is_a_failure_and_no_missing_tool(tmp_path: Path) -> None:
    endless = {"npu-smi info": {"stdout": "x" * (5 * MIB)}}
    document = taken(changed(tmp_path, "ascend-910b-eight-rows", commands=endless))
    (row,) = [row for row in document["backends"] if row["name"] == "ascend"]
    assert (row["status"], row["detail"]) == ("failed", "npu-smi: more than 4,194,304 bytes of output")
