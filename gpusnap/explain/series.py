"""Verdicts for every card and process of a recording, and the rows that the document carries.

A card's growth that is only that of programs which started is no leak: where the list of processes was complete,
a card is said to leak only if one of its processes does, or the part that nobody holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.rows import card_name, program
from gpusnap.explain.verdict import CACHE, GROWTH, LEAKS, PLATEAU, RESIDUAL, STEP_LEAK, UNKNOWN, Verdict, judge
from gpusnap.render.units import format_bytes
from gpusnap.timefmt import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from gpusnap.explain.history import History
    from gpusnap.explain.tracks import CardTrack, ProcessTrack, Series
    from gpusnap.model import SeriesRow, Subject


class Judged:
    """One series with its verdict. `leads`: a finding is made of it (a card repeats no finding of its process)."""

    __slots__ = (
        "adapter",
        "card_name",
        "leads",
        "notes",
        "pid",
        "seen_starting",
        "series",
        "start_ticks",
        "verdict",
        "what",
    )

    def __init__(
        self,
        what: str,
        card: CardTrack,
        series: Series,
        verdict: Verdict,
        track: ProcessTrack | None = None,
    ) -> None:
        self.what = what
        self.adapter = card.id
        self.card_name = card_name(card.last_row)
        self.series = series
        self.verdict = verdict
        self.pid = None if track is None else track.pid
        self.start_ticks = None if track is None else track.start_ticks
        self.seen_starting = track is not None and track.seen_starting
        self.leads = True
        self.notes: list[str] = []

    def began_before(self) -> bool:
        """It was under way when the recording first saw it, and nobody saw the process start: it may be older."""
        return self.verdict.from_first and not self.seen_starting


def judge_all(history: History) -> list[Judged]:
    """Cards first, then their processes by peak; a card that was booted anew is judged boot by boot."""
    cards: list[Judged] = []
    processes: list[Judged] = []
    for card in history.cards.values():
        mine = [_judge_process(card, track) for track in history.processes.values() if track.adapter == card.id]
        mine.sort(key=lambda one: -(one.series.highest if one.series.highest is not None else -1))
        processes += mine
        cards.append(_judge_card(history, card, mine))
    return cards + processes


def _judge_process(card: CardTrack, track: ProcessTrack) -> Judged:
    verdict = judge(track.series.reservoir.points(), track.series.split)
    if verdict.word in LEAKS and _may_still_load(track, verdict):
        verdict = Verdict(
            UNKNOWN, "it rose ever since it started, as while a model is loaded", verdict.slope_per_hour
        )
    row = track.last_row
    first, last = track.series.first, track.series.last
    grew = first is not None and last is not None and last > first
    if verdict.word == PLATEAU and grew and _caches(row["runtimes"], row["cmdline"]):
        verdict.word, verdict.why = (
            CACHE,
            "it filled at first and is level since: a cache, normal for this program",
        )
    one = Judged(f"{program(row) or 'a process'} (pid {track.pid})", card, track.series, verdict, track)
    if verdict.word in GROWTH:
        one.notes += _constant_parts(track)
    return one


def _may_still_load(track: ProcessTrack, verdict: Verdict) -> bool:
    """A young process whose memory rose from its start on: weights that come in look like a leak."""
    series, started = track.series, track.first_row["started_at"]
    born = series.first_time if started is None else min(parse_rfc3339(started), series.first_time)
    age = series.last_time - born
    began = series.first_time if verdict.since is None else verdict.since
    return verdict.cycles == 0 and age < at.LOADING_SECONDS and began - born <= age / 4


def _constant_parts(track: ProcessTrack) -> list[str]:
    """Which of a model's parts did not grow, so that the growth lies elsewhere (llama.cpp#23446)."""
    before, after = track.first_row["llm"], track.last_row["llm"]
    if before is None or after is None:
        return []
    names = (("weights", "weights_bytes"), ("KV cache", "kv_cache_bytes"))
    same = [
        f"{name} {format_bytes(after[key])}"  # type: ignore[literal-required]
        for name, key in names
        if after[key] is not None and after[key] == before[key]  # type: ignore[literal-required]
    ]
    return [f"constant: {', '.join(same)}; what grows is compute buffers or other memory"] if same else []


def _caches(runtimes: list[str] | None, cmdline: list[str] | None) -> bool:
    known = {"pytorch", "tensorflow", "jax"} & set(runtimes or ())
    return bool(known) or any("comfyui" in word.lower() for word in cmdline or ())


def _judge_card(history: History, card: CardTrack, processes: list[Judged]) -> Judged:
    boots = [(judge(series.reservoir.points(), series.split), series) for series in card.used.values()]
    verdict, series = max(boots, key=lambda pair: (pair[0].word in GROWTH, pair[1].samples))
    whole = _whole(card)
    one = Judged("memory that no listed process holds", card, whole, verdict)
    if verdict.word in GROWTH:
        _explain_growth(card, one, processes)
    else:
        _look_at_the_rest(card, one)
    left = sum(left.kept for left in history.departures.left_behind if left.adapter == card.id)
    if one.verdict.word not in GROWTH and left > 0:
        one.verdict.word, one.verdict.why = RESIDUAL, "a process ended and its memory did not come free"
    if one.verdict.word not in GROWTH:
        one.leads = not any(process.verdict.word == one.verdict.word for process in processes)
        one.what = "the card's memory"
    del series
    return one


def _explain_growth(card: CardTrack, one: Judged, processes: list[Judged]) -> None:
    """Whose growth the card's is: a process's, the unattributed rest's, or just that of programs that started."""
    growing = [process for process in processes if process.verdict.word in GROWTH]
    rest = _rest_verdict(card)
    if growing:
        worst = max(growing, key=lambda process: process.verdict.growth or 0.0)
        one.verdict.word = worst.verdict.word
        one.leads = False
        worst.notes.append(f"{one.card_name}'s own figure rises with it")
    elif rest is not None and rest.word in GROWTH:
        one.verdict.word = rest.word
        _doubt_steps(card, one)
    elif (rest is not None and rest.word != UNKNOWN) or _programs_took(card, one.series):
        one.verdict.word, one.verdict.why = PLATEAU, "its growth is that of programs that started"
    else:
        one.what = "an unknown holder (processes could not be listed)"
        _doubt_steps(card, one)


def _programs_took(card: CardTrack, used: Series) -> bool:
    """Most of the growth is in what listed processes hold; as none of them grew, they came one after the other."""
    if card.held_first is None or card.held_last is None or used.first is None or used.last is None:
        return False
    return 2 * (card.held_last - card.held_first) >= used.last - used.first > 0


def _doubt_steps(card: CardTrack, one: Judged) -> None:
    """Where most lists were not complete, a step that stays may be a program that started unseen."""
    if one.verdict.word == STEP_LEAK and one.verdict.cycles == 0 and 2 * card.unlisted_samples > card.samples:
        one.verdict.word, one.verdict.why = (
            UNKNOWN,
            "it rose in steps, and programs that can't be seen may have started",
        )


def _look_at_the_rest(card: CardTrack, one: Judged) -> None:
    """A leak outside of all processes may hide under their comings and goings."""
    rest = _rest_verdict(card)
    if rest is not None and rest.word in GROWTH:
        one.verdict = rest
        one.notes.append("it is the part that no listed process holds which rises")
        _doubt_steps(card, one)


def _rest_verdict(card: CardTrack) -> Verdict | None:
    known = [series for series in card.rest.values() if series.samples > 0]
    if not known:
        return None
    longest = max(known, key=lambda series: series.samples)
    return judge(longest.reservoir.points(), longest.split)


def _whole(card: CardTrack) -> Series:
    """First, last, least and most over all boots; the shape is that of the longest one."""
    from gpusnap.explain.tracks import Series

    boots = list(card.used.values())
    if len(boots) == 1:
        return boots[0]
    whole = Series()
    for series in boots:
        whole.samples += series.samples
        whole.unknown += series.unknown
        whole.unknown_ranges += series.unknown_ranges
        if series.first is None or series.lowest is None or series.highest is None:
            continue
        if whole.first is None:
            whole.first, whole.first_time = series.first, series.first_time
            whole.lowest, whole.highest = series.lowest, series.highest
        whole.last, whole.last_time = series.last, series.last_time
        whole.lowest = min(series.lowest, series.lowest if whole.lowest is None else whole.lowest)
        if whole.highest is None or series.highest >= whole.highest:
            whole.highest, whole.highest_time = series.highest, series.highest_time
    longest = max(boots, key=lambda series: series.samples)
    whole.reservoir, whole.split = longest.reservoir, longest.split
    return whole


def row_of(one: Judged) -> SeriesRow:
    series, verdict = one.series, one.verdict
    slope = verdict.slope_per_hour
    return {
        "adapter": one.adapter,
        "pid": one.pid,
        "start_ticks": one.start_ticks,
        "samples": series.samples + series.unknown,
        "unknown_samples": series.unknown,
        "first_bytes": series.first,
        "last_bytes": series.last,
        "min_bytes": series.lowest,
        "max_bytes": series.highest,
        "slope_bytes_per_hour": None if slope is None or verdict.word == UNKNOWN else round(slope),
        "verdict": verdict.word,
        "since": None if verdict.since is None else rfc3339(verdict.since),
    }


def subject_of(one: Judged) -> Subject:
    return {
        "kind": "adapter" if one.pid is None else "process",
        "adapter": one.adapter,
        "pid": one.pid,
        "start_ticks": one.start_ticks,
        "source": None,
    }
