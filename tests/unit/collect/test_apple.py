"""Macs: quirks of `ioreg`'s property lists and what public reports say must not be guessed."""

from __future__ import annotations

import json
import plistlib
from pathlib import Path
from typing import Any

import pytest

from gpusnap.captured import CapturedHost
from gpusnap.collect import Collector
from gpusnap.collect.ioreg import Client, UnknownPlist, parse_accelerators
from gpusnap.collect.options import CollectOptions
from tests.snapping import run_gpusnap
from tests.unit.collect.taking import source, taken

MACHINES = Path(__file__).parents[2] / "machines"
IOREG = "ioreg -a -r -l -w 0 -c IOAccelerator"
SYSCTL = "sysctl hw.memsize iogpu.wired_limit_mb"
GIB = 1 << 30


def client(entry: int, creator: object, *times: object) -> dict[str, Any]:
    usage = [{"API": "Metal", "accumulatedGPUTime": time} for time in times]
    return {"IORegistryEntryID": entry, "IOUserClientCreator": creator, "AppUsage": usage}


def accelerator(*clients: dict[str, Any], **statistics: Any) -> bytes:
    entry = {
        "IOClass": "AGXAcceleratorG14X",
        "model": "Apple M2 Max",
        "IOGeneralInterest": "IOCommand is not serializable",
        "PerformanceStatistics": {"Device Utilization %": 40, "In use system memory": 19 * GIB, **statistics},
        "IORegistryEntryChildren": list(clients),
    }
    return plistlib.dumps([entry])


def mac(folder: Path, *plists: bytes, sizes: str = "hw.memsize: 34359738368\n", **raw: Any) -> CapturedHost:
    (folder / "machine.json").write_text(json.dumps({"platform": "macos", "own_pid": 999}))
    commands: dict[str, Any] = {SYSCTL: {"stdout": sizes, "stderr": "sysctl: unknown oid 'iogpu.wired_limit_mb'"}}
    for step, plist in enumerate(plists, 1):
        suffix = "" if step == 1 else f".{step}"
        commands[IOREG] = {"stdout": plist.decode("latin-1")}
        (folder / f"commands{suffix}.json").write_text(json.dumps(commands))
    (folder / "raw.json").write_text(json.dumps({key.replace("_", " "): value for key, value in raw.items()}))
    return CapturedHost(folder)


def test_clients_of_one_process_are_added_and_odd_ones_left_out() -> None:
    nested = {"IORegistryEntryChildren": [client(5, "pid 43, x", 7)]}
    text = accelerator(
        client(1, "pid 42, render", 100, 20),
        client(2, "pid -1, kernel", 5),
        client(3, "render", 5),
        client(4, "pid 44, y", "IOCommand is not serializable", -1717043200),
        {"IOUserClientCreator": "pid 45, z"},
        nested,
    )
    (found,) = parse_accelerators(text)
    assert found.clients == [Client(1, 42, 120), Client(4, 44, 0), Client(5, 43, 7)]


def test_nothing_printed_is_no_accelerator() -> None:
    """A virtual machine: exit code 0, no output (all-smi#337 made zeros of it)."""
    assert parse_accelerators(b"\n") == []


@pytest.mark.parametrize(
    "text",
    [
        b"not xml",
        accelerator(client(1, "pid 42, render", 100))[:-40],
        plistlib.dumps({"a": 1}),
        b'<?xml version="1.0"?><plist version="1.0"><integer>x</integer></plist>',
        b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "b">]><plist version="1.0"><string>&a;</string></plist>',
    ],
)
def test_what_is_no_list_of_entries_fails_the_backend(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(UnknownPlist):
        parse_accelerators(text)
    document = taken(mac(tmp_path, text))
    assert [(row["name"], row["status"]) for row in document["backends"]] == [("apple", "failed")]
    assert document["processes"] is None


def test_report_106_memory_is_unified_and_nothing_is_guessed_from_rss(tmp_path: Path) -> None:
    """asitop#55: M2, 32 GiB, llama-server with 18 GiB RSS; claude-code#35804: RSS is no stand-in."""
    facts = {"create_time": 1796030000.0, "name": "llama-server", "ppid": 1, "rss": 18 * GIB, "cpu_seconds": 1.0}
    host = mac(
        tmp_path,
        accelerator(client(1, "pid 42, llama-server", 100)),
        sizes="hw.memsize: 34359738368\niogpu.wired_limit_mb: 24576\n",
        process_42=facts,
        footprint_42={"errno": "EACCES"},
    )
    document = taken(host)
    (card,), (row,) = document["adapters"], document["processes"]
    assert card["memory"]["kind"] == "unified"
    assert card["memory"]["total_bytes"] == 32 * GIB
    assert card["memory"]["shared_total_bytes"] == 24 * GIB  # the working set's limit is not the total
    assert card["memory"]["free_bytes"] is None
    assert (row["vram_bytes"], row["spill_bytes"], row["rss_bytes"]) == (None, None, 18 * GIB)
    assert source(document, row, "vram_bytes") == "null:unified-memory"
    assert source(document, row, "spill_bytes").startswith("null:no-permission")


def test_report_124_process_figures_that_a_mac_does_not_tell_are_null_with_a_reason() -> None:
    """htop#1597."""
    document = taken(CapturedHost(MACHINES / "mac-m5pro"), window=0.0)
    for row in document["processes"]:
        for leaf in ("vram_bytes", "vram_shared_bytes", "gpu_percent", "engines_percent.graphics"):
            assert source(document, row, leaf).startswith("null:"), leaf
    shown = run_gpusnap("ps", "--replay", str(MACHINES / "mac-m5pro")).stdout.decode()
    assert "unified" in shown
    assert any(" 17.5 " in line and "mlx_lm.server" in line for line in shown.splitlines())  # its ledger


def test_shares_by_client_and_by_entry_number(tmp_path: Path) -> None:
    """A client that vanished takes its time with it; an entry number that another process got is another's."""
    before = accelerator(client(1, "pid 42, a", 10**9), client(2, "pid 42, a", 10**9), client(3, "pid 43, b", 0))
    after = accelerator(client(1, "pid 42, a", 10**9 + 10**8), client(3, "pid 44, c", 10**8))
    document = taken(mac(tmp_path, before, after), window=0.5)
    shares = {row["pid"]: row["gpu_percent"] for row in document["processes"]}
    assert shares == {42: 20.0, 44: None}


def test_a_recorder_uses_the_sample_before(tmp_path: Path) -> None:
    plists = [accelerator(client(1, "pid 42, a", step * 10**9)) for step in range(3)]
    host = mac(tmp_path, *plists)
    collector = Collector(host, CollectOptions())
    shares = []
    for _ in range(3):
        shares.append(collector.sample()["processes"][0]["gpu_percent"])  # type: ignore[index]
        host.sleep(4.0)
    assert shares == [None, 25.0, 25.0]


@pytest.mark.parametrize(
    ("statistics", "leaf", "reason"),
    [
        ({"Device Utilization %": 137}, "load.gpu_percent", "null:out-of-range"),
        ({"In use system memory": -1717043200}, "memory.used_bytes", "null:out-of-range"),
        ({"In use system memory": 40 * GIB}, "memory.used_bytes", "null:out-of-range"),
        ({"In use system memory": "IOCommand is not serializable"}, "memory.used_bytes", "null:unknown-format"),
    ],
)
def test_figures_that_cannot_be_are_null(
    tmp_path: Path, statistics: dict[str, Any], leaf: str, reason: str
) -> None:
    document = taken(mac(tmp_path, accelerator(client(1, "pid 42, a", 1), **statistics)))
    (card,) = document["adapters"]
    assert source(document, card, leaf).startswith(reason)
    raw = next(iter(statistics.values()))
    if isinstance(raw, int):
        assert any(str(raw) in note["message"] for note in document["warnings"])


def test_no_clients_at_all_is_no_empty_list(tmp_path: Path) -> None:
    document = taken(mac(tmp_path, accelerator()))
    assert document["processes"] is None
    assert source(document, document["adapters"][0], "processes_listed").startswith("null:not-exposed")


def test_without_sysctl_there_is_no_total(tmp_path: Path) -> None:
    document = taken(mac(tmp_path, accelerator(client(1, "pid 42, a", 1)), sizes=""))
    assert document["adapters"][0]["memory"]["total_bytes"] is None
    assert document["adapters"][0]["memory"]["used_bytes"] == 19 * GIB
