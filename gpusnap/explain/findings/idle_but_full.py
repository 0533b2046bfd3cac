"""A card that is full while nothing runs on it: now, from one snapshot; for how long, only from a recording.

odh-manifests#265, notebook#5421. Idle means 0 % in every sample seen; a load that was not measured is not idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.make import found
from gpusnap.explain.rows import card_name, program, who
from gpusnap.explain.words import age_seconds, count_of, minute, pid_list
from gpusnap.render.units import format_bytes, format_duration, format_of_total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.history import History
    from gpusnap.explain.tracks import CardTrack, ProcessTrack
    from gpusnap.explain.view import CardView, Found
    from gpusnap.model import Process

CODE = "idle-but-full"


def find(view: CardView) -> Iterator[Found]:
    if not (view.is_full and view.is_idle):
        return
    evidence = [f"{format_of_total(view.used, view.total)} used, 0 % busy in this sample"]
    evidence += [_holder(view, row) for row in view.rows[:4] if row["vram_bytes"] is not None]
    if len(view.rows) > 4:
        evidence.append(f"and {count_of(len(view.rows) - 4, 'smaller process', 'smaller processes')}")
    advice = [
        'Idle "now" is one sample. For how long: '
        "gpusnap record g.jsonl --every 1m --for 1h; gpusnap explain g.jsonl"
    ]
    advice += [said for row in view.rows[:4] if (said := _release(row)) is not None]
    advice += [
        warning["message"]
        for warning in view.document["warnings"]
        if warning["code"] == "unload-pending" and warning["adapter"] in (None, view.card["id"])
    ]
    yield found(
        CODE,
        "notice",
        view.subject(),
        f"full and idle now: {format_of_total(view.used, view.total)} used, 0 % busy",
        evidence,
        list(dict.fromkeys(advice)),
        headline=f"{view.name} is full and idle: {format_of_total(view.used, view.total)} used, 0 % busy now",
    )


def _holder(view: CardView, row: Process) -> str:
    said = f"{who(row)} holds {format_bytes(row['vram_bytes'])}"
    if row["started_at"] is not None:
        age = age_seconds(row, view.document["taken_at"])
        said += f" since {minute(row['started_at'])} ({format_duration(age)})"
    if row["cmdline"] and _is_notebook(row):
        said += "; a notebook kernel" + (f" in {row['cwd']}" if row["cwd"] is not None else "")
    return said


def _release(row: Process) -> str | None:
    """How this kind of program gives its memory back without being killed."""
    if _is_notebook(row):
        return (
            f"pid {row['pid']} is a notebook kernel: shut it down in Jupyter (Running); closing its page "
            "does not. "
            "Its connection file's name leads to the notebook."
        )
    server = row["llm"]["server"] if row["llm"] is not None else None
    if server == "ollama" or row["name"] == "ollama":
        return "Ollama unloads a model after its keep-alive: ollama ps; ollama stop MODEL."
    return None


def _is_notebook(row: Process) -> bool:
    return any("ipykernel" in word for word in row["cmdline"] or ())


def find_in_history(history: History) -> Iterator[Found]:
    """Full and at 0 % in every sample of the recording."""
    for track in history.cards.values():
        seconds = _idle_seconds(track)
        if seconds is None or track.full_idle < at.SAMPLES or seconds < at.HELD_IDLE_SECONDS:
            continue
        if track.busiest != 0 or track.full_idle < track.loads:
            continue
        evidence = [f"0 % busy in all of {count_of(track.loads, 'sample')} over {format_duration(seconds)}"]
        evidence += held_by(history, track.id)[:4]
        used = track.last_row["memory"]["used_bytes"]
        name = card_name(track.last_row)
        yield found(
            CODE,
            "warning",
            {"kind": "adapter", "adapter": track.id, "pid": None, "start_ticks": None, "source": None},
            f"full and idle for {format_duration(seconds)}",
            evidence,
            [
                "Ask its owner whether it is still needed; gpusnap ps --adapter "
                + (track.id)
                + " --wide names it now."
            ],
            headline=(
                f"{name} is full and idle: {format_of_total(used, track.total)} used, "
                f"0 % busy in all {count_of(track.loads, 'sample')} of {format_duration(seconds)}"
            ),
        )


def held_by(history: History, adapter: str | None = None) -> list[str]:
    """One line for the processes of one program and user, the largest first.

    `python (pid 77, bob) held 12.0 GiB for 24 h 00 min, 0 % busy at most`
    """
    groups: dict[tuple[str, str | None, str | None], list[ProcessTrack]] = {}
    for process in history.processes.values():
        if process.peak > 0 and adapter in (None, process.adapter):
            row = process.last_row
            groups.setdefault((process.adapter, program(row), row["user"]), []).append(process)
    largest = sorted(groups.items(), key=lambda pair: -sum(process.peak for process in pair[1]))
    return [_held(history, name, user, processes) for (_, name, user), processes in largest]


def _held(history: History, name: str | None, user: str | None, processes: list[ProcessTrack]) -> str:
    seconds = max(process.series.last_time - process.series.first_time for process in processes)
    loads = [process.busiest for process in processes if process.busiest is not None]
    load = max(loads) if loads else history.cards[processes[0].adapter].busiest
    busy = "" if load is None else f", {'' if loads else 'the card '}{load:.0f} % busy at most"
    pids = pid_list(process.pid for process in processes)
    who = f"{name or 'a process'} (pid {pids}, {user or 'unknown user'})"
    if len(processes) > 1:
        who = f"{len(processes)} × {who.replace('pid', 'pids', 1)}"
    held = format_bytes(sum(process.peak for process in processes))
    return f"{who} held {held} for {format_duration(seconds)}{busy}"


def _idle_seconds(track: CardTrack) -> float | None:
    known = [series for series in track.used.values() if series.samples > 0]
    if not known:
        return None
    return sum(series.last_time - series.first_time for series in known)
