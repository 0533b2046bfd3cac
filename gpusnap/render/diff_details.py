"""What else changed about a card and its processes, in words: a line each, only what decides or identifies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.diff_rows import UNKNOWN
from gpusnap.render.program import program_of
from gpusnap.render.reasons import short
from gpusnap.render.units import MIB, format_bytes, format_delta, format_pair_in_one_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.model import Change, Process
    from gpusnap.render.diff_rows import CardDiff

# Of a card: what its lines of memory don't show already. Load, sensors and clocks differ between any two samples.
_OF_CARD = ("health", "power_state", "driver", "driver_version", "model", "processes_listed", "unreadable_pids")
_OF_CARD_GROUPS = ("ecc.", "memory.total_bytes", "memory.reserved_bytes", "memory.shared_", "partition.")
_OF_PROCESS = ("state", "type", "name", "ppid", "spill_bytes", "paged_bytes", "category")
_OF_PROCESS_GROUPS = ("model.", "llm.")
_TURNS = ("replaced", "exited", "appeared")
# Characters that are shown before two command lines part.
_CONTEXT = 40
# A rest that moved less is the breathing of a driver; its line in the table says enough.
_NOTABLE_REST = 16 * MIB


def card_details(card: CardDiff) -> list[str]:
    """`health: ok → lost`, `index: 0 → 1`, ECC that grew."""
    lines: list[str] = []
    if card.old is None or card.new is None:
        return lines
    if card.card["index_changed"]:
        lines.append(f"index: {card.old['index']} → {card.new['index']} (matched by {card.card['matched_by']})")
    for leaf, change in card.card["changes"].items():
        in_heading = card.is_unified and leaf == "memory.shared_used_bytes"
        if not in_heading and (leaf in _OF_CARD or leaf.startswith(_OF_CARD_GROUPS)):
            lines.append(f"{leaf}: {in_words(leaf, change)}")
    used = card.card["changes"].get("memory.used_bytes")
    if used is not None and _changed_source(used):
        lines.append(f"used: counted by {used['before_provenance']} before, by {used['after_provenance']} after")
    return lines


def process_details(card: CardDiff) -> Iterator[str]:
    """`4711 llama-server: state sleeping → zombie; spill 0 → 1.2 GiB`."""
    for row in card.rows:
        if row["status"] not in ("changed", "replaced"):
            continue
        parts = []
        for leaf, change in row["changes"].items():
            if card.is_unified and leaf == "spill_bytes":
                continue  # it is in the table
            unknown = leaf == "vram_bytes" and change["delta"] is None
            if unknown or leaf in _OF_PROCESS or leaf.startswith(_OF_PROCESS_GROUPS):
                parts.append(f"{leaf.removesuffix('_bytes')} {in_words(leaf, change)}")
        if parts:
            old, new = card.pair_of(row)
            program = program_of(new or old or {}) or "-"
            yield f"{row['pid']} {program}: {'; '.join(parts)}"


def loaded_models(card: CardDiff) -> Iterator[str]:
    """`4711 llama-server: Qwen3 14B Q4_K_M, 32768 tokens, weights 8.0 GiB, KV cache 5.0 GiB` of what appeared."""
    for row in card.rows:
        new = card.pair_of(row)[1] if row["status"] == "appeared" else None
        if new is None or new["model"] is None or new["model"]["name"] is None:
            continue
        parts = [
            " ".join(word for word in (new["model"]["name"], new["model"]["quantization"]) if word is not None)
        ]
        facts = new["llm"]
        if facts is not None:
            if facts["context_tokens"] is not None:
                parts.append(f"{facts['context_tokens']} tokens")
            sizes = (("weights", facts["weights_bytes"]), ("KV cache", facts["kv_cache_bytes"]))
            parts += [f"{name} {format_bytes(size)}" for name, size in sizes if size is not None]
        yield f"{row['pid']} {program_of(new) or '-'}: {', '.join(parts)}"


def in_words(leaf: str, change: Change) -> str:
    """`sleeping → zombie`, `37 → 40 (+3)`, `0.7 GiB → unknown (no permission)`, `5 → 3 (reset)`."""
    before, after = change["before"], change["after"]
    why = short(change["after_provenance"] if after is None else change["before_provenance"])
    if leaf.endswith("_bytes"):
        old, new = _whole(before), _whole(after)
        if old is not None and new is not None:
            return f"{format_pair_in_one_unit(old, new)} ({format_delta(new - old)})"
        return f"{format_pair_in_one_unit(old, new)} ({why})"
    text = f"{_text(before)} → {_text(after)}"
    if change["reset"]:
        return f"{text} (reset)"
    if before is None or after is None:
        return f"{text} ({why})"
    return text if change["delta"] is None else f"{text} ({change['delta']:+g})"


def argument_lines(card: CardDiff, width: int | None) -> list[str]:
    """Command lines side by side where a program came back with other words (llama.cpp#23446)."""
    lines = []
    for old, new in _came_back(card):
        words = [" ".join(row["cmdline"] or ()) for row in (old, new)]
        if not all(words) or words[0] == words[1]:
            continue
        before, after = _from_the_difference(words[0], words[1], width)
        pids = [str(row["pid"]) for row in (old, new)]
        wide = max(map(len, pids))
        lines.append(f"{program_of(new)} came back with other arguments:")
        lines += [f"  before {pids[0]:>{wide}}  {before}", f"  after  {pids[1]:>{wide}}  {after}"]
    return lines


def _came_back(card: CardDiff) -> list[tuple[Process, Process]]:
    from gpusnap.diff.program import pair_programs

    pairs = {status: [card.pair_of(row) for row in card.rows if row["status"] == status] for status in _TURNS}
    found = [(old, new) for old, new in pairs["replaced"] if old is not None and new is not None]
    gone = [old for old, _ in pairs["exited"] if old is not None]
    come = [new for _, new in pairs["appeared"] if new is not None]
    return found + pair_programs(gone, come)


def _from_the_difference(before: str, after: str, width: int | None) -> tuple[str, str]:
    """Both texts from a little before they part, where the terminal can't hold the whole."""
    room = (width or 200) - 24
    if max(len(before), len(after)) <= room:
        return before, after
    common = 0
    while common < min(len(before), len(after)) and before[common] == after[common]:
        common += 1
    # From a word's beginning where one is near.
    word = before.rfind(" ", max(0, common - _CONTEXT), common - 8) + 1
    start = word or max(0, common - _CONTEXT // 2)
    return ("…" + before[start:], "…" + after[start:]) if start else (before, after)


def _changed_source(change: Change) -> bool:
    sources = change["before_provenance"], change["after_provenance"]
    known = all(source is not None and not source.startswith("null:") for source in sources)
    return known and sources[0] != sources[1]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def rest_line(card: CardDiff) -> str | None:
    """`unattributed +20.1 GiB: python 9021 (bob) exited holding 20.1 GiB and 0 B came free`."""
    rest = card.rest
    if rest is None or rest["delta_bytes"] is None or abs(rest["delta_bytes"]) < _NOTABLE_REST:
        return None
    parts = leftovers(card)
    if rest["reason"] is not None:
        parts.append(rest["reason"])
    return f"unattributed {format_delta(rest['delta_bytes'])}: {'; '.join(parts)}"


def leftovers(card: CardDiff) -> list[str]:
    """`python 9021 (bob) exited holding 20.1 GiB and 0 B came free`: each suspect for the unattributed part."""
    if card.rest is None:
        return []
    users = {row["pid"]: row["user"] for row in card.rows}
    users |= {row["replaces"]["pid"]: row["user"] for row in card.rows if row["replaces"] is not None}
    parts = []
    for suspect in card.rest["explained_by"]:
        user = users.get(suspect["pid"])
        whose = f" ({user})" if user is not None else ""
        says = suspect["says"].replace("; ", " and ", 1)
        parts.append(f"{suspect['name'] or 'process'} {suspect['pid']}{whose} {says}")
    return parts
