"""A card in a sentence, its account in parts that add up, and a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.rows import model_name
from gpusnap.fields import CATEGORIES
from gpusnap.render.columns import display_width
from gpusnap.render.reasons import in_words
from gpusnap.render.rounding import show_steps, steps, to_steps
from gpusnap.render.units import apportion, format_number, format_of_total, pick_unit, trace

if TYPE_CHECKING:
    from gpusnap.model import Adapter, Snapshot
    from gpusnap.render.screen import Screen

_SHADES = {"attributed": "█", "shared": "▓", "unattributed": "▒", "reserved": "░", "free": "·"}
_COLOURS = {"█": "32", "▓": "36", "▒": "33", "░": "90", "·": "90"}
BAR_WIDTH = 60
INDENT = " " * 7


def sentence(row: Adapter, sources: dict[str, str]) -> str:
    """`15.6 of 16.0 GiB used · 41 % busy · 61 °C · 212 W`; what is null says why, or is left out."""
    memory = row["memory"]
    parts = []
    if memory["used_bytes"] is not None:
        parts.append(format_of_total(memory["used_bytes"], memory["total_bytes"]) + " used")
    else:
        parts.append(f"memory unknown: {in_words(sources.get('memory.used_bytes'))}")
    if memory["shared_used_bytes"] is not None:
        parts.append(format_of_total(memory["shared_used_bytes"], memory["shared_total_bytes"]) + " system memory")
    for value, unit in (
        (row["load"]["gpu_percent"], "% busy"),
        (row["temperature"]["gpu_celsius"], "°C"),
        (row["power"]["draw_watts"], "W"),
    ):
        if value is not None:
            parts.append(f"{value:.0f} {unit}")
    if row["health"] not in ("ok", "unknown"):
        parts.append(row["health"].upper())
    if row["power_state"] == "suspended":
        parts.append("suspended")
    return " · ".join(parts)


def title(row: Adapter) -> str:
    if row["kind"] == "partition":
        profile = row["partition"]["profile"] if row["partition"] is not None else None
        return f"  └ {profile or 'partition'} {row['index']}"
    number = "" if row["index"] is None else f" {row['index']}"
    kind = "NPU" if row["kind"] == "npu" else "GPU"
    return f"{kind}{number}  {model_name(row)}"


class Part:
    """One part of the account; `text` replaces the figure where it is a bound or unknown."""

    __slots__ = ("count", "name", "shade", "text")

    def __init__(self, name: str, count: int | None, shade: str, text: str | None = None) -> None:
        self.name = name
        self.count = count
        self.shade = shade
        self.text = text


def parts_of(row: Adapter) -> list[Part]:
    """The card's bytes by category, shared, unattributed, reserved and free."""
    books = row["accounting"]
    sums: list[tuple[int, str]] = []
    for category in CATEGORIES:
        count = books["by_category"][category]  # type: ignore[literal-required]
        if count is not None and count > 0:
            sums.append((count, category))
    sums.sort(key=lambda pair: -pair[0])
    found = [Part(category, count, _SHADES["attributed"]) for count, category in sums]
    if _is_positive(books["shared_bytes"]):
        found.append(Part("shared", books["shared_bytes"], _SHADES["shared"]))
    found.append(_unattributed(row))
    reserved = row["memory"]["reserved_bytes"]
    if _is_positive(reserved):
        found.append(Part("reserved", reserved, _SHADES["reserved"]))
    if row["memory"]["free_bytes"] is not None:
        found.append(Part("free", row["memory"]["free_bytes"], _SHADES["free"]))
    return found


def _unattributed(row: Adapter) -> Part:
    """An upper bound is said to be one: "up to" while something is unmeasured, "0 to" where sums exceed used."""
    books = row["accounting"]
    rest, most = books["unattributed_bytes"], books["unattributed_max_bytes"]
    unit = unit_of(row)
    if rest is None:
        bound = "unknown" if most is None else f"0 to {format_number(most, unit)}"
        return Part("unattributed", None, _SHADES["unattributed"], bound)
    bounded = _is_positive(books["unmeasured_processes"]) or _is_positive(row["unreadable_pids"])
    name = "unattributed up to" if bounded and rest > 0 else "unattributed"
    return Part(name, rest, _SHADES["unattributed"])


def _is_positive(count: int | None) -> bool:
    return count is not None and count > 0


def unit_of(row: Adapter) -> str:
    return pick_unit(
        (row["memory"]["total_bytes"], row["memory"]["used_bytes"], row["accounting"]["attributed_bytes"])
    )


def account_line(row: Adapter) -> str | None:
    """`llm 13.8 · browser 0.8 · unattributed 0.3 · free 0.1 · reserved 0.3`: figures that add up to the total."""
    if row["accounting"]["attributed_bytes"] is None:
        return None
    found = parts_of(row)
    unit = unit_of(row)
    shown = _rounded(found, row, unit)
    # The sentence above names the unit, unless it has no figure (GB10, Thor).
    suffix = f" {unit}" if row["memory"]["used_bytes"] is None else ""
    return " · ".join(
        f"{part.name} {part.text if part.text is not None else number + suffix}"
        for part, number in zip(found, shown, strict=True)
    )


def _rounded(found: list[Part], row: Adapter, unit: str) -> list[str]:
    """Numbers that add up to what the sentence above them says is used, and with the rest to the total.

    Where something is unknown or the parts are not the whole, each is rounded by itself.
    """
    counts = [part.count for part in found]
    known = [count for count in counts if count is not None]
    used, total = row["memory"]["used_bytes"], row["memory"]["total_bytes"]
    if total is None or used is None or len(known) < len(counts):
        return [format_number(count, unit) if count is not None else "unknown" for count in counts]
    inside = next((place for place in range(len(known) + 1) if sum(known[:place]) == used), None)
    if inside is None:
        return apportion(known, total, unit)
    shown = to_steps(known[:inside], steps(used, unit), unit)
    outside = known[inside:]
    whole = sum(known) == total
    shown += to_steps(
        outside, steps(total, unit) - sum(shown) if whole else sum(steps(n, unit) for n in outside), unit
    )
    return [
        show_steps(number, unit) if number else trace(count, unit)
        for number, count in zip(shown, known, strict=True)
    ]


def bar(row: Adapter, width: int) -> str | None:
    """A bar of the card's memory; parts too small for a cell are left out of it, not of the line above."""
    total = row["memory"]["total_bytes"]
    if total is None or total <= 0 or row["memory"]["used_bytes"] is None:
        return None
    cells = ""
    done = 0
    for part in parts_of(row):
        if part.count is None:
            continue
        done += part.count
        cells += part.shade * (min(width, round(done * width / total)) - len(cells))
    return cells.ljust(width, _SHADES["free"])


def _coloured(cells: str) -> str:
    """Runs of one shade in its colour; the shades alone say the same."""
    counts = {shade: cells.count(shade) for shade in _COLOURS}
    return "".join(
        f"\x1b[{_COLOURS[shade]}m{shade * count}\x1b[0m" for shade, count in counts.items() if count > 0
    )


def card_lines(document: Snapshot, row: Adapter, screen: Screen) -> list[str]:
    sources = document["provenance"][row["provenance"]]
    lines = head_lines(title(row), sentence(row, sources), screen)
    line = account_line(row)
    if line is not None:
        lines += screen.filled(line, INDENT)
        drawn = bar(row, max(1, min(BAR_WIDTH, (screen.width or 80) - len(INDENT) - 1)))
        if drawn is not None:
            lines.append(INDENT + (_coloured(drawn) if screen.colour else drawn))
    if row["processes_listed"] == "unavailable":
        lines += screen.filled("cannot list its processes: " + in_words(sources.get("processes_listed")), INDENT)
    elif _is_positive(row["unreadable_pids"]):
        some = "1 process" if row["unreadable_pids"] == 1 else f"{row['unreadable_pids']:,} processes"
        lines += screen.filled(f"{some} could not be looked into", INDENT)
    return lines


def head_lines(name: str, said: str, screen: Screen) -> list[str]:
    """The card's name and its sentence, on one line where there is room."""
    whole = screen.text(f"{name}   {said}")
    if screen.width is None or display_width(whole) <= screen.width:
        return [whole]
    return [*screen.filled(name, INDENT, first=""), *screen.filled(said, INDENT)]
