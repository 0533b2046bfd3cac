"""A process's model for people: what it is, what its memory is made of, what other contexts would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.process import split_words
from gpusnap.explain.rows import card_name, entry_of
from gpusnap.explain.words import minute
from gpusnap.llm.aside import NOTHING
from gpusnap.render.columns import display_width, truncate
from gpusnap.render.identity import identity
from gpusnap.render.reasons import in_words
from gpusnap.render.units import apportion, format_bytes, format_number, pick_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.llm.aside import Aside
    from gpusnap.model import ContextRow, Explanation, LlmFacts, ModelFacts, Process, Snapshot
    from gpusnap.render.screen import Screen

_INDENT = "  "
_LABEL = 8
_BAR = 24
_SHORT_BAR = 12
_ROOM_FOR_WORDS = 32
_MEASURE = 34  # what stands beside the bar: a part's name, figure and kind
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
    document: Snapshot,
    explanation: Explanation,
    rows: Sequence[Process],
    screen: Screen,
    aside: Aside = NOTHING,
) -> list[str]:
    """What it is, then `model`, `split`, `context` and `says` where it has a model."""
    lines = _labelled("program", _program(document, rows[0]), screen)
    lines += _labelled("card", _cards(document, rows), screen)
    model = rows[0]["model"]
    if model is not None:
        lines += _labelled("model", _model(document, rows[0], model), screen)
    for row in rows:
        if row["llm"] is not None:
            where = _card(document, row) if len(rows) > 1 else ""
            lines += _split(document, row, row["llm"], aside, where, screen)
    lines += _labelled("context", _context(document, rows, explanation["context"]), screen)
    if rows[0]["llm"] is None and "pytorch" in (rows[0]["runtimes"] or ()):
        lines += _labelled("split", [_TORCH], screen)
    lines += _labelled("more", _extras(explanation, aside), screen)
    return lines + _labelled("says", list(aside.says), screen)


def _labelled(label: str, texts: Sequence[str], screen: Screen) -> list[str]:
    first = f"{_INDENT}{label:<{_LABEL}} "
    rest = " " * len(first)
    lines: list[str] = []
    for text in texts:
        lines += screen.filled(text, rest, first=rest if lines else first)
    return lines


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


def _cards(document: Snapshot, rows: Sequence[Process]) -> list[str]:
    """Which cards it is on, said where there are several to choose from."""
    if len(document["adapters"]) < 2:
        return []
    on = {row["adapter"] for row in rows}
    cards = [card for card in document["adapters"] if card["id"] in on]
    return [f"{card_name(card)}: {said}" for card in cards for said in identity(document, card)]


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


class _Part(NamedTuple):
    """One part of a split: `head` is its name and figure, `bar` as long as its share."""

    head: str
    bar: str
    kind: str
    words: str

    def measure(self, bar: int) -> str:
        """All but the words, with a bar of at most `bar` signs."""
        drawn = f"  {self.bar[: -(-len(self.bar) * bar // _BAR)]:<{bar}}" if bar else ""
        return f"{self.head}{drawn} {self.kind:<9}  "


def _split(document: Snapshot, row: Process, llm: LlmFacts, aside: Aside, where: str, screen: Screen) -> list[str]:
    """A line a part; where there is little room bars are shorter and words take several lines, or stand below."""
    first = f"{_INDENT}{'split':<{_LABEL}} {where}"
    rest = " " * display_width(first)
    lines: list[str] = []
    parts = _parts(document, row, llm, aside)
    bar = _bar_for(None if screen.width is None else screen.width - len(rest))
    for part in parts:
        start = rest if lines else first
        measure = part.measure(bar)
        words_below = screen.width is not None and screen.width - len(rest + measure) < _ROOM_FOR_WORDS
        if not part.kind:
            lines += screen.filled(f"{part.head}  {part.words}", rest + _INDENT, first=start)
        elif words_below:
            lines += screen.filled(measure.rstrip(), rest + _INDENT, first=start)
            lines += screen.filled(part.words, rest + _INDENT)
        else:
            lines += screen.filled(part.words, rest + " " * len(measure), first=start + measure)
    used = llm["kv_cache_used_bytes"]
    if used is not None:
        lines += screen.filled(f"of the KV cache {format_bytes(used)} hold tokens now", rest + " " * 10)
    return lines


def _bar_for(room: int | None) -> int:
    if room is None or room >= _MEASURE + _BAR + _ROOM_FOR_WORDS:
        return _BAR
    return _SHORT_BAR if room >= _MEASURE + _SHORT_BAR else 0


def _parts(document: Snapshot, row: Process, llm: LlmFacts, aside: Aside) -> list[_Part]:
    """Figure, bar, kind, words of each part; one without a figure says why."""
    words = split_words(document, row, aside)
    entry = entry_of(document, row)
    known = [(leaf, llm[leaf]) for leaf, _ in _PARTS if llm[leaf] is not None]  # type: ignore[literal-required]
    unit = pick_unit([nbytes for _, nbytes in known] or [0])
    total = row["vram_bytes"] if row["vram_bytes"] is not None else row["spill_bytes"]
    sizes = [nbytes for _, nbytes in known]
    shown = dict(zip([leaf for leaf, _ in known], apportion(sizes, total, unit), strict=True))
    width = max((display_width(text) for text in shown.values()), default=1)
    parts = []
    for leaf, label in _PARTS:
        source = entry.get(f"llm.{leaf}", "")
        nbytes = llm[leaf]  # type: ignore[literal-required]
        if nbytes is None:
            if leaf == "compute_bytes" and llm["overhead_bytes"] is not None:
                continue  # it is in the rest, and the rest says so
            parts.append(_Part(f"{label:<9} {'-':>{width}} {'':<{len(unit)}}", "", "", in_words(source)))
            continue
        bar = "█" * max(1, round(_BAR * nbytes / total)) if total is not None and total > 0 and nbytes > 0 else ""
        kind = "remainder" if leaf == "overhead_bytes" else source.partition(":")[0]
        head = f"{label:<9} {shown[leaf]:>{width}} {unit}"
        parts.append(_Part(head, bar, kind, words.get(f"llm.{leaf}", "")))
    return parts


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
