"""Which rows `ps` shows and in which order: filters, sorting, groups. Pure, over a snapshot document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.orphans import is_orphan
from gpusnap.explain.view import Surroundings
from gpusnap.render.program import program_of
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpusnap.model import Group, Process, Snapshot

SORT_KEYS = ("vram", "spill", "gpu", "cpu", "age", "pid", "user", "program")
GROUP_KEYS = ("user", "category", "program", "adapter")
_DESCENDING = frozenset({"vram", "spill", "gpu", "cpu", "age"})


class Selection:
    """The filters of `ps`; None means any."""

    def __init__(
        self,
        *,
        adapters: Sequence[str] | None = None,
        user: str | None = None,
        category: str | None = None,
        state: str | None = None,
        orphans: bool = False,
        min_vram: int | None = None,
        sort: str = "vram",
        top: int | None = None,
    ) -> None:
        self.adapters = adapters
        self.user = user
        self.category = category
        self.state = state
        self.orphans = orphans
        self.min_vram = min_vram
        self.sort = sort
        self.top = top
        # What a live run can see around the processes; a file can't tell.
        self.around = Surroundings()


def select(document: Snapshot, wanted: Selection) -> list[Process]:
    """The chosen rows, sorted; what was not measured stands last, since it is not small."""
    return _chosen(document, wanted)[: wanted.top]


def select_groups(document: Snapshot, wanted: Selection, key: str) -> tuple[list[Process], list[Group]]:
    """The rows of the groups by `key`, and these; `--top` counts groups, each with all of its chosen rows."""
    rows = _chosen(document, wanted)
    groups = group_rows(rows, key, unified_adapters(document))[: wanted.top]
    shown = {group["key"] for group in groups}
    return [row for row in rows if key_of(row, key) in shown], groups


def _chosen(document: Snapshot, wanted: Selection) -> list[Process]:
    unified = unified_adapters(document)
    rows = [row for row in document["processes"] or () if not _misses(document, row, wanted, unified)]
    return sort_rows(rows, wanted.sort, parse_rfc3339(document["taken_at"]), unified)


def undecided(document: Snapshot, wanted: Selection) -> tuple[int, list[str]]:
    """How many rows were left out only because a figure that a filter asks for is not known, and which figures."""
    unified = unified_adapters(document)
    missed = [_misses(document, row, wanted, unified) for row in document["processes"] or ()]
    unknown = [names for names in missed if names and None not in names]
    return len(unknown), sorted({name for names in unknown for name in names if name is not None})


def unified_adapters(document: Snapshot) -> set[str]:
    return {row["id"] for row in document["adapters"] if row["memory"]["kind"] == "unified"}


def _misses(document: Snapshot, row: Process, wanted: Selection, unified: set[str]) -> list[str | None]:
    """What keeps a row out: None for a filter that it fails, a figure's name where the figure is not known."""
    found: list[str | None] = []
    if wanted.adapters is not None and row["adapter"] not in wanted.adapters:
        found.append(None)
    if wanted.user is not None and wanted.user not in (row["user"], str(row["uid"])):
        found.append("user" if row["user"] is None else None)
    if wanted.category is not None and row["category"] != wanted.category:
        found.append(None)
    if wanted.state is not None and row["state"] != wanted.state:
        found.append("state" if row["state"] is None else None)
    if wanted.orphans and not is_orphan(document, row, wanted.around):
        found.append(None)
    if wanted.min_vram is not None:
        held = held_bytes(row, unified)
        if held is None or held < wanted.min_vram:
            found.append("VRAM" if held is None else None)
    return found


def held_bytes(row: Process, unified: set[str]) -> int | None:
    """What a process holds of its adapter: VRAM, with spill where memory is unified."""
    vram, spill = row["vram_bytes"], row["spill_bytes"]
    if row["adapter"] not in unified or spill is None:
        return vram
    return spill if vram is None else vram + spill


def sort_rows(rows: list[Process], key: str, taken: float, unified: set[str]) -> list[Process]:
    value = _value_of(key, taken, unified)
    known = [row for row in rows if value(row) is not None]
    unknown = [row for row in rows if value(row) is None]
    known.sort(key=lambda row: row["pid"])
    known.sort(key=value, reverse=key in _DESCENDING)  # type: ignore[arg-type]
    return known + sorted(unknown, key=lambda row: row["pid"])


def _value_of(key: str, taken: float, unified: set[str]) -> Callable[[Process], object]:
    getters: dict[str, Callable[[Process], object]] = {
        "vram": lambda row: held_bytes(row, unified),
        "spill": lambda row: row["spill_bytes"],
        "gpu": lambda row: row["gpu_percent"],
        "cpu": lambda row: row["cpu_percent"],
        "age": lambda row: age_of(row, taken),
        "pid": lambda row: row["pid"],
        "user": lambda row: row["user"],
        "program": program_of,
    }
    return getters[key]


def age_of(row: Process, taken: float) -> float | None:
    """Seconds between the process's start and the snapshot."""
    if row["started_at"] is None:
        return None
    return max(0.0, taken - parse_rfc3339(row["started_at"]))


def key_of(row: Process, key: str) -> str | None:
    return program_of(row) if key == "program" else row[key]  # type: ignore[literal-required]


def group_rows(rows: list[Process], key: str, unified: set[str]) -> list[Group]:
    """One entry a key, the largest first; `unmeasured` counts the rows without a figure."""
    members: dict[str | None, list[Process]] = {}
    for row in rows:
        members.setdefault(key_of(row, key), []).append(row)

    def largest_first(name: str | None) -> tuple[bool, int, str]:
        held = _sum(held_bytes(row, unified) for row in members[name])
        return held is None, 0 if held is None else -held, str(name)

    return [_group(name, members[name], unified) for name in sorted(members, key=largest_first)]


def _group(name: str | None, members: list[Process], unified: set[str]) -> Group:
    return {
        "key": name,
        # A process that uses several cards has a row on each.
        "processes": len({(row["pid"], row["start_ticks"], row["pid_namespace"]) for row in members}),
        "vram_bytes": _sum(row["vram_bytes"] for row in members),
        "spill_bytes": _sum(row["spill_bytes"] for row in members),
        "unmeasured": sum(1 for row in members if held_bytes(row, unified) is None),
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
