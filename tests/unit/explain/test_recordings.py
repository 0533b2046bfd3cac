"""Recordings as documents: verdicts of the labelled set through the whole pass, findings over time, answers."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpusnap.explain.explanation import explain_history
from gpusnap.explain.history import History
from gpusnap.explain.subject import Chosen
from gpusnap.explain.verdict import LEAKS
from tests.builders import GIB, MIB, START, adapter, process, recording, snapshot
from tests.example_recordings import FOLDER, RECORDINGS, SOURCES, TRUTH, sourced
from tests.explaining import only
from tests.labelled_series import LEAK, LOAD, Labelled, labelled

if TYPE_CHECKING:
    from gpusnap.model import Explanation, Snapshot


def explain(documents: list[Snapshot], chosen: Chosen = Chosen("host")) -> Explanation:  # noqa: B008
    return explain_history(History().feed(documents), chosen, source="g.jsonl").document


def codes(explanation: Explanation) -> list[str]:
    return [one["code"] for one in explanation["findings"]]


def as_documents(series: Labelled) -> list[Snapshot]:
    """One process on a large card; the card holds 300 MiB more, so that both series rise."""
    documents = []
    for number, (time, value, load) in enumerate(series.samples):
        known = value is not None
        card = adapter(
            total=80 * GIB,
            used=value + 300 * MIB if value is not None else "null:device-busy",
            busy=load if load is not None else "null:not-supported",
        )
        row = process(77, value if value is not None else "null:device-busy", name="server", category="llm")
        documents.append(
            snapshot(
                [card],
                [row],
                at=START + time,
                uptime=86_400.0 + time,
                recording=recording(number + 1) if known else None,
            )
        )
    return documents


@pytest.mark.parametrize(
    "series", [one for one in labelled() if len(one.samples) <= 1000], ids=lambda one: one.name
)
def test_a_labelled_series_through_the_whole_pass(series: Labelled) -> None:
    """No false leak ever; which leaks must be found is held by test_verdict's share over all of them."""
    explanation = explain(as_documents(series))
    found = [code for code in codes(explanation) if code in LEAKS]
    if series.truth == LEAK:
        assert len(found) <= 1, "a process's leak is not told a second time as the card's"
    else:
        assert found == []
        assert all(row["verdict"] not in LEAKS for row in explanation["series"])
    if series.truth == LOAD and "waves" not in series.name:
        assert "grows-under-load" in codes(explanation)


def test_a_leak_names_the_process_its_beginning_and_its_slope() -> None:
    # 100 samples a minute apart, level for 40, then +30 MiB each: 1.8 GiB an hour.
    documents = []
    for step in range(100):
        held = 2 * GIB + max(0, step - 40) * 30 * MIB
        documents.append(
            snapshot(
                [adapter(used=held + 500 * MIB, busy=50)],
                [process(882, held, name="ollama", user="ollama")]
                + ([process(900, GIB // 8, name="agent", start_ticks=99)] if step >= 40 else []),
                at=START + 60 * step,
                uptime=1000.0 + 60 * step,
            )
        )
    explanation = explain(documents)
    (leak,) = [one for one in explanation["findings"] if one["code"] == "leak"]
    assert leak["subject"]["pid"] == 882
    assert "ollama (pid 882)" in explanation["answer"]
    assert explanation["answer"].startswith("GPU 0 loses about 1.8 GiB an hour: a leak in ollama")
    row = next(row for row in explanation["series"] if row["pid"] == 882)
    assert row["slope_bytes_per_hour"] == pytest.approx(30 * MIB * 60, rel=0.02)
    assert row["since"] is not None
    assert "2026-11-30T12:3" <= row["since"] <= "2026-11-30T12:45"
    assert any("agent (pid 900) started" in line for line in leak["evidence"])
    assert "or before" not in f"{explanation['answer']} {leak['evidence']}", "it was level for 40 samples"


def climbing(step: int, *, first: int = 0) -> Snapshot:
    """A process that is there from sample `first` on and holds 30 MiB more in each, from the beginning."""
    held = 2 * GIB + step * 30 * MIB
    rows = [process(882, held, name="ollama", user="ollama")] if step >= first else []
    card = adapter(used=held + 500 * MIB if rows else 500 * MIB, busy=50)
    return snapshot([card], rows, at=START + 60 * step, uptime=1000.0 + 60 * step)


def test_a_leak_that_the_first_sample_shows_already_began_then_or_before() -> None:
    explanation = explain([climbing(step) for step in range(60)])
    assert explanation["answer"].startswith(
        "GPU 0 loses about 1.8 GiB an hour: a leak in ollama (pid 882), begun "
    )
    assert "begun at or before 12:00Z" in explanation["answer"]
    assert "begun at or before the sample of 2026-11-30 12:00Z" in only(explanation, "leak")["evidence"]


def test_a_leak_of_a_process_that_was_seen_to_start_did_not_begin_before_it() -> None:
    explanation = explain([climbing(step, first=20) for step in range(100)])
    assert "begun at the sample of 2026-11-30 12:20Z" in only(explanation, "leak")["evidence"][-2]
    assert "or before" not in explanation["answer"]


def test_a_start_is_remembered_however_many_processes_came_and_went_before() -> None:
    documents = []
    for step in range(760):
        document = climbing(step, first=680)
        passing = [process(10_000 + 4 * step + n, MIB, start_ticks=step + 1) for n in range(4)]
        rows = snapshot([adapter()], passing)["processes"]
        assert rows is not None
        document["processes"] = [*(document["processes"] or []), *rows]
        documents.append(document)
    evidence = only(explain(documents), "leak")["evidence"]
    assert any(line.startswith("begun at the sample of 2026-11-30 23:20Z") for line in evidence), evidence


def test_advice_names_the_file_as_it_was_given() -> None:
    history = History(source="night of the 30th.jsonl").feed([climbing(step) for step in range(60)])
    advice = only(explain_history(history).document, "leak")["advice"]
    assert advice[-1] == "Report it with: gpusnap explain 'night of the 30th.jsonl' --format html"


def losing(lost: range, count: int = 12) -> list[Snapshot]:
    """A card that the driver has lost in these samples, a minute apart from 12:00Z."""
    gone = adapter(0, used="null:device-lost", listed="null:device-lost", leaves={"health": "lost"})
    return [
        snapshot(
            [gone if step in lost else adapter(0, used=GIB)], [], at=START + 60 * step, uptime=60.0 * step + 9
        )
        for step in range(count)
    ]


def test_a_card_that_is_lost_says_the_first_sample_without_it() -> None:
    explanation = explain(losing(range(7, 12)))
    finding = only(explanation, "lost-card")
    assert finding["severity"] == "critical"
    assert finding["evidence"][1:] == ["lost since 2026-11-30 12:07Z", "lost in 5 of 12 samples"]
    assert explanation["answer"].startswith("GPU 0 is lost since 2026-11-30 12:07Z: ")


def test_a_card_that_was_lost_from_the_first_sample_on_may_be_so_for_longer() -> None:
    explanation = explain(losing(range(12)))
    assert (
        "lost since 2026-11-30 12:00Z or before (the first sample)" in only(explanation, "lost-card")["evidence"]
    )


def test_a_card_that_came_back_is_a_warning_with_its_times() -> None:
    explanation = explain(losing(range(3, 6)))
    finding = only(explanation, "lost-card")
    assert finding["severity"] == "warning"
    assert "lost from 2026-11-30 12:03Z until 12:06Z" in finding["evidence"]
    assert explanation["answer"] == "GPU 0 was lost from 2026-11-30 12:03Z until 12:06Z."


def test_programs_that_start_one_after_the_other_are_no_leak_of_the_card() -> None:
    documents = []
    for step in range(120):
        rows = [process(100 + n, GIB, start_ticks=n, name=f"job{n}") for n in range(step // 10 + 1)]
        documents.append(
            snapshot(
                [adapter(total=24 * GIB, used=len(rows) * GIB + 200 * MIB)],
                rows,
                at=START + 60 * step,
                uptime=60.0 * step,
            )
        )
    explanation = explain(documents)
    assert LEAKS.isdisjoint(codes(explanation))
    card = explanation["series"][0]
    assert (card["verdict"], card["max_bytes"]) == ("plateau", 12 * GIB + 200 * MIB)


def jobs_that_start(
    *, listed: str = "complete", overhead: int = 200 * MIB, failed: int | None = None
) -> list[Snapshot]:
    """A job of 1 GiB more every ten minutes; the card holds `overhead` besides; one list may fail."""
    documents = []
    for step in range(120):
        rows = [process(100 + n, GIB, start_ticks=n, name=f"job{n}") for n in range(step // 10 + 1)]
        how = "null:failed" if step == failed else listed
        card = adapter(total=24 * GIB, used=len(rows) * GIB + overhead, listed=how, vendor="amd")
        documents.append(
            snapshot([card], None if step == failed else rows, at=START + 60 * step, uptime=60.0 * step)
        )
    return documents


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(jobs_that_start(failed=50), id="one list of 120 failed"),
        pytest.param(jobs_that_start(overhead=-300 * MIB), id="more attributed than used"),
        pytest.param(jobs_that_start(listed="partial"), id="some processes can never be read"),
    ],
)
def test_jobs_that_start_are_no_leak_either_where_the_books_are_not_perfect(documents: list[Snapshot]) -> None:
    explanation = explain(documents)
    assert LEAKS.isdisjoint(codes(explanation))
    assert explanation["series"][0]["verdict"] == "plateau"


@pytest.mark.parametrize("listed", ["null:not-supported", "partial"])
def test_steps_that_nobody_could_see_the_cause_of_are_not_called_a_leak(listed: str) -> None:
    """Programs of others that start one after the other look the same."""
    documents = [
        snapshot(
            [adapter(total=24 * GIB, used=GIB + step // 10 * GIB, listed=listed)],
            None if listed.startswith("null:") else [],
            at=START + 60 * step,
            uptime=60.0 * step,
        )
        for step in range(120)
    ]
    explanation = explain(documents)
    assert LEAKS.isdisjoint(codes(explanation))
    assert explanation["series"][0]["verdict"] == "not enough to tell"


@pytest.mark.parametrize("shard", [1, 6])
def test_weights_that_come_in_are_no_leak(shard: int) -> None:
    """`record --every 1s -- COMMAND` while it loads: 42 GiB in a minute, smoothly or shard by shard."""

    def loading(started: int) -> Explanation:
        documents = []
        for step in range(60):
            held = GIB + step // shard * shard * 700 * MIB
            row = process(7, held, start_ticks=started)
            card = adapter(total=80 * GIB, used=held + 300 * MIB)
            documents.append(snapshot([card], [row], at=START + step, uptime=86_400.0 + step))
        return explain(documents)

    young = loading(8_639_900)
    assert LEAKS.isdisjoint(codes(young))
    assert [row["verdict"] for row in young["series"]] == ["plateau", "not enough to tell"]
    old = loading(360_000)
    assert not LEAKS.isdisjoint(codes(old)), "a program that has run for a day loads no more"


def test_a_leak_outside_of_all_processes_is_the_cards() -> None:
    documents = [
        snapshot(
            [adapter(total=24 * GIB, used=3 * GIB + step * 40 * MIB)],
            [process(7, 2 * GIB)],
            at=START + 60 * step,
            uptime=60.0 * step,
        )
        for step in range(120)
    ]
    explanation = explain(documents)
    (leak,) = [one for one in explanation["findings"] if one["code"] in LEAKS]
    assert leak["subject"]["pid"] is None
    assert "no listed process holds" in leak["title"]


def test_an_exit_that_frees_nothing_is_a_residual() -> None:
    full = [adapter(total=24 * GIB, used=20 * GIB + 400 * MIB)]
    documents = [
        snapshot(full, [process(9021, 20 * GIB, user="bob")], at=START + 10 * n, uptime=10.0 * n)
        for n in range(20)
    ]
    documents += [snapshot(full, [], at=START + 10 * n, uptime=10.0 * n) for n in range(20, 40)]
    explanation = explain(documents)
    assert "residual" in codes(explanation)
    assert "python 9021 (bob) exited holding 20.0 GiB and 0 B came free" in explanation["answer"]
    assert explanation["series"][0]["verdict"] == "residual"


def test_what_happened_to_the_clock_and_the_machine_is_said() -> None:
    documents = []
    for step in range(60):
        uptime = 1000.0 + 10 * step + (600 if step >= 30 else 0)
        wall = START + 10 * step + (600 if step >= 30 else 0) + (874 if step >= 45 else 0)
        errors = step % 20
        documents.append(
            snapshot([adapter(used=GIB, leaves={"ecc.corrected_volatile": errors})], [], at=wall, uptime=uptime)
        )
    explanation = explain(documents)
    found = {one["code"]: one for one in explanation["findings"]}
    assert found["gap"]["title"] == "1 gap without samples"
    assert "10 min 10 s" in found["gap"]["evidence"][0]
    assert found["clock-step"]["evidence"] == ["+874 s at 2026-11-30 12:17Z"]
    assert found["counter-reset"]["title"] == "counters began anew 2 times"


def test_new_uncorrected_errors_during_a_recording_are_critical_and_come_first() -> None:
    documents = [
        snapshot(
            [adapter(used=15 * GIB, leaves={"ecc.uncorrected_aggregate": 37 + (step > 30)})],
            [process(1, 15 * GIB)],
            at=START + 60 * step,
            uptime=60.0 * step,
        )
        for step in range(60)
    ]
    first = explain(documents)["findings"][0]
    assert (first["code"], first["severity"]) == ("ecc-growth", "critical")
    assert first["evidence"][0] == "uncorrected_aggregate: 37 → 38"


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_the_examples_show_what_they_promise(name: str) -> None:
    truth = TRUTH[name]
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as stream:
        documents = [json.loads(line) for line in stream]
    assert documents == [json.loads(json.dumps(sourced(document))) for document in RECORDINGS[name]()]
    # Sources as a real recording names them.
    named = {source for document in documents for entry in document["provenance"] for source in entry.values()}
    assert {source for source in named if source.startswith("measured:")} <= set(SOURCES.values())
    history = History().feed(documents)
    explanation = explain_history(history).document
    row = next(row for row in explanation["series"] if row["pid"] == truth["pid"])
    assert row["verdict"] == truth["verdict"]
    assert len(history.timeline.gaps()) == truth["gaps"]
    assert max(card["unknown_samples"] for card in explanation["series"]) == truth["unknown"]
    if truth["cycles"]:
        (finding,) = [one for one in explanation["findings"] if one["code"] == truth["verdict"]]
        assert f"{truth['cycles']} " in " ".join([finding["title"], *finding["evidence"]])


def test_the_step_leaks_sentence_says_which_how_much_and_since_when() -> None:
    answer = explain(list(RECORDINGS["step-leak.jsonl.gz"]()))["answer"]
    assert "293 MiB with each of 20 load cycles: a step leak in ollama (pid 882)" in answer
    assert "begun at or before 2026-11-29 22:00Z" in answer
    assert answer.endswith("everything else comes back.")


def test_the_examples_are_small() -> None:
    for name in TRUTH:
        assert (FOLDER / name).stat().st_size < 300_000


def chosen_pid() -> list[dict[str, Any]]:
    return [
        dict(row)
        for row in explain(list(RECORDINGS["idle-but-full.jsonl.gz"]()), Chosen("process", pid=9811))["series"]
    ]


def test_one_process_of_a_recording_can_be_chosen() -> None:
    assert {row["pid"] for row in chosen_pid()} == {None, 9811}
