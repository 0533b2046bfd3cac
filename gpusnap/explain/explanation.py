"""From a snapshot, or a recording's history, to the explanation document. Pure: no host, no clock, no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import gpusnap
from gpusnap.explain.account import process_sentence, sentence
from gpusnap.explain.figures import card_figures, process_figures
from gpusnap.explain.findings.registry import in_card, in_document, in_history, ranked
from gpusnap.explain.process import context_rows, extra_figures, with_words
from gpusnap.explain.rows import card_name, rows_of
from gpusnap.explain.series import Judged, judge_all, row_of
from gpusnap.explain.several import several
from gpusnap.explain.story import answer_for_recording
from gpusnap.explain.subject import Chosen
from gpusnap.explain.unexplained import likely
from gpusnap.explain.view import CardView, Found, Surroundings, Viewer
from gpusnap.llm.aside import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.explain.history import History
    from gpusnap.llm.aside import Aside
    from gpusnap.model import Adapter, Explanation, Figure, Snapshot, Subject, Warning_

SCHEMA = "gpusnap.explanation/1"


class Explained(NamedTuple):
    """The document, and what text and pictures are drawn from."""

    document: Explanation
    snapshot: Snapshot
    cards: list[Adapter]
    judged: tuple[Judged, ...] = ()
    history: History | None = None
    aside: Aside = NOTHING
    # Adapter -> what its unattributed rest probably is.
    likely: Mapping[str, str] | None = None


def explain_snapshot(
    snapshot: Snapshot,
    chosen: Chosen = Chosen("host"),  # noqa: B008 - immutable
    *,
    source: str | None = None,
    viewer: Viewer = Viewer(),  # noqa: B008
    around: Surroundings = Surroundings(),  # noqa: B008
    contexts: Sequence[int] = (),
    aside: Aside = NOTHING,
) -> Explained:
    """The machine, one card, or one process on all its cards; `aside` is what a live look adds."""
    if chosen.pid is not None:
        return _explain_process(snapshot, chosen, source, viewer, around, contexts, aside)
    cards = [card for card in snapshot["adapters"] if chosen.adapter in (None, card["id"], card["parent"])]
    views = [CardView(snapshot, card, viewer, around) for card in cards]
    unmeasured = all(card["memory"]["used_bytes"] is None for card in cards)
    whole = in_document(snapshot) if chosen.kind == "host" or unmeasured else []
    findings = ranked([*whole, *(one for view in views for one in in_card(view))])
    causes = {view.card["id"]: cause for view in views if (cause := likely(view)) is not None}
    document = _document(
        _subject(chosen, source),
        _answer(snapshot, cards, findings),
        [*_figures(snapshot, cards, causes), *extra_figures(aside)],
        findings,
        [],
        snapshot["warnings"],
    )
    return Explained(document, snapshot, cards, likely=causes)


def _explain_process(
    snapshot: Snapshot,
    chosen: Chosen,
    source: str | None,
    viewer: Viewer,
    around: Surroundings,
    contexts: Sequence[int],
    aside: Aside,
) -> Explained:
    rows = [row for row in snapshot["processes"] or () if row["pid"] == chosen.pid]
    mine = {row["adapter"] for row in rows}
    cards = [card for card in snapshot["adapters"] if card["id"] in mine]
    findings = [one for card in cards for one in in_card(CardView(snapshot, card, viewer, around))]
    findings = ranked(one for one in findings if chosen.pid is not None and one.concerns(chosen.pid))
    figures = with_words(snapshot, rows, aside)
    subject = _subject(chosen, source)
    subject["adapter"] = rows[0]["adapter"] if len(rows) == 1 else None
    subject["start_ticks"] = rows[0]["start_ticks"]
    answer = process_sentence(snapshot, rows)
    document = _document(subject, answer, figures, findings, [], snapshot["warnings"])
    document["context"] = context_rows(snapshot, rows, contexts, aside)
    return Explained(document, snapshot, cards, aside=aside)


def explain_history(
    history: History,
    chosen: Chosen = Chosen("host"),  # noqa: B008
    *,
    source: str | None = None,
    viewer: Viewer = Viewer(),  # noqa: B008
) -> Explained:
    """A recording: the findings of its last sample that still hold, and what only a series can say."""
    last = history.last
    if last is None:
        raise ValueError("a recording without a sample")
    judged = [
        one
        for one in judge_all(history)
        if chosen.adapter in (None, one.adapter) and (chosen.pid is None or one.pid in (chosen.pid, None))
    ]
    cards = [card for card in last["adapters"] if chosen.adapter in (None, card["id"])]
    now = [one for card in cards for one in in_card(CardView(last, card, viewer))]
    series = [one for one in in_history(history, judged) if _concerns(one, chosen)]
    seen = {(one.finding["code"], one.finding["subject"]["adapter"]) for one in series}
    now = [one for one in now if (one.finding["code"], one.finding["subject"]["adapter"]) not in seen]
    findings = ranked([*series, *now])
    subject: Subject = {
        "kind": "recording",
        "adapter": chosen.adapter,
        "pid": chosen.pid,
        "start_ticks": None,
        "source": source,
    }
    document = _document(
        subject,
        answer_for_recording(history, judged, findings, cards),
        _figures(last, cards, {}),
        findings,
        judged,
        last["warnings"],
    )
    return Explained(document, last, cards, tuple(judged), history)


def _concerns(one: Found, chosen: Chosen) -> bool:
    subject = one.finding["subject"]
    return (chosen.adapter is None or subject["adapter"] in (None, chosen.adapter)) and (
        chosen.pid is None or subject["pid"] is None or one.concerns(chosen.pid)
    )


def _document(
    subject: Subject,
    answer: str,
    figures: list[Figure],
    findings: list[Found],
    judged: Sequence[Judged],
    warnings: Sequence[Warning_],
) -> Explanation:
    return {
        "schema": SCHEMA,
        "version": gpusnap.__version__,
        "subject": subject,
        "answer": answer,
        "figures": figures,
        "findings": [one.finding for one in findings],
        "context": [],
        "series": [row_of(one) for one in judged],
        "warnings": list(warnings),
    }


def _subject(chosen: Chosen, source: str | None) -> Subject:
    kind: str = chosen.kind
    return {
        "kind": kind,  # type: ignore[typeddict-item]
        "adapter": chosen.adapter,
        "pid": chosen.pid,
        "start_ticks": None,
        "source": source,
    }


def _figures(snapshot: Snapshot, cards: list[Adapter], causes: Mapping[str, str]) -> list[Figure]:
    """Of one card all figures, its processes' memory too; of several cards each card's own."""
    if len(cards) != 1:
        return [_named(figure, card) for card in cards for figure in _of_card(snapshot, card, causes)]
    (card,) = cards
    figures = _of_card(snapshot, card, causes)
    for row in rows_of(snapshot, card["id"]):
        for figure in process_figures(snapshot, row):
            if figure["field"] == "vram_bytes" or figure["field"].startswith("llm."):
                figures.append({**figure, "field": f"pid {row['pid']}: {figure['field']}"})
    return figures


def _of_card(snapshot: Snapshot, card: Adapter, causes: Mapping[str, str]) -> list[Figure]:
    """The unattributed rest is always said with its likely cause."""
    figures = card_figures(snapshot, card)
    cause = causes.get(card["id"])
    for figure in figures:
        if figure["field"] == "accounting.unattributed_bytes" and cause is not None:
            figure["says"] += f"; {cause}"
    return figures


def _named(figure: Figure, card: Adapter) -> Figure:
    return {**figure, "field": f"{card_name(card)}: {figure['field']}"}


def _answer(snapshot: Snapshot, cards: list[Adapter], findings: list[Found]) -> str:
    """The gravest finding that has a sentence of its own; else the account."""
    head = headline(findings)
    if head is not None:
        return f"{head}."
    if not cards:
        return _nothing(snapshot)
    if len(cards) == 1:
        (card,) = cards
        said = sentence(snapshot, card)
        idle = card["load"]["gpu_percent"] == 0 and any(one.finding["code"] == "idle-but-full" for one in findings)
        return f"{said}; 0 % busy now." if idle else f"{said}."
    return several(snapshot, cards)


def headline(findings: list[Found]) -> str | None:
    for one in findings:
        if one.finding["severity"] not in ("critical", "warning"):
            return None
        if one.headline is not None:
            return one.headline
    return None


def _nothing(snapshot: Snapshot) -> str:
    broken = [row for row in snapshot["backends"] if row["status"] not in ("ok", "absent")]
    if broken:
        return "Nothing could be measured: " + "; ".join(f"{row['name']}: {row['detail']}" for row in broken) + "."
    return "This machine has no GPU that gpusnap can see."
