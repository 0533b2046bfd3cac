"""Every finding on a snapshot: cases that make it fire, and near misses that must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.explain.explanation import explain_snapshot
from gpusnap.explain.findings.registry import CODES
from gpusnap.explain.view import Parent, Surroundings, Viewer
from tests.builders import GIB, MIB, adapter, backend, holder, llm_facts, model_facts, process, snapshot

if TYPE_CHECKING:
    from gpusnap.model import Finding, Snapshot

ROOT = Viewer(0, "root")
ALICE = Viewer(1000, "alice")
QUIET = Surroundings(listening=frozenset())

# Every finding of the README's table, by hand.
FINDINGS = {
    *("unattributed-memory", "unlisted-holder", "zombie-or-dstate-holder", "orphan-workers", "idle-but-full"),
    *("bare-contexts", "context-only", "spill", "kv-dominates", "claim-contradicts-measurement"),
    *("bandwidth-bound", "starved", "kv-preemption", "throttled", "ecc-growth", "remap-pending", "remap-failed"),
    *(
        "lost-card",
        "unclaimed-card",
        "driver-mismatch",
        "reserved-by-driver",
        "cache-not-leak",
        "leak",
        "step-leak",
    ),
    *("grows-under-load", "residual", "sawtooth", "counter-reset", "clock-step", "gap"),
}


def test_every_finding_has_a_rule() -> None:
    assert set(CODES) == FINDINGS


def findings(document: Snapshot, viewer: Viewer = ALICE, around: Surroundings = QUIET) -> dict[str, Finding]:
    return {
        one["code"]: one for one in explain_snapshot(document, viewer=viewer, around=around).document["findings"]
    }


def codes(document: Snapshot, **more: Any) -> list[str]:
    return list(findings(document, **more))


CARD_80: dict[str, Any] = {"total": 80 * GIB, "model": "NVIDIA H100 80GB HBM3"}
LLAMA = llm_facts(
    server="llama-server", weights_bytes=8 * GIB, kv_cache_bytes=5 * GIB, context_tokens=32768, sequences=1
)
SMALL_MODEL_BIG_CACHE = llm_facts(server="vllm", weights_bytes=240 * MIB, kv_cache_bytes=19 * GIB)

FIRES: list[tuple[str, Snapshot]] = [
    ("unattributed-memory", snapshot([adapter(used=6 * GIB)], [process(1, GIB)])),
    ("unattributed-memory", snapshot([adapter(**CARD_80, used=10 * GIB)], [process(1, 5 * GIB)])),
    ("unattributed-memory", snapshot([adapter(used=6 * GIB, listed="null:not-supported")], None)),
    # A killed run leaves the same on each of its cards: that is no baseline.
    ("unattributed-memory", snapshot([adapter(0, used=6 * GIB), adapter(1, used=6 * GIB)], [])),
    ("unlisted-holder", snapshot([adapter(used=6 * GIB, holders=[holder(4711), holder(4712)])], [])),
    ("zombie-or-dstate-holder", snapshot([adapter(used=6 * GIB)], [process(31794, 5 * GIB, state="zombie")])),
    ("zombie-or-dstate-holder", snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, state="disk-sleep")])),
    ("zombie-or-dstate-holder", snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, name="null:exited")])),
    (
        "zombie-or-dstate-holder",
        snapshot([adapter(used=GIB, holders=[holder(9, state="zombie")])], []),
    ),
    ("orphan-workers", snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=1, user="bob")])),
    ("idle-but-full", snapshot([adapter(used=13 * GIB, busy=0)], [process(8, 13 * GIB)])),
    (
        "bare-contexts",
        snapshot(
            [adapter(0, used=2 * GIB), adapter(1, used=9 * GIB), adapter(2, used=9 * GIB)],
            [
                process(11, 300 * MIB),
                process(12, 300 * MIB),
                process(11, 8 * GIB, on=1),
                process(12, 8 * GIB, on=2),
            ],
        ),
    ),
    ("context-only", snapshot([adapter(used=GIB)], [process(8, 420 * MIB)])),
    (
        "spill",
        snapshot(
            [adapter(used=15 * GIB, vendor="amd")],
            [
                process(
                    8, 14 * GIB, provenance={"spill_bytes": "measured:fdinfo.drm-total-gtt"}, spill_bytes=2 * GIB
                )
            ],
        ),
    ),
    (
        "kv-dominates",
        snapshot([adapter(used=21 * GIB, total=24 * GIB)], [process(8, 20 * GIB, llm=SMALL_MODEL_BIG_CACHE)]),
    ),
    (
        "claim-contradicts-measurement",
        snapshot(
            [adapter(used=9 * GIB)],
            [process(8, 8 * GIB, provenance={"llm.kv_cache_bytes": "null:contradiction 52 GB"})],
        ),
    ),
    ("bandwidth-bound", snapshot([adapter(busy=99, leaves={"load.memory_bandwidth_percent": 91})], [])),
    ("starved", snapshot([adapter(used=14 * GIB, busy=7)], [process(8, 14 * GIB, cpu_percent=99.0)])),
    (
        "kv-preemption",
        snapshot(
            [adapter(used=9 * GIB)],
            [process(8, 9 * GIB, llm=llm_facts(kv_cache_bytes=4 * GIB, kv_cache_used_bytes=4 * GIB))],
        ),
    ),
    ("throttled", snapshot([adapter(leaves={"clocks.throttle_reasons": ["hw_thermal_slowdown"]})], [])),
    ("ecc-growth", snapshot([adapter(leaves={"ecc.uncorrected_volatile": 1})], [])),
    ("ecc-growth", snapshot([adapter(leaves={"ecc.corrected_volatile": 12000})], [])),
    ("remap-pending", snapshot([adapter(leaves={"ecc.remap_pending": True})], [])),
    ("remap-failed", snapshot([adapter(leaves={"ecc.remap_failed": True})], [])),
    ("lost-card", snapshot([adapter(used="null:device-lost", leaves={"health": "lost"})], [])),
    ("unclaimed-card", snapshot([adapter(used="null:not-exposed", leaves={"driver": None})], [])),
    (
        "driver-mismatch",
        snapshot(
            [], None, backends=[backend(status="failed", detail="driver/library version mismatch: 460.56, 460.73")]
        ),
    ),
    ("reserved-by-driver", snapshot([adapter(leaves={"memory.reserved_bytes": 308 * MIB})], [])),
    ("cache-not-leak", snapshot([adapter(used=9 * GIB)], [process(8, 9 * GIB, runtimes=["cuda", "pytorch"])])),
    (
        "cache-not-leak",
        snapshot([adapter(used=9 * GIB)], [process(8, 9 * GIB, cmdline=["python", "/srv/ComfyUI/main.py"])]),
    ),
]


@pytest.mark.parametrize(("code", "document"), FIRES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(FIRES)])
def test_it_fires(code: str, document: Snapshot) -> None:
    found = findings(document)
    assert code in found
    assert found[code]["evidence"]
    assert found[code]["advice"]


NEAR_MISSES: list[tuple[str, Snapshot]] = [
    # Below the larger of 512 MiB and 5 % of the card.
    ("unattributed-memory", snapshot([adapter(used=GIB + 500 * MIB)], [process(1, GIB)])),
    ("unattributed-memory", snapshot([adapter(**CARD_80, used=5 * GIB + 3 * GIB)], [process(1, 5 * GIB)])),
    # The idle sibling shows the same: the driver's own.
    (
        "unattributed-memory",
        snapshot([adapter(0, used=6 * GIB), adapter(1, used=GIB)], [process(1, 5 * GIB)]),
    ),
    # More attributed than used is not unattributed.
    ("unattributed-memory", snapshot([adapter(used=GIB)], [process(1, 2 * GIB)])),
    ("unlisted-holder", snapshot([adapter(used=6 * GIB, holders=[holder(7, "nvidia-persistenced", "root")])], [])),
    ("unlisted-holder", snapshot([adapter(used=6 * GIB, holders=[holder(4711)])], [process(4711, 6 * GIB)])),
    ("unlisted-holder", snapshot([adapter(used=MIB, holders=[holder(4711)])], [])),
    ("zombie-or-dstate-holder", snapshot([adapter(used=6 * GIB)], [process(7, 5 * GIB, state="running")])),
    (
        "zombie-or-dstate-holder",
        snapshot([adapter(used=6 * GIB)], [process(7, 5 * GIB, name="null:no-permission")]),
    ),
    ("orphan-workers", snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=77)])),
    (
        "orphan-workers",
        snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=1, systemd_unit="ollama.service")]),
    ),
    ("orphan-workers", snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=1)], container=True)),
    ("orphan-workers", snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=1, category="desktop")])),
    ("orphan-workers", snapshot([adapter(used=9 * GIB)], [process(8, 0, ppid=1)])),
    ("idle-but-full", snapshot([adapter(used=12 * GIB, busy=0)], [process(8, 12 * GIB)])),
    ("idle-but-full", snapshot([adapter(used=13 * GIB, busy=1)], [process(8, 13 * GIB)])),
    ("idle-but-full", snapshot([adapter(used=13 * GIB, busy="null:not-supported")], [process(8, 13 * GIB)])),
    # One process alone, or ranks whose only memory is here.
    ("bare-contexts", snapshot([adapter(0), adapter(1)], [process(11, 300 * MIB), process(11, 8 * GIB, on=1)])),
    ("bare-contexts", snapshot([adapter(0)], [process(11, 300 * MIB), process(12, 300 * MIB)])),
    ("context-only", snapshot([adapter(used=GIB)], [process(8, 0)])),
    ("context-only", snapshot([adapter(used=GIB)], [process(8, 420 * MIB, model=model_facts(name="tiny"))])),
    ("context-only", snapshot([adapter(used=GIB, busy=40)], [process(8, 420 * MIB)])),
    ("context-only", snapshot([adapter(used=GIB)], [process(8, 420 * MIB, type="graphics", category="desktop")])),
    # Spill that nobody measured, on a card with room, or where memory is one.
    (
        "spill",
        snapshot(
            [adapter(used=15 * GIB)],
            [process(8, 14 * GIB, spill_bytes=2 * GIB, provenance={"spill_bytes": "estimated:rss"})],
        ),
    ),
    ("spill", snapshot([adapter(used=5 * GIB)], [process(8, 4 * GIB, spill_bytes=2 * GIB)])),
    (
        "spill",
        snapshot(
            [adapter(used=15 * GIB, leaves={"memory.kind": "unified"})],
            [process(8, 14 * GIB, spill_bytes=2 * GIB)],
        ),
    ),
    ("kv-dominates", snapshot([adapter(used=15 * GIB)], [process(8, 14 * GIB, llm=LLAMA)])),
    ("claim-contradicts-measurement", snapshot([adapter(used=15 * GIB)], [process(8, 14 * GIB, llm=LLAMA)])),
    ("bandwidth-bound", snapshot([adapter(busy=99, leaves={"load.memory_bandwidth_percent": 60})], [])),
    ("starved", snapshot([adapter(used=14 * GIB, busy=85)], [process(8, 14 * GIB, cpu_percent=99.0)])),
    (
        "starved",
        snapshot([adapter(used=14 * GIB, busy=7)], [process(8, 14 * GIB, cpu_percent="null:needs-two-samples")]),
    ),
    (
        "kv-preemption",
        snapshot(
            [adapter(used=9 * GIB)],
            [process(8, 9 * GIB, llm=llm_facts(kv_cache_bytes=4 * GIB, kv_cache_used_bytes=GIB))],
        ),
    ),
    ("throttled", snapshot([adapter(leaves={"clocks.throttle_reasons": ["gpu_idle", "sw_power_cap"]})], [])),
    ("ecc-growth", snapshot([adapter(leaves={"ecc.corrected_volatile": 999, "ecc.uncorrected_volatile": 0})], [])),
    (
        "ecc-growth",
        snapshot([adapter(leaves={"ecc.uncorrected_aggregate": 37, "ecc.uncorrected_volatile": 0})], []),
    ),
    ("remap-pending", snapshot([adapter(leaves={"ecc.remap_pending": False, "ecc.remapped_rows": 3})], [])),
    ("remap-failed", snapshot([adapter(leaves={"ecc.remap_failed": False})], [])),
    ("lost-card", snapshot([adapter(used="null:failed", leaves={"health": "error"})], [])),
    ("unclaimed-card", snapshot([adapter(used="null:no-permission", leaves={"driver": "i915"})], [])),
    ("driver-mismatch", snapshot([], None, backends=[backend(status="failed", detail="driver not loaded")])),
    ("reserved-by-driver", snapshot([adapter(leaves={"memory.reserved_bytes": 255 * MIB})], [])),
    ("cache-not-leak", snapshot([adapter(used=9 * GIB, busy=50)], [process(8, 9 * GIB, runtimes=["pytorch"])])),
    ("cache-not-leak", snapshot([adapter(used=9 * GIB)], [process(8, 9 * GIB, runtimes=["cuda"])])),
    ("cache-not-leak", snapshot([adapter(used=9 * GIB)], [process(8, 9 * GIB, runtimes=["pytorch"], ppid=1)])),
]


@pytest.mark.parametrize(
    ("code", "document"), NEAR_MISSES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(NEAR_MISSES)]
)
def test_it_does_not_fire(code: str, document: Snapshot) -> None:
    assert code not in codes(document)


@pytest.mark.parametrize("document", [document for _, document in FIRES + NEAR_MISSES])
@pytest.mark.parametrize("viewer", [ROOT, ALICE, Viewer()])
def test_one_snapshot_never_says_leak(document: Snapshot, viewer: Viewer) -> None:
    explanation = explain_snapshot(document, viewer=viewer, around=QUIET).document
    over_time = {
        "leak",
        "step-leak",
        "grows-under-load",
        "residual",
        "sawtooth",
        "gap",
        "clock-step",
        "counter-reset",
    }
    assert over_time.isdisjoint(one["code"] for one in explanation["findings"])
    text = " ".join([explanation["answer"], *(one["title"] for one in explanation["findings"])])
    assert "leak" not in text


@pytest.mark.parametrize("viewer", [ROOT, ALICE, Viewer()])
def test_nobody_is_told_to_kill_a_list_that_holds_the_display_server(viewer: Viewer) -> None:
    document = snapshot(
        [
            adapter(
                used=9 * GIB, holders=[holder(900, "Xorg", "root"), holder(901, "python", "bob", state="zombie")]
            )
        ],
        [
            process(900, GIB, name="Xorg", user="root", category="desktop", ppid=1),
            process(8, 4 * GIB, ppid=1, user="bob"),
        ],
    )
    for one in findings(document, viewer=viewer).values():
        assert not any("kill" in said and "900" in said for said in one["advice"])


def test_an_orphan_on_a_working_card_may_be_a_detached_job() -> None:
    # nohup python train.py & exit: its parent is gone and it works.
    rows = [process(8, 8 * GIB, ppid=1, user="bob")]
    working = findings(snapshot([adapter(used=9 * GIB, busy=97)], rows), viewer=ALICE)["orphan-workers"]
    assert working["severity"] == "notice"
    assert "a job that nohup, setsid or disown detached has no parent either" in " ".join(working["evidence"])
    assert "please ask whether they are needed" in " ".join(working["advice"])
    idle = findings(snapshot([adapter(used=9 * GIB, busy=0)], rows))["orphan-workers"]
    assert idle["severity"] == "warning"
    assert "nohup" not in " ".join(idle["evidence"])
    # Its own load is surer than the card's, which another program may cause.
    rows = [process(8, 8 * GIB, ppid=1, busy=0)]
    document = snapshot([adapter(used=9 * GIB, busy=97)], rows)
    assert findings(document)["orphan-workers"]["severity"] == "warning"


def test_an_orphan_without_a_figure_is_no_reason_to_end_it() -> None:
    rows = [process(8, "null:device-busy", ppid=1, name="game")]
    assert "orphan-workers" not in codes(snapshot([adapter(used=9 * GIB)], rows))


def test_a_socket_that_could_not_be_looked_for_is_not_said_to_be_absent() -> None:
    document = snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=1, user="bob")])
    unseen = Surroundings(listening=frozenset(), unseen=frozenset({8}))
    said = " ".join(findings(document, around=unseen)["orphan-workers"]["evidence"])
    assert "whether it listens can't be seen without root" in said
    assert "no listening socket" not in said
    assert "no listening socket" in " ".join(findings(document)["orphan-workers"]["evidence"])


def test_cpu_time_near_zero_is_no_waiting_loop() -> None:
    for cpu, waits in ((0.0, False), (99.0, True)):
        rows = [process(8, 8 * GIB, ppid=1, cpu_percent=cpu)]
        said = " ".join(findings(snapshot([adapter(used=9 * GIB)], rows))["orphan-workers"]["evidence"])
        assert ("wait in a loop" in said) is waits


def test_memory_on_a_working_card_is_not_called_a_leftover() -> None:
    for busy, leftover in ((41, False), (0, True)):
        found = findings(snapshot([adapter(used=9 * GIB, busy=busy)], []))["unattributed-memory"]
        assert ("may be a leftover" in " ".join(found["advice"])) is leftover
    unmeasured = [process(8, "null:wsl")]
    found = findings(snapshot([adapter(used=9 * GIB, busy=0)], unmeasured))["unattributed-memory"]
    assert "leftover" not in " ".join(found["advice"])
    assert "up to 9.0 GiB in use" in " ".join(found["advice"])


def test_a_subreaper_counts_as_no_parent_and_a_listener_is_no_orphan() -> None:
    document = snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=2222)])
    reaped = Surroundings(parents={8: Parent(2222, "systemd")}, listening=frozenset())
    assert "orphan-workers" in codes(document, around=reaped)
    assert "orphan-workers" not in codes(document, around=reaped._replace(listening=frozenset({8})))
    shell = Surroundings(parents={8: Parent(2222, "bash")}, listening=frozenset())
    assert "orphan-workers" not in codes(document, around=shell)


def test_the_owner_is_told_what_to_do_and_others_what_to_send() -> None:
    document = snapshot([adapter(used=9 * GIB)], [process(8, 8 * GIB, ppid=1, user="bob")])
    (mine,) = findings(document, viewer=Viewer(1001, "bob"))["orphan-workers"]["advice"]
    assert mine.startswith("End them once you are sure")
    others = " ".join(findings(document, viewer=ALICE)["orphan-workers"]["advice"])
    assert 'To the admin: "GPU 0 on node12: 8.0 GiB held by pid 8 of bob, orphaned' in others
    assert "You can't: they are another user's." in others
    assert "kill" not in others
    unknown = " ".join(findings(document, viewer=Viewer())["orphan-workers"]["advice"])
    assert "As their owner or root: end them" in unknown


def test_the_worst_stands_first_and_health_before_memory() -> None:
    document = snapshot(
        [adapter(used=6 * GIB, leaves={"ecc.uncorrected_volatile": 1, "ecc.remap_pending": True})],
        [process(1, GIB, ppid=1)],
    )
    found = list(findings(document))
    assert found[:3] == ["ecc-growth", "remap-pending", "orphan-workers"]
