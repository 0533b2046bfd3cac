"""`ps` for people: each card in a sentence and a bar, then a row a process, then what was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.card import card_lines
from gpusnap.render.program import program_of
from gpusnap.render.ps_select import age_of, key_of, unified_adapters
from gpusnap.render.reasons import in_words, short
from gpusnap.render.units import format_age, format_bytes, format_number, pick_unit
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusnap.model import Group, Process, Snapshot
    from gpusnap.render.screen import Screen

MISSING = "-"
# What gives way in a narrow terminal: the role is cut, then the program's name, then columns are left out.
_FLEX = ("ROLE", "PROGRAM")
_LEAST = 16
_DROP = ("COMMAND", "CWD", "JOB", "UNIT", "START", "SPILL", "AGE", "GPU%", "ROLE", "USER", "S", "SYSTEM")
_STATES = {"zombie": "Z", "disk-sleep": "D", "stopped": "T", "dead": "X", "running": "R", "sleeping": "S"}
_NOTABLE = frozenset({"zombie", "disk-sleep", "stopped", "dead"})


class Layout:
    """Where it is shown, and how detailed."""

    def __init__(self, screen: Screen, *, wide: bool = False, plain_bytes: bool = False) -> None:
        self.screen = screen
        self.wide = wide
        self.plain_bytes = plain_bytes


class Column:
    """A column: its header, alignment, the leaf behind it (for the footnote) and how a row fills it."""

    __slots__ = ("align", "cell", "header", "leaf")

    def __init__(self, header: str, align: str, leaf: str, cell: Callable[[Process], str]) -> None:
        self.header = header
        self.align = align
        self.leaf = leaf
        self.cell = cell


def ps_lines(document: Snapshot, rows: list[Process], layout: Layout) -> list[str]:
    lines: list[str] = []
    for adapter in document["adapters"]:
        lines += card_lines(document, adapter, layout.screen)
    if document["processes"] is None or not document["adapters"]:
        return lines
    if not rows:
        return [*lines, "", "no process to show"]
    columns = _columns(document, rows, layout)
    body = [[column.cell(row) for column in columns] for row in rows]
    header = [column.header for column in columns]
    lines += [
        "",
        *layout.screen.table(
            header,
            body,
            "".join(column.align for column in columns),
            flex=[header.index(name) for name in _FLEX],
            least=_LEAST,
            drop=[header.index(name) for name in _DROP if name in header],
            indent="  ",
        ),
    ]
    note = _footnote(document, rows, columns, body)
    return [*lines, "", *layout.screen.filled(note)] if note else lines


def _columns(document: Snapshot, rows: list[Process], layout: Layout) -> list[Column]:
    taken = parse_rfc3339(document["taken_at"])
    index = {adapter["id"]: adapter for adapter in document["adapters"]}
    memory = _memory_cell(rows, layout)
    found = [
        Column("PID", "r", "pid", lambda row: str(row["pid"])),
        Column("USER", "l", "user", lambda row: _text(row["user"])),
        Column("AGE", "r", "started_at", lambda row: format_age(age_of(row, taken))),
        Column("VRAM", "r", "vram_bytes", _vram_cell(document, rows, memory)),
        Column(_spill_header(document, rows), "r", "spill_bytes", lambda row: memory(row["spill_bytes"])),
        Column("GPU%", "r", "gpu_percent", lambda row: _percent(row["gpu_percent"])),
        Column("PROGRAM", "l", "name", lambda row: _text(program_of(row))),
        Column("ROLE", "l", "role", lambda row: _role(document, row)),
    ]
    if len({row["adapter"] for row in rows}) > 1 or len(index) > 1:
        found.insert(0, Column("GPU", "r", "adapter", lambda row: _gpu_name(index.get(row["adapter"]))))
    if any(row["state"] in _NOTABLE for row in rows):
        position = next(i for i, column in enumerate(found) if column.header == "AGE")
        found.insert(position, Column("S", "l", "state", lambda row: _STATES.get(row["state"] or "", MISSING)))
    return [*found, *_wide_columns()] if layout.wide else found


def _wide_columns() -> list[Column]:
    return [
        Column("START", "l", "started_at", lambda row: _text(row["started_at"])),
        Column(
            "UNIT",
            "l",
            "systemd_unit",
            lambda row: _text((row["container_id"] or "")[:12] or row["systemd_unit"]),
        ),
        Column("JOB", "l", "slurm_job_id", lambda row: _text(row["slurm_job_id"])),
        Column("CWD", "l", "cwd", lambda row: _text(row["cwd"])),
        Column("COMMAND", "l", "cmdline", lambda row: _text(" ".join(row["cmdline"] or ()) or None)),
    ]


def _gpu_name(adapter: object) -> str:
    if not isinstance(adapter, dict):
        return MISSING
    index = adapter["index"]
    return MISSING if index is None else f"{'m' if adapter['kind'] == 'partition' else ''}{index}"


def _memory_cell(rows: list[Process], layout: Layout) -> Callable[[int | None], str]:
    """One unit a column, chosen by the largest figure."""
    if layout.plain_bytes:
        return lambda count: MISSING if count is None else str(count)
    unit = pick_unit(count for row in rows for count in (row["vram_bytes"], row["spill_bytes"]))
    return lambda count: MISSING if count is None else f"{format_number(count, unit)} {unit[:1]}"


def _vram_cell(
    document: Snapshot, rows: list[Process], memory: Callable[[int | None], str]
) -> Callable[[Process], str]:
    """On unified memory the word stands once in a run of rows: the figures are in the SYSTEM column."""
    is_unified = [_is_unified(document, row) for row in rows]
    runs = zip(rows, is_unified, [False, *is_unified], strict=False)
    words = {id(row): "" if above else "unified" for row, here, above in runs if here}

    def cell(row: Process) -> str:
        return words[id(row)] if id(row) in words else memory(row["vram_bytes"])

    return cell


def _text(value: object) -> str:
    return MISSING if value is None else str(value)


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"


def _role(document: Snapshot, row: Process) -> str:
    """A model says what it holds; a row without a name says why it has none."""
    model, llm = row["model"], row["llm"]
    if model is not None and model["name"] is not None:
        parts = [" ".join(word for word in (model["name"], model["quantization"]) if word is not None)]
        if llm is not None:
            parts += _llm_parts(llm["context_tokens"], llm["weights_bytes"], llm["kv_cache_bytes"])
        return " · ".join(parts)
    if row["name"] is None:
        return in_words(document["provenance"][row["provenance"]].get("name"))
    return "gpusnap itself" if row["self"] else _text(row["role"])


def _llm_parts(tokens: int | None, weights: int | None, cache: int | None) -> list[str]:
    parts = []
    if tokens is not None:
        parts.append(f"{tokens:,} tokens")
    memory = [
        f"{name} {format_bytes(count)}"
        for name, count in (("weights", weights), ("KV", cache))
        if count is not None
    ]
    return [*parts, ", ".join(memory)] if memory else parts


def _footnote(document: Snapshot, rows: list[Process], columns: list[Column], body: list[list[str]]) -> str:
    """One line that counts, a column, why cells say `-`."""
    notes = []
    for number, column in enumerate(columns):
        if column.header in ("PID", "GPU", "ROLE", "UNIT", "JOB"):
            continue
        reasons: dict[str, int] = {}
        for row, cells in zip(rows, body, strict=True):
            if cells[number] == MISSING:
                why = document["provenance"][row["provenance"]].get(column.leaf)
                text = _why(why)
                reasons[text] = reasons.get(text, 0) + 1
        if reasons:
            counted = ", ".join(f"{text} ({count})" for text, count in reasons.items())
            notes.append(f"{column.header}: {counted}")
    return f"{MISSING} : not measured. " + "; ".join(notes) + "." if notes else ""


def _why(provenance: str | None) -> str:
    """The source's own words where they are prose, the reason's else."""
    if provenance is not None and provenance.startswith("null:none "):
        return provenance[len("null:none ") :]
    return short(provenance)


def group_lines(document: Snapshot, groups: list[Group], key: str, layout: Layout) -> list[str]:
    """`--group-by`: one row a key."""
    lines: list[str] = []
    for adapter in document["adapters"]:
        lines += card_lines(document, adapter, layout.screen)
    rows = document["processes"] or []
    taken = parse_rfc3339(document["taken_at"])
    unit = pick_unit(count for group in groups for count in (group["vram_bytes"], group["spill_bytes"]))
    body = []
    above = False
    for group in groups:
        members = [row for row in rows if key_of(row, key) == group["key"]]
        ages = [age for row in members if (age := age_of(row, taken)) is not None]
        busy = [row["gpu_percent"] for row in members if row["gpu_percent"] is not None]
        here = all(_is_unified(document, row) for row in members)
        unified = "" if above else "unified"
        above = here
        body.append(
            [
                _text(group["key"]),
                str(group["processes"]),
                unified if here else _group_bytes(group["vram_bytes"], unit, layout),
                _group_bytes(group["spill_bytes"], unit, layout),
                str(group["unmeasured"]),
                format_age(max(ages)) if ages else MISSING,
                _percent(max(busy)) if busy else MISSING,
            ]
        )
    header = [key.upper(), "PROCESSES", "VRAM", _spill_header(document, rows), "UNMEASURED", "OLDEST", "BUSIEST%"]
    return [*lines, "", *layout.screen.whole_table(header, body, "lrrrrrr", wrap=[0], indent="  ")]


def _spill_header(document: Snapshot, rows: list[Process]) -> str:
    unified = unified_adapters(document)
    return "SYSTEM" if all(row["adapter"] in unified for row in rows) else "SPILL"


def _is_unified(document: Snapshot, row: Process) -> bool:
    return document["provenance"][row["provenance"]].get("vram_bytes", "") == "null:unified-memory"


def _group_bytes(count: int | None, unit: str, layout: Layout) -> str:
    if count is None:
        return MISSING
    return str(count) if layout.plain_bytes else format_bytes(count, unit)
