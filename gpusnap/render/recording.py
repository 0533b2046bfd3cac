"""What `record` says on stderr: its progress on a terminal, and what a command took and left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.columns import truncate
from gpusnap.render.units import format_bytes, format_duration, format_number, format_of_total, pick_unit
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.model import Adapter, Diff, Snapshot, Summary, SummaryAdapter

# A sentence holds the program, not its hundred arguments.
_COMMAND_WIDTH = 60


def progress_line(doc: Snapshot, samples: int, written: int, width: int) -> str:
    """`12 samples, 48 KiB   GPU 0 15.6 of 16.0 GiB`, cut to the terminal."""
    cards = (
        f"{adapter_label(card)} {format_of_total(card['memory']['used_bytes'], card['memory']['total_bytes'])}"
        for card in doc["adapters"]
    )
    return truncate("   ".join((f"{_samples(samples)}, {format_bytes(written)}", *cards)), width)


def run_lines(summary: Summary, difference: Diff | None, last: Snapshot, path: str) -> list[str]:
    """`python train.py: exit 0 after 41 min 12 s. GPU 0: peak 21.7 GiB ...; left behind 0 B. 249 samples in F`.

    One line where one card has a story, else one for each; cards where nothing happened are counted.
    """
    command = truncate(clean(" ".join(summary["command"])), _COMMAND_WIDTH)
    head = f"{command}: exit {summary['exit_code']} after {format_duration(summary['elapsed_seconds'])}."
    tail = f"{_samples(summary['samples'])} in {clean(path)}"
    labels = {card["id"]: adapter_label(card) for card in last["adapters"]}
    busy = [card for card in summary["adapters"] if _has_a_story(card)] or summary["adapters"][:1]
    cards = [f"{labels.get(card['id'], card['id'])}: {_card(card, difference)}" for card in busy]
    quiet = len(summary["adapters"]) - len(busy)
    if len(cards) == 1 and quiet == 0:
        return [f"{head} {cards[0]}. {tail}"]
    lines = [f"{head} {tail}", *(f"  {card}" for card in cards)]
    if quiet > 0:
        lines.append(f"  nothing on {quiet} other card{'s' if quiet > 1 else ''}")
    return lines


def adapter_label(card: Adapter) -> str:
    """`GPU 0`; a partition or a card without an index by its id."""
    if card["index"] is None or card["partition"] is not None:
        return card["id"]
    return f"GPU {card['index']}"


def _samples(count: int) -> str:
    return f"{count} sample{'' if count == 1 else 's'}"


def _has_a_story(card: SummaryAdapter) -> bool:
    return card["processes"] != [] or card["left_bytes"] != 0


def _card(card: SummaryAdapter, difference: Diff | None) -> str:
    peak = card["peak_bytes"]
    if peak is None or card["peak_at"] is None:
        said = "peak unknown"
    else:
        said = f"peak {format_bytes(peak)}{_largest(card, peak)} at {card['peak_at'][11:19]}Z"
    return f"{said}; {_left(card, difference)}"


def _largest(card: SummaryAdapter, peak: int) -> str:
    """` (train.py 21.2)`, in the unit of the peak."""
    for first in card["processes"][:1]:
        if first["peak_bytes"] is not None:
            held = format_number(first["peak_bytes"], pick_unit((peak,)))
            return f" ({_name(first['name'], first['pid'])} {held})"
    return ""


def _left(card: SummaryAdapter, difference: Diff | None) -> str:
    left = card["left_bytes"]
    if left is None:
        return "left behind: unknown"
    if left < 0:
        return f"left behind 0 B ({format_bytes(-left)} less than before)"
    who = _who_stayed(card, difference)
    return f"left behind {format_bytes(left)}" + (f" ({', '.join(who)})" if who else "")


def _who_stayed(card: SummaryAdapter, difference: Diff | None) -> list[str]:
    """Processes that were not there before and still hold memory; the three largest."""
    if difference is None:
        return []
    found: list[tuple[int, str]] = []
    for row in difference["processes"]:
        change = row["changes"].get("vram_bytes")
        if row["status"] != "appeared" or row["adapter"] != card["id"] or change is None:
            continue
        held = change["after"]
        if isinstance(held, int) and held > 0:
            found.append((held, f"{_name(row['name'], row['pid'])} {format_bytes(held)}"))
    return [text for _, text in sorted(found, reverse=True)[:3]]


def _name(name: str | None, pid: int) -> str:
    return f"pid {pid}" if name is None else clean(name)
