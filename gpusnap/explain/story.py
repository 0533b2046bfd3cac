"""The answer for a recording in one sentence, and its frame: how long, how many samples, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings.idle_but_full import held_by
from gpusnap.explain.findings.thresholds import GIB, HELD_IDLE_SECONDS
from gpusnap.explain.history import History
from gpusnap.explain.rows import card_name
from gpusnap.explain.words import clock, count_of, minute
from gpusnap.render.units import format_duration, format_pair_in_one_unit

if TYPE_CHECKING:
    from gpusnap.explain.series import Judged
    from gpusnap.explain.view import Found
    from gpusnap.model import Adapter

_LEAKS = ("leak", "step-leak", "residual", "grows-under-load")


def answer_for_recording(
    history: History, judged: list[Judged], findings: list[Found], cards: list[Adapter]
) -> str:
    """The gravest finding's sentence; whether anything else was lost; else what the cards did."""
    heads = [one for one in findings if one.headline is not None and one.finding["severity"] != "info"]
    if heads:
        said = str(heads[0].headline)
        if heads[0].finding["code"] in _LEAKS:
            others = [one for one in judged if one.verdict.word in _LEAKS and one.leads]
            if len(others) <= 1:
                said += "; everything else comes back"
        return said + "."
    shown = {card["id"] for card in cards}
    said = "; ".join(_card(one) for one in judged if one.pid is None and one.adapter in shown)
    idle = idle_holders(history)
    if idle:
        said += "; " + idle[0]
    return f"{said}." if said else "No card was seen in this recording."


def _card(one: Judged) -> str:
    series = one.series
    if series.samples == 0:
        return f"{one.card_name}: its use was never measured"
    pair = format_pair_in_one_unit(series.lowest, series.highest).replace(" → ", " to ")
    return f"{one.card_name}: {pair} used, {one.verdict.word} ({one.verdict.why})"


def idle_holders(history: History) -> list[str]:
    """Who held memory for an hour or longer while the load was 0 % in every sample (odh-manifests#265)."""
    idle = History()
    idle.cards = history.cards
    for key, track in history.processes.items():
        busiest = track.busiest if track.busiest is not None else history.cards[track.adapter].busiest
        seconds = track.series.last_time - track.series.first_time
        if busiest == 0 and track.peak >= GIB and seconds >= HELD_IDLE_SECONDS:
            idle.processes[key] = track
    return held_by(idle)


def frame(history: History) -> str:
    """`8 h 00 min, 459 samples, 3 unknown (the card was busy), 1 gap (.. 04:10Z to 04:31Z)`."""
    timeline = history.timeline
    first, last = timeline.first, timeline.last
    parts = [
        format_duration(None if first is None or last is None else last - first),
        count_of(timeline.count, "sample"),
    ]
    for card in history.cards.values():
        for series in card.used.values():
            if series.unknown:
                reasons = ", ".join(dict.fromkeys(reason for _, _, reason, _ in series.unknown_ranges))
                name = f" on {card_name(card.last_row)}" if len(history.cards) > 1 else ""
                parts.append(f"{series.unknown} unknown{name} ({reasons})")
    gaps = timeline.gaps()
    if gaps:
        longest = max(gaps, key=lambda gap: gap.seconds)
        parts.append(
            f"{count_of(len(gaps), 'gap')} ({minute(longest.start)} to "
            f"{clock(longest.end, longest.start)}: {longest.reason})"
        )
    if timeline.reboots:
        parts.append(count_of(len(timeline.reboots), "reboot"))
    if timeline.steps:
        parts.append(count_of(len(timeline.steps), "clock step"))
    return ", ".join(parts)
