"""A process's model for people: what it is, what its memory is made of, what other contexts would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.process import split_words
from gpusnap.explain.rows import entry_of
from gpusnap.explain.words import minute
from gpusnap.llm.aside import NOTHING
from gpusnap.render.reasons import in_words
from gpusnap.render.table import display_width, truncate
from gpusnap.render.units import apportion, format_bytes, format_number, pick_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.aside import Aside
    from gpusnap.model import ContextRow, Explanation, LlmFacts, ModelFacts, Process, Snapshot

_INDENT = "  "
_LABEL = 8
_BAR = 24
_MOST = 400
_TORCH = (
    "one figure: context, PyTorch's allocator (tensors and its cache of freed blocks), libraries; how much of "
    "it is allocated can't be seen from outside"
)
_PARTS = (
    ("weights_bytes", "weights"),
    ("kv_cache_bytes", "KV cache"),
    ("compute_bytes", "compute"),
    ("overhead_bytes", "the rest"),
)


def process_lines(
    document: Snapshot, explanation: Explanation, rows: Sequence[Process], aside: Aside = NOTHING
) -> list[str]:
    """What it is, then `model`, `split`, `context` and `says` where it has a model."""
    lines = _labelled("program", _program(document, rows[0]))
    model = rows[0]["model"]
    if model is not None:
        lines += _labelled("model", _model(document, rows[0], model))
    for row in rows:
        if row["llm"] is not None:
            where = _card(document, row) if len(rows) > 1 else ""
            lines += _labelled("split", _split(document, row, row["llm"], aside, where))
    lines += _labelled("context", _context(document, rows, explanation["context"]))
    if rows[0]["llm"] is None and "pytorch" in (rows[0]["runtimes"] or ()):
        lines += _labelled("split", [_TORCH])
    lines += _labelled("more", _extras(explanation, aside))
    return lines + _labelled("says", list(aside.says))


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    first = f"{_INDENT}{label:<{_LABEL}} "
    rest = " " * len(first)
    return [(rest if number else first) + line for number, line in enumerate(lines)]


def _program(document: Snapshot, row: Process) -> list[str]:
    """Its command line (secrets redacted), folder, start, unit or container, and what it has loaded."""
    words = (
        " ".join(row["cmdline"] or ())
        or row["exe"]
        or row["name"]
        or in_words(entry_of(document, row).get("name"))
    )
    lines = [truncate(words, _MOST)]
    facts = [row["role"]] if row["role"] is not None else []
    if row["runtimes"]:
        facts.append(", ".join(row["runtimes"]) + " loaded")
    if row["started_at"] is not None:
        facts.append(f"since {minute(row['started_at'])}")
    for label, value in (
        ("unit", row["systemd_unit"]),
        ("container", row["container_id"]),
        ("job", row["slurm_job_id"]),
        ("in", row["cwd"]),
    ):
        if value is not None:
            facts.append(f"{label} {truncate(value, 40)}")
    if facts:
        lines.append(" · ".join(facts))
    return lines


def _model(document: Snapshot, row: Process, model: ModelFacts) -> list[str]:
    parts = [model["name"] or "a model without a name"]
    if model["architecture"] is not None:
        parts.append(model["architecture"])
    if model["parameters"] is not None:
        parts.append(_parameters(model["parameters"]))
    if model["quantization"] is not None:
        parts.append(model["quantization"])
    if model["layers"] is not None:
        parts.append(f"{model['layers']} layers")
    if model["context_trained"] is not None:
        parts.append(f"trained for {model['context_trained']:,} tokens")
    lines = [" · ".join(parts)]
    if model["path"] is not None:
        lines.append(f"{model['path']} ({format_bytes(model['file_bytes'])})")
    elif model["architecture"] is None:
        lines.append(f"no header: {in_words(entry_of(document, row).get('model.architecture'))}")
    return lines


def _parameters(count: int) -> str:
    for limit, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= limit:
            return f"{count / limit:.1f} {letter} parameters"
    return f"{count:,} parameters"


def _split(document: Snapshot, row: Process, llm: LlmFacts, aside: Aside, where: str) -> list[str]:
    """One line a part: figure, bar, kind, words; a part without a figure says why."""
    words = split_words(document, row, aside)
    entry = entry_of(document, row)
    known = [(leaf, llm[leaf]) for leaf, _ in _PARTS if llm[leaf] is not None]  # type: ignore[literal-required]
    unit = pick_unit([nbytes for _, nbytes in known] or [0])
    total = row["vram_bytes"] if row["vram_bytes"] is not None else row["spill_bytes"]
    sizes = [nbytes for _, nbytes in known]
    shown = dict(zip([leaf for leaf, _ in known], apportion(sizes, total or 0, unit), strict=True))
    width = max((display_width(text) for text in shown.values()), default=1)
    lines = []
    for leaf, label in _PARTS:
        source = entry.get(f"llm.{leaf}", "")
        nbytes = llm[leaf]  # type: ignore[literal-required]
        if nbytes is None:
            if leaf == "compute_bytes" and llm["overhead_bytes"] is not None:
                continue  # it is in the rest, and the rest says so
            lines.append(f"{label:<9} {'-':>{width}} {'':<{len(unit)}}  {in_words(source)}")
            continue
        bar = "█" * max(1, round(_BAR * nbytes / total)) if total and nbytes else ""
        kind = "remainder" if leaf == "overhead_bytes" else source.partition(":")[0]
        text = f"{label:<9} {shown[leaf]:>{width}} {unit}  {bar:<{_BAR}} {kind:<9}  {words.get(f'llm.{leaf}', '')}"
        lines.append(text.rstrip())
    used = llm["kv_cache_used_bytes"]
    if used is not None:
        lines.append(f"{'':<9} of the KV cache {format_bytes(used)} hold tokens now")
    return [f"{where}{line}" for line in lines] if where else lines


def _card(document: Snapshot, row: Process) -> str:
    card = next((card for card in document["adapters"] if card["id"] == row["adapter"]), None)
    return f"GPU {card['index']}  " if card is not None and card["index"] is not None else ""


def _context(document: Snapshot, rows: Sequence[Process], found: Sequence[ContextRow]) -> list[str]:
    llm = rows[0]["llm"]
    if llm is None or not found:
        return []
    per_token = llm["kv_bytes_per_token"]
    head = f"{_kib(per_token)} a token: " if per_token is not None else ""
    free = [card["memory"]["free_bytes"] for card in document["adapters"] if card["id"] == rows[0]["adapter"]]
    parts = []
    for one in found:
        text = f"{_tokens(one['tokens'])} {format_bytes(one['kv_cache_bytes'])}"
        if one["tokens"] == llm["context_tokens"]:
            text += " (now)"
        elif one["fits"] is False:
            text += (
                f" does not fit ({format_bytes(free[0])} free)"
                if free and free[0] is not None
                else " does not fit"
            )
        parts.append(text)
    return [head + " · ".join(parts)]


def _kib(nbytes: int) -> str:
    return f"{format_number(nbytes, 'KiB')} KiB" if nbytes >= 1024 else f"{nbytes} B"


def _tokens(count: int) -> str:
    return f"{count // 1024}k" if count % 1024 == 0 else f"{count:,}"


def _extras(explanation: Explanation, aside: Aside) -> list[str]:
    """Figures that only this server or framework has."""
    names = {extra.field for extra in aside.extras}
    lines = []
    for figure in explanation["figures"]:
        value = figure["value"]
        if figure["field"] in names and isinstance(value, int | float):
            text = format_bytes(int(value)) if figure["unit"] == "bytes" else f"{value:g}"
            text += " %" if figure["unit"] == "percent" else ""
            lines.append(f"{text:>9}  {figure['says']}")
    return lines
