"""The split of what a model server holds: `model` and `llm` of its rows, each leaf with where it comes from.

A figure larger than what is measured is a contradiction, not a figure; so is a remainder below zero. The claim of
a server (ollama's `/api/ps`) is never a figure: where it is far from the measurement, a warning says both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm import header_parts, log_parts, pool_parts
from gpusnap.llm.caches import cache_settings
from gpusnap.llm.gpu_row import Note
from gpusnap.llm.kv.settings import UNKNOWN_TYPE
from gpusnap.llm.model_facts import describe_model
from gpusnap.llm.parts import NOT_SAID, Parts
from gpusnap.llm.readings import number
from gpusnap.reading import Reading, computed, null, reported

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gguf_header import Header
    from gpusnap.llm.gpu_row import GpuRow
    from gpusnap.llm.model_files import ModelFile

_POOLS = ("vllm", "sglang")
_NOT_LANGUAGE = frozenset({"comfyui"})
# Below this a claim and a measurement are about the same thing said in GB and GiB, with and without a context.
_CLAIM_FACTOR = 1.15
_ROUNDING = 1 << 20  # the log prints hundredths of a MiB for each of many buffers


def split(
    evidence: Evidence, rows: Sequence[GpuRow], header_of: Callable[[ModelFile], Header | Reading]
) -> list[Note]:
    """Fills `model`, `llm` and their leaves into the figures of one process's rows."""
    shares = _shares(evidence, rows, header_of)
    notes = _claims(evidence, rows)
    for row, parts in zip(rows, shares, strict=True):
        notes += _check(evidence, row, parts)
        describe_model(evidence, row.figures)
        _describe_llm(evidence, row, parts)
    return notes


def _shares(
    evidence: Evidence, rows: Sequence[GpuRow], header_of: Callable[[ModelFile], Header | Reading]
) -> list[Parts]:
    workload = evidence.workload
    if workload.server in _POOLS:
        return [pool_parts.from_pool(evidence, row) for row in rows]
    if workload.server in _NOT_LANGUAGE:
        none = null("none", "not a language model")
        return [Parts(NOT_SAID, none, NOT_SAID, none, none) for _ in rows]
    if workload.role in ("front", "router") and evidence.header is None:
        none = null("none", "its children load the models")
        return [Parts(none, none, none, none, none) for _ in rows]
    computed_parts = header_parts.from_header(evidence, rows, header_of)
    if evidence.load is None:
        return computed_parts
    logged = log_parts.from_load(evidence.load, rows)
    for mine, theirs in zip(computed_parts, logged, strict=True):
        for name in ("weights", "kv", "compute"):
            if getattr(theirs, name).value is not None:
                setattr(mine, name, getattr(theirs, name))
    return computed_parts


def _check(evidence: Evidence, row: GpuRow, parts: Parts) -> list[Note]:
    """Nothing on a card is larger than what the driver measures there."""
    held = row.held
    if held is None:
        return []
    notes = []
    for name, leaf in (("weights", "weights"), ("kv", "KV cache"), ("compute", "compute buffers")):
        reading = getattr(parts, name)
        if reading.value is not None and number(reading) > held + _ROUNDING:
            source = reading.provenance.partition(":")[2]
            words = f"{number(reading)} bytes by {source}, {held} measured"
            setattr(parts, name, null("contradiction", words))
            notes.append(_note(evidence, row, f"{leaf} would be {_gib(number(reading))} ({source})", held))
    return notes


def _note(evidence: Evidence, row: GpuRow, what: str, held: int) -> Note:
    server = evidence.workload.server or "process"
    return Note("contradiction", f"{server} {row.pid}: {what}, measured are {_gib(held)}", row.adapter, row.pid)


def _gib(nbytes: int) -> str:
    return f"{nbytes / (1 << 30):.1f} GiB"


def _claims(evidence: Evidence, rows: Sequence[GpuRow]) -> list[Note]:
    """What the server says it holds, beside what its cards say, both over all cards."""
    measured = [row.held for row in rows]
    if any(held is None for held in measured):
        return []
    held = sum(value for value in measured if value is not None)
    notes = []
    for source, claim in evidence.workload.claims.items():
        low, high = sorted((claim, held))
        if high > low * _CLAIM_FACTOR + (256 << 20):
            cards = f" over {len(rows)} cards" if len(rows) > 1 else ""
            text = (
                f"{source} says {_gib(claim)} in VRAM, measured are {_gib(held)}{cards}: the claim is an estimate"
            )
            notes.append(Note("claim-contradicts-measurement", text, None, rows[0].pid))
    return notes


def _describe_llm(evidence: Evidence, row: GpuRow, parts: Parts) -> None:
    workload = evidence.workload
    leaves: dict[str, Reading] = {
        "server": _text(workload.server or None, "program"),
        "context_tokens": _context(evidence),
        "sequences": _sequences(evidence),
        "kv_type_k": _cache_type(evidence, "type_k"),
        "kv_type_v": _cache_type(evidence, "type_v"),
        "kv_bytes_per_token": parts.per_token,
        "weights_bytes": parts.weights,
        "kv_cache_bytes": parts.kv,
        "kv_cache_used_bytes": parts.kv_used,
        "compute_bytes": parts.compute,
        "overhead_bytes": _overhead(row, parts),
    }
    put_group(row.figures, "llm", leaves, ("server", "kv_type_k", "kv_type_v"))


def put_group(figures: object, group: str, leaves: dict[str, Reading], texts: Sequence[str]) -> None:
    """A group of the document and the provenance of its leaves; a text needs one only while it is null."""
    target = figures
    if not hasattr(target, "__setitem__"):
        raise TypeError("figures must be a mutable mapping")
    leaves = {name: _possible(reading) for name, reading in leaves.items()}
    target[group] = Reading({name: reading.value for name, reading in leaves.items()}, f"inferred:{group}")
    for name, reading in leaves.items():
        if name not in texts or reading.value is None:
            target[f"{group}.{name}"] = reading


def _possible(reading: Reading) -> Reading:
    """No integer of the document passes 2^53: what flags, logs and answers say may."""
    value = reading.value
    if isinstance(value, int) and not 0 <= value < 1 << 53:
        return null("out-of-range", f"{value} by {reading.provenance.partition(':')[2]}"[:200])
    return reading


def _text(value: str | None, source: str) -> Reading:
    return null("none") if value is None else reported(value, source)


def _context(evidence: Evidence) -> Reading:
    workload = evidence.workload
    if workload.server in _POOLS:
        tokens = pool_parts.pool_tokens(evidence)
        return (
            null("not-exposed") if tokens is None else reported(tokens, "log" if evidence.rank else "api./metrics")
        )
    if workload.server in _NOT_LANGUAGE or workload.role in ("front", "router"):
        return null("none")
    if workload.context is None:
        return null("ambiguous", "not in the command line, and the engine may have reduced it (--fit)")
    return _sourced(workload.context, workload.sources["context"])


def _sourced(value: object, source: str) -> Reading:
    """Words of the server are reported; flags and assumed defaults are declared facts."""
    is_word = source == "log" or source.startswith("api")
    return reported(value, source) if is_word else computed(value, source)


def _sequences(evidence: Evidence) -> Reading:
    workload = evidence.workload
    if workload.sequences is not None:
        return _sourced(workload.sequences, workload.sources["sequences"])
    if workload.server in _NOT_LANGUAGE or workload.role in ("front", "router"):
        return null("none")
    if workload.server == "llama.cpp":
        found = cache_settings(workload)
        count = 4 if workload.role == "server" else 1
        count = count if isinstance(found, Reading) else found[0].sequences
        return computed(count, "defaults:llama.cpp")
    return null("not-exposed")


def _cache_type(evidence: Evidence, name: str) -> Reading:
    workload = evidence.workload
    value = getattr(workload, name)
    if value == UNKNOWN_TYPE:
        return null("unknown-format", "a type of no build that is known, by its environment")
    if value is not None:
        return _sourced(str(value).lower(), workload.sources[name])
    if workload.server in _POOLS:
        dtype = workload.api.get("cache_dtype")
        return reported(dtype, "api./metrics") if isinstance(dtype, str) else null("not-exposed")
    if workload.server in _NOT_LANGUAGE or evidence.header is None:
        return null("none") if workload.server in _NOT_LANGUAGE else null("not-exposed")
    return computed("f16", f"defaults:{workload.server or 'llama.cpp'}")


def _overhead(row: GpuRow, parts: Parts) -> Reading:
    """What is left of the measured figure: context, libraries, fragmentation; compute where no log tells it."""
    if row.is_unified:
        return null("unified-memory")
    if row.held is None:
        return (
            Reading(None, row.figures["vram_bytes"].provenance)
            if "vram_bytes" in row.figures
            else null("not-exposed")
        )
    for reading in (parts.weights, parts.kv):
        if reading.value is None:
            return reading
    known = number(parts.weights) + number(parts.kv)
    source = "vram-weights-kv"
    if parts.compute.value is not None:
        known += number(parts.compute)
        source += "-compute"
    else:
        source += " compute included"
    rest = row.held - known
    if rest < -_ROUNDING:
        return null("contradiction", f"the parts are {-rest} bytes more than is measured")
    return computed(max(rest, 0), source) if rest >= 0 else computed(0, source + " rounded")
