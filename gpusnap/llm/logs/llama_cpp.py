"""llama.cpp's load log: every wording since 2024, of llama-server, llama-cli, ollama's runners and the forks.

`size =` is a sum of the `buffer size` lines above and never added to them. Breakdown tables are projections
(`--fit`) or printed at exit: they are in `breakdown.py` and never make a figure. How lines become loads is in
`reader.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpusnap.llm.logs import ollama
from gpusnap.llm.logs.load import Cache, mib
from gpusnap.llm.logs.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.llm.logs.lines import Line
    from gpusnap.llm.logs.load import Load

_NUMBER = r"(\d{1,12}(?:[.,]\d{1,6})?)"
_BUFFER = re.compile(
    r"(?:(?P<function>[\w.~]{1,64})[:,] +)?(?P<device>[A-Za-z][\w()\[\]:.-]{0,63}) +"
    r"(?:(?P<kind>[A-Za-z0-9][\w.^-]{0,20}(?: [A-Za-z0-9][\w.^-]{0,20}){0,3}) +)?buffer(?: size)? *= *"
    + _NUMBER
    + r" *MiB$"
)
_SIZE = re.compile(
    r"(?P<function>llama_[\w.~]{1,64}): +size *= *" + _NUMBER + r" MiB"
    r"(?: \( *(?P<cells>\d{1,12}) cells, *(?P<layers>\d{1,6}) layers"
    r"(?:, *(?P<seqs>\d{1,6})(?:/ *(?P<streams>\d{1,6}))? seqs)?)?"
)
_SELF_SIZE = re.compile(r"(?:llama_[\w.~]{1,64}|init|llama_context): +KV self size *= *" + _NUMBER + r" MiB")
_TYPES = re.compile(r"\b(K|V|c\^KV) \((\w{1,16})\):")
_OFFLOADED = re.compile(r"(?:llm_)?load_tensors: +offload(?:ed|ing) (\d{1,6})/(\d{1,6}) layers to GPU")
_SETTING = re.compile(
    r"(?:llama_context|llama_init_from_model|llama_new_context_with_model): +"
    r"(n_ctx|n_ctx_seq|n_ctx_per_seq|n_seq_max|n_batch|n_ubatch|kv_unified|flash_attn) *= *(\w{1,16})$"
)
_OLD_CACHE = re.compile(r"(?:llama_kv_cache_init|init): kv_size = (\d+), .*type_k = '(\w+)', type_v = '(\w+)'")
_DEVICE = re.compile(r"\w{1,64}: using device (\S{1,64}) \((.{0,128}?)\)(?: \((.{0,32})\))? - \d+ MiB free$")
_META = re.compile(
    r"llama_model_loader: loaded meta data with \d+ key-value pairs and \d+ tensors from (.+?) \(version "
)
_SERVER = re.compile(r"(?:load_model|main|init): +loading model '?(.+?)'?$")
_DRAFT = re.compile(r"[\w:]{1,64}: +(?:loading draft model|creating (?:MTP )?draft context)")
_SLOTS = re.compile(r"load_model: initializing, n_slots = (\d+), n_ctx_slot = (\d+), kv_unified = '(\w+)'")
_CREATING = re.compile(r"llama_kv_cache\w{0,32}: creating .{0,64}cache")
_BUILD = re.compile(r"(?:main: )?build(?:_info)?: (?:b?(\d{1,7})\b.{0,64})$")
_FAILED = re.compile(
    r".{0,128}?(?:failed to load model|error loading model|failed to create.{0,16}context|"
    r"failed to initialize the context|unable to load model|exiting due to model loading error)"
)
_NO_MEMORY = re.compile(r".{0,64}?: .{0,64}?(?:failed to allocate|cudaMalloc failed|unable to allocate)")
_CONTEXT_FUNCTIONS = ("llama_", "sched_reserve", "graph_reserve", "init")


def read(lines: Iterable[Line]) -> list[Load]:
    """Every load that the lines tell of, oldest first; `last_complete` picks the one that counts."""
    reader = Reader()
    for line in lines:
        _take(reader, line.text, line.tag if line.tag.startswith("port:") else "")
    return reader.loads


def last_complete(loads: list[Load]) -> Load | None:
    """The last load that went through. While a newer one is under way there is no telling what lives on."""
    for load in reversed(loads):
        if load.is_projection() or not (load.models or load.contexts):
            continue
        return load if load.is_complete() else None
    return None


def _take(reader: Reader, text: str, tag: str) -> None:
    if text.endswith("MiB") and _take_buffer(reader, text, tag):
        return
    if text.startswith("time="):
        ollama.take(reader, text)
        return
    for pattern, take in _TAKERS:
        found = pattern.match(text)
        if found is not None:
            take(reader, found, tag)
            return


def _take_buffer(reader: Reader, text: str, tag: str) -> bool:
    found = _BUFFER.match(text)
    if found is None:
        return False
    function = found["function"] or ""
    nbytes = mib(found[4])
    part = _part(found["kind"])
    if part == "weights":
        reader.weights(tag, found["device"], nbytes)
    elif part == "compute" and function and not function.startswith(_CONTEXT_FUNCTIONS):
        reader.projector(tag, part, found["device"], nbytes)  # `alloc_compute_meta`, `reserve_compute_meta`
    else:
        reader.buffer(tag, part, found["device"], nbytes)
    return True


def _part(kind: str | None) -> str:
    if kind is None or kind == "model":
        return "weights"
    known = {"KV": "kv", "RS": "state", "compute": "compute", "output": "output", "LoRA": "lora"}
    if kind in known:
        return known[kind]
    if kind.endswith(" KV"):  # "DeepSeek4 compressed KV"
        return "kv"
    return "state" if kind.endswith(" state") else "other"  # "DSV4 csa state"


def _take_size(reader: Reader, found: re.Match[str], tag: str) -> None:
    function = found["function"]
    cache = Cache("state" if "recurrent" in function else "kv", mib(found[2]))
    for name, group in (("cells", "cells"), ("layers", "layers"), ("sequences", "seqs"), ("streams", "streams")):
        value = found[group]
        setattr(cache, name, int(value) if value is not None else None)
    for which, quant in _TYPES.findall(found.string):
        setattr(cache, "type_v" if which == "V" else "type_k", quant)
    reader.cache(tag, cache)


def _take_self_size(reader: Reader, found: re.Match[str], tag: str) -> None:
    cache = Cache("kv", mib(found[1]))
    for which, quant in _TYPES.findall(found.string):
        setattr(cache, "type_v" if which == "V" else "type_k", quant)
    reader.cache(tag, cache)


def _take_offloaded(reader: Reader, found: re.Match[str], tag: str) -> None:
    load = reader.load(tag)
    if not reader.in_weights or not load.models:
        load = reader.start(tag)
    load.models[-1].offloaded = (int(found[1]), int(found[2]))


def _take_setting(reader: Reader, found: re.Match[str], tag: str) -> None:
    context = reader.context(tag)
    name, value = found[1], found[2]
    if context.has("compute") or (name in context.settings and context.buffers):
        context = reader.context(tag, fresh=True)
    context.settings[name] = value


def _take_old_cache(reader: Reader, found: re.Match[str], tag: str) -> None:
    settings = reader.context(tag).settings
    settings["kv_size"], settings["type_k"], settings["type_v"] = found[1], found[2], found[3]


def _take_device(reader: Reader, found: re.Match[str], tag: str) -> None:
    address = found[3]
    known = address is not None and address.count(":") == 2
    reader.load(tag).devices[found[1]] = (found[2], address.lower() if known and address else None)


def _take_meta(reader: Reader, found: re.Match[str], tag: str) -> None:
    reader.model_path(tag, found[1])


def _take_creating(reader: Reader, _found: re.Match[str], _tag: str) -> None:
    reader.creating = True


def _take_server(reader: Reader, found: re.Match[str], tag: str) -> None:
    reader.draft_next = False
    reader.start(tag, found[1])


def _take_draft(reader: Reader, _found: re.Match[str], _tag: str) -> None:
    reader.draft_next = True


def _take_slots(reader: Reader, found: re.Match[str], tag: str) -> None:
    reader.load(tag).slots = {"n_slots": found[1], "n_ctx_slot": found[2], "kv_unified": found[3]}


def _take_fresh(reader: Reader, _found: re.Match[str], tag: str) -> None:
    if reader.load(tag).models:
        reader.context(tag, fresh=True)


def _take_no_alloc(reader: Reader, found: re.Match[str], tag: str) -> None:
    load = reader.load(tag)
    if load.models and found[1] == "1":
        load.models[-1].projection = True


def _take_build(reader: Reader, found: re.Match[str], tag: str) -> None:
    reader.load(tag).build = "b" + found[1]


def _take_failed(reader: Reader, _found: re.Match[str], tag: str) -> None:
    reader.load(tag).failed = True


def _take_no_memory(reader: Reader, _found: re.Match[str], tag: str) -> None:
    load = reader.load(tag)
    if load.contexts:
        load.contexts[-1].failed = True


_TAKERS = (
    (_SIZE, _take_size),
    (_SELF_SIZE, _take_self_size),
    (_SETTING, _take_setting),
    (_OFFLOADED, _take_offloaded),
    (_META, _take_meta),
    (_SLOTS, _take_slots),
    (_SERVER, _take_server),
    (_DRAFT, _take_draft),
    (_CREATING, _take_creating),
    (_DEVICE, _take_device),
    (_OLD_CACHE, _take_old_cache),
    (re.compile(r"llama_context: constructing llama_context$"), _take_fresh),
    (re.compile(r"print_info: no_alloc +=? *= (\d)$"), _take_no_alloc),
    (_BUILD, _take_build),
    (_FAILED, _take_failed),
    (_NO_MEMORY, _take_no_memory),
)
