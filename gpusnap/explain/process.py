"""A process in figures: its model's split in words, and what other context lengths would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpusnap.explain.figures import process_figures
from gpusnap.explain.rows import entry_of
from gpusnap.llm.aside import NOTHING
from gpusnap.render.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusnap.llm.aside import Aside
    from gpusnap.model import ContextRow, Figure, LlmFacts, Process, Snapshot

_GRAIN = 256  # the engine rounds a context up to it


def split_words(document: Snapshot, row: Process, aside: Aside = NOTHING) -> dict[str, str]:
    """`says` of the split's leaves: which arithmetic or which witness is behind the figure."""
    llm = row["llm"]
    if llm is None:
        return {}
    entry = entry_of(document, row)
    words = {}
    if llm["weights_bytes"] is not None:
        words["llm.weights_bytes"] = _weights(entry)
    if llm["kv_cache_bytes"] is not None:
        words["llm.kv_cache_bytes"] = _cache(llm, entry, aside)
    if llm["compute_bytes"] is not None:
        words["llm.compute_bytes"] = "buffers of the compute graph, by the server's own log; they follow -ub"
    if llm["overhead_bytes"] is not None:
        words["llm.overhead_bytes"] = _rest(llm)
    return words


def _weights(entry: Mapping[str, str]) -> str:
    kind, _, source = entry.get("llm.weights_bytes", "").partition(":")
    if source.startswith("gguf"):
        flag = source.partition(" ")[2]
        if kind == "inferred":
            return "tensor table of the GGUF header; all layers are taken to be on this card, since they fit"
        layers = f", by layers ({flag})" if flag.startswith("-ngl") else ""
        return f"tensor table of the GGUF header{layers}"
    return _witness(source)


def _witness(source: str) -> str:
    if source.startswith("log"):
        return "the server's own log"
    if source.startswith("api."):
        return f"the server's local interface, {source[4:]}"
    return source


def _cache(llm: LlmFacts, entry: Mapping[str, str], aside: Aside) -> str:
    kind, _, source = entry.get("llm.kv_cache_bytes", "").partition(":")
    size = _size(llm, aside)
    if kind == "estimated":
        doubt = source.partition(" ")[2].partition(" -ngl ")[0] if source.startswith("gguf") and size else ""
        return f"an estimate: {size}; {doubt}" if doubt else f"an estimate: {source}"
    if kind == "reported":
        return f"{_witness(source)}{', ' + size if size else ''}"
    return size or source


def _size(llm: LlmFacts, aside: Aside) -> str:
    """`40 layers × 8 heads × (128 + 128) × f16 × 32,768 tokens, 1 sequence`."""
    tokens, sequences = llm["context_tokens"], llm["sequences"]
    if tokens is None:
        return ""
    type_k, type_v = llm["kv_type_k"], llm["kv_type_v"]
    types = type_k if type_k == type_v else f"{type_k} and {type_v}"
    per_token = llm["kv_bytes_per_token"]
    each = aside.formula or (f"{format_bytes(per_token)} a token ({types})" if per_token is not None else None)
    said = (
        f"{each} × {tokens:,} tokens" if each else f"{tokens:,} tokens, {types}; not all layers keep all of them"
    )
    if sequences is None:
        return said
    if sequences == 1:
        return f"{said}, 1 sequence"
    if aside.one_pool is None or not tokens >= sequences > 0:
        return f"{said}, {sequences} sequences"
    each = "in one pool" if aside.one_pool else f"of {tokens // sequences:,}"
    return f"{said}, {sequences} sequences {each}"


def _rest(llm: LlmFacts) -> str:
    if llm["compute_bytes"] is not None:
        return "context, libraries, fragmentation"
    hint = (
        " (the server logs no buffer sizes; llama-server does with -lv 4)" if llm["server"] == "llama.cpp" else ""
    )
    return f"compute buffers, context, libraries{hint}"


def with_words(document: Snapshot, rows: Sequence[Process], aside: Aside = NOTHING) -> list[Figure]:
    """The figures of one process's rows, with the split's words, and the aside's figures behind them."""
    told: list[Figure] = []
    for row in rows:
        words = split_words(document, row, aside)
        for figure in process_figures(document, row):
            said = words.get(figure["field"]) if figure["value"] is not None else None
            told.append({**figure, "says": said} if said is not None else figure)
    told += [_of_torch(row) for row in rows[:1] if "pytorch" in (row["runtimes"] or ()) and row["llm"] is None]
    return [*told, *extra_figures(aside)]


def extra_figures(aside: Aside) -> list[Figure]:
    """What a live look gave beyond the document, as figures."""
    extras = [
        {
            "field": extra.field,
            "value": extra.reading.value,
            "unit": extra.unit,
            "provenance": extra.reading.provenance,
            "says": extra.says,
        }
        for extra in aside.extras
    ]
    return cast("list[Figure]", extras)


def _of_torch(row: Process) -> Figure:
    """pytorch#37250: 0 allocated, 12 GiB held. The allocator's inside is the program's own."""
    return {
        "field": "torch_allocated_bytes",
        "value": None,
        "unit": "bytes",
        "provenance": "null:not-exposed",
        "says": f"can't be seen from outside: what {row['name'] or 'it'} holds is a context, PyTorch's "
        "allocator with its cache, and libraries",
    }


def context_rows(
    document: Snapshot, rows: Sequence[Process], wanted: Sequence[int], aside: Aside = NOTHING
) -> list[ContextRow]:
    """What other context lengths would take, over all cards; without a wish half, all and double of today's.

    Exact by the header where it was read; else a straight line, where the cache is one. `fits`: the growth over
    today is no more than what is free on its cards.
    """
    llm = rows[0]["llm"] if rows else None
    if llm is None or (llm["kv_cache_bytes"] is None and aside.cache_at is None):
        return []
    now = llm["context_tokens"]
    tokens = list(wanted) or ([now // 2, now, now * 2] if now is not None and now >= 2 else [])
    today = _total(rows)
    found: list[ContextRow] = []
    for count in sorted(set(tokens)):
        nbytes = _cache_at(llm, today, count, aside)
        found.append({"tokens": count, "kv_cache_bytes": nbytes, "fits": _fits(document, rows, today, nbytes)})
    return found


def _total(rows: Sequence[Process]) -> int | None:
    """Today's cache over all cards; None where one card's is not known."""
    caches = [row["llm"]["kv_cache_bytes"] if row["llm"] is not None else None for row in rows]
    return None if any(cache is None for cache in caches) else sum(cache for cache in caches if cache is not None)


def _cache_at(llm: LlmFacts, today: int | None, tokens: int, aside: Aside) -> int | None:
    if aside.cache_at is not None:
        return aside.cache_at(tokens)
    now, per_token = llm["context_tokens"], llm["kv_bytes_per_token"]
    if today is None or now is None or per_token is None:
        return None
    padded = -(-tokens // _GRAIN) * _GRAIN
    return max(0, today + (padded - (-(-now // _GRAIN) * _GRAIN)) * per_token)


def _fits(document: Snapshot, rows: Sequence[Process], today: int | None, then: int | None) -> bool | None:
    if today is None or then is None:
        return None
    if then <= today:
        return True
    mine = {row["adapter"] for row in rows}
    free = [card["memory"]["free_bytes"] for card in document["adapters"] if card["id"] in mine]
    if not free or any(nbytes is None for nbytes in free):
        return None
    return then - today <= sum(nbytes for nbytes in free if nbytes is not None)
