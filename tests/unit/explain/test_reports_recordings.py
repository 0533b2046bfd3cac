"""Public reports that only a recording answers: who held it for how long, does it leak, do errors grow.

The number in a test's name is the report's in the project's list of cases; figures quoted there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.builders import GIB, MIB, START, adapter, llm_facts, process, snapshot
from tests.explaining import codes, explain, only, recording, words

if TYPE_CHECKING:
    from gpusnap.model import Snapshot


def test_report_028_a_steady_aggregate_is_no_alarm() -> None:
    # wandb#9347: volatile 0, aggregate 37, one row remapped: a healthy card.
    ecc = {
        "ecc.uncorrected_volatile": 0,
        "ecc.corrected_volatile": 0,
        "ecc.corrected_aggregate": 37,
        "ecc.uncorrected_aggregate": 0,
        "ecc.remapped_rows": 1,
    }
    documents = [
        snapshot([adapter(used=GIB, leaves=ecc)], [process(1)], at=START + 60 * n, uptime=60.0 * n)
        for n in range(20)
    ]
    assert "ecc-growth" not in codes(explain(documents[0]))
    assert "ecc-growth" not in codes(recording(documents))
    # With an error both counters stand there with their meaning.
    worse = snapshot([adapter(used=GIB, leaves={**ecc, "ecc.uncorrected_volatile": 2})], [process(1)])
    said = words(only(explain(worse), "ecc-growth"))
    assert "volatile (since the driver was loaded): 0 corrected, 2 uncorrected" in said
    assert "aggregate (in the card's life): 37 corrected, 0 uncorrected" in said


def test_report_064_who_holds_a_card_for_a_day_at_zero_percent() -> None:
    # odh-manifests#265: 12 GiB held, 0 % in all samples of a day; never from a single snapshot.
    documents = held_for_a_day(16 * GIB)
    explanation = recording(documents)
    found = only(explanation, "idle-but-full")
    assert "python (pid 77, bob) held 12.0 GiB for 1 d 0 h, the card 0 % busy at most" in words(found)
    assert "0 % busy in all 145 samples" in explanation["answer"]
    single = only(explain(documents[-1]), "idle-but-full")
    assert "now" in single["title"]
    assert "1 d" not in single["title"]
    # On a card that is not full the holder is named too.
    roomy = recording(held_for_a_day(80 * GIB))
    assert "(pid 77, bob) held 12.0 GiB for 1 d 0 h" in roomy["answer"]


def held_for_a_day(total: int) -> list[Snapshot]:
    """A card of that size on which bob's process holds 12 GiB at 0 %, every ten minutes."""
    card, row = adapter(total=total, used=13 * GIB, busy=0), process(77, 12 * GIB, user="bob")
    return [snapshot([card], [row], at=START + 600 * step, uptime=600.0 * step) for step in range(145)]


def under_load(step: int) -> tuple[int, int]:
    """(used, load): +80 MiB in each busy sample, level in idle ones."""
    busy = step % 4 < 2
    return 8 * GIB + 80 * MIB * ((step // 4) * 2 + min(step % 4, 1) + 1), 70 if busy else 0


def test_report_082_growth_only_under_load_is_not_called_a_leak() -> None:
    # vllm#8413: 60 samples, idle it does not rise, called it does.
    documents = []
    for step in range(60):
        used, load = under_load(step)
        documents.append(
            snapshot(
                [adapter(total=24 * GIB, used=used, busy=load)],
                [process(5, used)],
                at=START + 60 * step,
                uptime=60.0 * step,
            )
        )
    explanation = recording(documents)
    found = only(explanation, "grows-under-load")
    assert {"leak", "step-leak"}.isdisjoint(codes(explanation))
    assert "it rises only in samples with load" in words(found)
    assert "0 B in idle ones" in words(found)
    # The first requests alone: it levels off, and nothing is said to grow.
    first = [documents[min(step, 12)] for step in range(60)]
    levelled = [
        {**document, "taken_at": documents[step]["taken_at"], "uptime_seconds": documents[step]["uptime_seconds"]}
        for step, document in enumerate(first)
    ]
    assert {"leak", "step-leak", "grows-under-load"}.isdisjoint(codes(recording(levelled)))  # type: ignore[arg-type]
    # Six samples are not enough to tell.
    assert recording(documents[:6])["series"][0]["verdict"] == "not enough to tell"


def test_report_100_growth_outside_of_the_cache_is_named_so() -> None:
    # llama.cpp#23446: with q8_0 caches a llama-server grows with each run, the cache itself does not.
    llm = llm_facts(server="llama-server", weights_bytes=8 * GIB, kv_cache_bytes=2 * GIB, kv_type_k="q8_0")
    documents = [
        snapshot(
            [adapter(total=24 * GIB, used=11 * GIB + 30 * MIB * step, busy=40)],
            [process(4711, 10 * GIB + 30 * MIB * step, name="llama-server", category="llm", llm=llm)],
            at=START + 60 * step,
            uptime=60.0 * step,
        )
        for step in range(100)
    ]
    found = only(recording(documents), "leak")
    assert "constant: weights 8.0 GiB, KV cache 2.0 GiB; what grows is compute buffers or other memory" in words(
        found
    )
