"""Windows' counters: what each public report of wrong figures must come to. Shapes as in KB4490156's examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpusnap.codec import dumps
from gpusnap.collect import Collector
from gpusnap.collect.options import CollectOptions
from gpusnap.collect.pdh_names import engine_of, parse_instance
from tests.contract import check_contract
from tests.snapping import run_gpusnap
from tests.unit.collect.pdh_machine import (
    ACCESS_DENIED,
    CARD,
    GIB,
    INVALID_DATA,
    LUID,
    NO_OBJECT,
    PROCESS,
    engine,
    memory,
    pdh,
    used,
    windows,
)
from tests.unit.collect.taking import source, taken

ID = "pci:0000:03:00.0"
NVML_CARD = {
    "nvmlSystemGetDriverVersion": "566.36",
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex 0": None,
    "nvmlDeviceGetName 0": "NVIDIA RTX A4000",
    "nvmlDeviceGetUUID 0": "GPU-eeeeeeee-0000-4000-8000-000000000001",
    "nvmlDeviceGetPciInfo_v3 0": {"busId": "00000000:01:00.0"},
    "nvmlDeviceGetMemoryInfo_v2 0": {
        "total": 16 * GIB,
        "reserved": GIB // 4,
        "free": 10 * GIB,
        "used": 23 * GIB // 4,
    },
    "nvmlDeviceGetGraphicsRunningProcesses_v3 0": [],
}


def test_systeminformer_2389_resident_is_vram_and_committed_is_not(tmp_path: Path) -> None:
    """dwm at 14013 MB where 312 are resident; the estimate of what is paged stays within the card."""
    host = windows(tmp_path, {"pdh": pdh(memory(1180, 312 << 20, dedicated=14013 << 20), used(2 * GIB))})
    (row,) = taken(host)["processes"]
    assert (row["vram_bytes"], row["paged_bytes"]) == (312 << 20, (14013 - 312) << 20)


@pytest.mark.parametrize("said", [10 << 40, 2 << 60])
def test_systeminformer_2073_terabytes_after_sleep_are_no_figure(tmp_path: Path, said: int) -> None:
    """TaskExplorer#121: EB and PB."""
    document = taken(windows(tmp_path, {"pdh": pdh(memory(7, said, spill=said), used(said))}))
    (row,), (card,) = document["processes"], document["adapters"]
    for leaf in ("vram_bytes", "spill_bytes", "paged_bytes"):
        assert row[leaf] is None
        assert source(document, row, leaf) == "null:out-of-range"
    assert card["memory"]["used_bytes"] is None
    told = [note["message"] for note in document["warnings"] if note["code"] == "out-of-range"]
    assert len(told) == 4  # one of the card, three of the process: each with the raw number
    assert all(str(said) in message for message in told)


def test_systeminformer_802_new_numbers_after_a_driver_update_are_the_same_card(tmp_path: Path) -> None:
    new = LUID.replace("1D6F4", "77777")
    host = windows(
        tmp_path,
        {"pdh": pdh(memory(7, GIB), used(GIB))},
        {
            "pdh": pdh(memory(7, 2 * GIB, luid=new), used(2 * GIB, luid=new)),
            "adapters": [{**CARD, "luid": "0x00000000_0x00077777"}],
        },
    )
    collector = Collector(host, CollectOptions())
    first = json.loads(dumps(collector.sample()))
    host.sleep(10)
    second = json.loads(dumps(collector.sample()))
    for document, size in ((first, GIB), (second, 2 * GIB)):
        check_contract(document)
        assert [(row["id"], row["memory"]["used_bytes"]) for row in document["adapters"]] == [(ID, size)]
        assert [(row["adapter"], row["vram_bytes"]) for row in document["processes"]] == [(ID, size)]


def test_systeminformer_847_a_driver_without_counters_is_not_idle(tmp_path: Path) -> None:
    document = taken(windows(tmp_path, {"pdh": {"counters": {f"{PROCESS}Local Usage": {"error": NO_OBJECT}}}}))
    (card,) = document["adapters"]
    assert card["memory"]["used_bytes"] is None
    assert document["processes"] is None
    assert source(document, card, "processes_listed").startswith("null:wddm")
    wddm = next(row for row in document["backends"] if row["name"] == "wddm")
    assert (wddm["status"], wddm["detail"]) == ("absent", f"{PROCESS}Local Usage: PDH_CSTATUS_NO_OBJECT")


@pytest.mark.parametrize(("error", "status"), [(ACCESS_DENIED, "denied"), (0xC0000BBD, "failed")])
def test_counters_that_fail_are_no_empty_list(tmp_path: Path, error: int, status: str) -> None:
    document = taken(windows(tmp_path, {"pdh": {"counters": {f"{PROCESS}Local Usage": {"error": error}}}}))
    assert next(row["status"] for row in document["backends"] if row["name"] == "wddm") == status
    assert document["processes"] is None


def test_powertoys_48677_the_card_is_as_busy_as_its_busiest_engine(tmp_path: Path) -> None:
    parts = [memory(7, GIB), memory(8, GIB), engine(7, 0, "3D", 40.0), engine(8, 0, "3D", 41.5)]
    parts += [engine(7, 5, "Compute_0", 64.0), engine(8, 3, "Copy", 2.0)]
    raw = {"pdh": pdh(*parts)}
    document = taken(windows(tmp_path, raw, raw), window=0.5)
    (card,) = document["adapters"]
    assert card["load"]["gpu_percent"] == 81.5
    assert card["load"]["engines_percent"] == {
        "graphics": 81.5,
        "compute": 64.0,
        "copy": 2.0,
        "video_decode": None,
        "video_encode": None,
    }
    assert {row["pid"]: row["gpu_percent"] for row in document["processes"]} == {7: 64.0, 8: 41.5}


@pytest.mark.parametrize("said", [104.2, 118.0, -3.0])
def test_powertoys_48710_what_cannot_be_is_null_and_told_once(tmp_path: Path, said: float) -> None:
    raw = {"pdh": pdh(memory(7, GIB), engine(7, 0, "3D", said))}
    document = taken(windows(tmp_path, raw, raw), window=0.5)
    (row,), (card,) = document["processes"], document["adapters"]
    assert (row["gpu_percent"], card["load"]["gpu_percent"]) == (None, None)
    assert source(document, row, "gpu_percent") == "null:out-of-range"
    assert any(str(said) in note["message"] and note["pid"] == 7 for note in document["warnings"])


def test_the_first_collection_has_no_shares(tmp_path: Path) -> None:
    raw = {"pdh": pdh(memory(7, GIB), engine(7, 0, "3D", None, INVALID_DATA))}
    document = taken(windows(tmp_path, raw))
    (row,) = document["processes"]
    assert row["vram_bytes"] == GIB
    assert source(document, row, "gpu_percent") == "null:needs-two-samples"
    assert source(document, document["adapters"][0], "load.gpu_percent") == "null:needs-two-samples"


def test_report_112_nvml_cannot_but_the_processes_are_listed(tmp_path: Path) -> None:
    """nvitop#55: N/A for every process; one tool dropped such rows and printed "0 compute processes"."""
    calls: dict[str, Any] = {
        **NVML_CARD,
        "nvmlDeviceGetComputeRunningProcesses_v3 0": [{"pid": p, "usedGpuMemory": None} for p in (11, 12, 13)],
    }
    raw = {"pdh": {"counters": {f"{PROCESS}Local Usage": {"error": NO_OBJECT}}}, "adapters": []}
    document = taken(windows(tmp_path, raw, calls=calls))
    assert [row["pid"] for row in document["processes"]] == [11, 12, 13]
    for row in document["processes"]:
        assert row["vram_bytes"] is None
        assert source(document, row, "vram_bytes").startswith("null:wddm")
    assert document["adapters"][0]["accounting"]["unmeasured_processes"] == 3


def test_a_card_in_tcc_mode_is_measured_by_nvml(tmp_path: Path) -> None:
    """gputaskman#37: it is no graphics adapter, and has no counters."""
    calls: dict[str, Any] = {
        **NVML_CARD,
        "nvmlDeviceGetComputeRunningProcesses_v3 0": [{"pid": 11, "usedGpuMemory": 5 * GIB}],
    }
    document = taken(windows(tmp_path, {"pdh": pdh(memory(7, GIB), used(GIB))}, calls=calls))
    display, compute = document["adapters"]
    assert (display["id"], compute["id"]) == (ID, NVML_CARD["nvmlDeviceGetUUID 0"])
    tcc = next(row for row in document["processes"] if row["adapter"] == compute["id"])
    assert (tcc["pid"], tcc["vram_bytes"]) == (11, 5 * GIB)
    assert source(document, tcc, "vram_bytes") == "measured:nvml.ComputeRunningProcesses"


def test_warnings_name_a_card_as_the_document_does(tmp_path: Path) -> None:
    nvidia = {**CARD, "vendor_id": 0x10DE, "pci": "0000:01:00.0"}
    raw = {"pdh": pdh(memory(7, 40 * GIB), used(GIB)), "adapters": [nvidia]}
    document = taken(windows(tmp_path, raw, calls={**NVML_CARD, "nvmlDeviceGetComputeRunningProcesses_v3 0": []}))
    (card,) = document["adapters"]
    assert card["id"] == NVML_CARD["nvmlDeviceGetUUID 0"]
    # NVML's reserved part is no part of what Windows counts.
    assert card["memory"]["reserved_bytes"] is None
    assert source(document, card, "memory.reserved_bytes").startswith("null:wddm")
    assert card["accounting"]["reserved_bytes"] == 0
    assert {note["adapter"] for note in document["warnings"]} == {card["id"]}


def test_two_rows_of_one_name_are_nobodys(tmp_path: Path) -> None:
    raw = {"pdh": pdh(memory(7, GIB), memory(7, GIB, luid=f"{LUID}#1"), used(2 * GIB))}
    document = taken(windows(tmp_path, raw))
    (row,) = document["processes"]
    assert row["vram_bytes"] is None
    assert source(document, row, "vram_bytes").startswith("null:ambiguous")


def test_linked_adapters_are_one(tmp_path: Path) -> None:
    second = LUID.replace("phys_0", "phys_1")
    parts = [memory(7, GIB), memory(7, 2 * GIB, luid=second), used(2 * GIB), used(3 * GIB, luid=second)]
    document = taken(windows(tmp_path, {"pdh": pdh(*parts)}))
    assert document["processes"][0]["vram_bytes"] == 3 * GIB
    assert document["adapters"][0]["memory"]["used_bytes"] == 5 * GIB


@pytest.mark.parametrize(
    ("integrated", "dedicated", "kind"),
    [
        (None, 128 << 20, "integrated"),
        (None, 8 * GIB, "discrete"),
        (True, 96 * GIB, "integrated"),
        (False, 0, "discrete"),
    ],
)
def test_memory_of_an_integrated_adapter_is_the_systems(
    tmp_path: Path, integrated: bool | None, dedicated: int, kind: str
) -> None:
    """gputaskman#54, #63: a carve-out is no VRAM."""
    adapter = {**CARD, "integrated": integrated, "dedicated_bytes": dedicated}
    document = taken(windows(tmp_path, {"pdh": pdh(memory(7, 64 << 20, spill=GIB)), "adapters": [adapter]}))
    (card,), (row,) = document["adapters"], document["processes"]
    assert card["kind"] == kind
    if kind == "integrated":
        assert card["memory"]["kind"] == "unified"
        assert (row["vram_bytes"], row["spill_bytes"]) == (None, GIB + (64 << 20))


def test_without_processes_nothing_is_listed(tmp_path: Path) -> None:
    document = taken(windows(tmp_path, {"pdh": pdh(memory(7, GIB), used(GIB))}), processes=False)
    assert document["processes"] is None
    assert document["adapters"][0]["memory"]["used_bytes"] == GIB


@pytest.mark.parametrize(
    ("kind", "engine_name"),
    [
        ("3D", "graphics"),
        ("High Priority 3D", "graphics"),
        ("Graphics_1", "graphics"),
        ("Compute_0", "compute"),
        ("Compute 3", "compute"),
        ("High Priority Compute", "compute"),
        ("Cuda", "compute"),
        ("Copy", "copy"),
        ("VideoDecode", "video_decode"),
        ("Video Decode 1", "video_decode"),
        ("VideoEncode", "video_encode"),
        ("Video Encode 0", "video_encode"),
        ("Video Codec 0", None),
        ("True Audio 0", None),
        ("OFA_0", None),
        ("Timer 0", None),
        ("", None),
    ],
)
def test_engine_types_of_nvidia_and_amd(kind: str, engine_name: str | None) -> None:
    assert engine_of(kind) == engine_name
    found = parse_instance(f"PID_42_LUID_0x0000000A_0x0001D6F4_PHYS_0_ENG_11_ENGTYPE_{kind}")
    assert found is not None
    assert (found.pid, found.luid, found.engine, found.kind) == (42, "0x0000000a_0x0001d6f4", (0, 11), kind)


def test_other_instances_are_no_rows() -> None:
    for name in ("_total", "pid_1", "luid_0x1", "pid_x_luid_0x0_0x1_phys_0", ""):
        assert parse_instance(name) is None


@pytest.mark.parametrize(
    ("exe", "words", "category"),
    [
        ("C:\\ComfyUI\\python_embeded\\python.exe", ["python.exe", "-s", "ComfyUI\\main.py"], "ai"),
        ("C:\\Python312\\python.exe", ["python.exe", "-m", "vllm.entrypoints.openai.api_server"], "llm"),
        ("C:\\Program Files\\LM Studio\\LM Studio.exe", ["LM Studio.exe"], "llm"),
        (
            "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
            ["chrome.exe", "--type=gpu-process"],
            "browser",
        ),
        ("C:\\Windows\\System32\\dwm.exe", ["dwm.exe"], "desktop"),
        ("C:\\tools\\unheard-of.exe", ["unheard-of.exe"], "unknown"),
    ],
)
def test_programs_are_known_by_their_windows_names(
    tmp_path: Path, exe: str, words: list[str], category: str
) -> None:
    name = exe.rpartition("\\")[2]
    facts = {"create_time": 1.0, "name": name, "exe": exe, "cmdline": words, "cwd": "C:\\ComfyUI"}
    document = taken(windows(tmp_path, {"pdh": pdh(memory(7, GIB), used(GIB)), "process 7": facts}))
    assert document["processes"][0]["category"] == category


@pytest.mark.parametrize("machine", ["windows-nvidia-intel", "windows-amd", "windows-zh-two-3090"])
def test_no_finding_advises_what_only_linux_has(machine: str) -> None:
    """An Intel adapter is no unclaimed card, and a pid that just ended is no stuck context."""
    folder = Path(__file__).parents[2] / "machines" / machine
    findings = json.loads(run_gpusnap("explain", "--replay", str(folder), "--json").stdout)["findings"]
    assert {found["code"] for found in findings} <= {"spill", "unattributed-memory"}


def test_committed_counters_stay_out_of_the_document(tmp_path: Path) -> None:
    """5 GiB committed, 3 of them resident: the figures that Task Manager shows are for `explain` alone."""
    host = windows(tmp_path, {"pdh": pdh(memory(7, 3 * GIB, dedicated=5 * GIB), used(3 * GIB))})
    collector = Collector(host, CollectOptions())
    document = json.loads(dumps(collector.sample()))
    check_contract(document)
    (found,) = collector.committed(7).values()
    assert found["Dedicated Usage"].value == 5 * GIB
    assert "committed" not in json.dumps(document)
    assert collector.committed(8) == {}
