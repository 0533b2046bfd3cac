"""A log cut down to the lines that speak of memory, each without what other programs put before it.

journald, docker compose, llama-server's router (`[port] `) and its timestamps, vLLM's ranks, colours and JSON
Lines all wrap the same messages. What comes off is kept as the line's tag, since it says whose line it is.
A message must *begin* with the known words once the prefixes are off: a prompt that quotes a log line is not one.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

# A line that holds none of these is not looked at. Everything else of a log is never decoded.
_MARKS = re.compile(
    rb"MiB|GiB|GB|n_ctx|n_seq_max|n_ubatch|n_slots|kv_unified|flash_attn|Flash Attention|creating|constructing|"
    rb"offload|loaded meta|loading model|loading draft|no_alloc|llama_server|starting |build:|build_info|"
    rb"using device|failed|kv_size|GPU KV cache|\#tokens|avail mem|mem usage|total memory|"
    rb"memory_breakdown|cumulative_preemption|Initializing a|^\| *- ",
    re.MULTILINE,
)
MAX_LINE = 4096
MAX_LINES = 20000

_COLOUR = re.compile(r"\x1b?\[\d{1,3}(?:;\d{1,3}){0,4}m")
# Each takes one wrapper off the front; a named group becomes the tag.
_PREFIXES = (
    re.compile(r"[A-Za-zÀ-ÿ]{3,5}\.? +\d{1,2} \d\d:\d\d:\d\d \S{1,255} [\w.@:/-]{1,255}\[\d{1,10}\]: "),
    re.compile(r"[\w.-]{1,128} +\| +"),
    re.compile(r"\[ ?(?P<port>\d{1,5})\] "),
    # llama.cpp's clock, its level, and behind them the part of the program
    re.compile(r"\d+\.\d\d\.\d{3}\.\d{3} "),
    re.compile(r"[DIWE] "),
    re.compile(r"(?:srv|cmn|que|slot|spc) +"),
    # vLLM, SGLang, containerd
    re.compile(r"\((?:[\w ]{1,64} )?(?:rank=\d+ )?pid=(?P<pid>\d{1,10})\) "),
    re.compile(r"(?:INFO|WARNING|ERROR|DEBUG)(?: \d\d-\d\d \d\d:\d\d:\d\d)? \[?[\w./-]{1,128}:\d{1,6}\] "),
    re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?P<rank>(?: (?:TP|DP|PP|EP)\d{1,4}){0,4})\] "),
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]{0,10}(?:Z|[+-]\d\d:?\d\d)? (?:stdout F |stderr F )?"),
)
_MAX_PREFIXES = 8


class Line(NamedTuple):
    text: str
    tag: str
    """Whose line it is, `port:47161`, `pid:107` or `rank:TP0`; empty where nothing says."""


def memory_lines(data: bytes) -> list[Line]:
    """The lines of `data` that may speak of memory, in order; a torn or over-long line is left out."""
    lines: list[Line] = []
    # Loads come at both ends of a long log: at the start, or when it was appended to last.
    last: deque[Line] = deque(maxlen=MAX_LINES // 2)
    position = 0
    for match in _MARKS.finditer(data):
        if match.start() < position:
            continue
        start = data.rfind(b"\n", position, match.start()) + 1 or position
        end = data.find(b"\n", match.end())
        if end < 0:
            end = len(data)
        position = end
        if end - start <= MAX_LINE:
            line = _unwrap(data[start:end].decode("utf-8", "replace"))
            if line is not None:
                (lines if len(lines) < MAX_LINES // 2 else last).append(line)
    return [*lines, *last]


def _unwrap(text: str) -> Line | None:
    text = _COLOUR.sub("", text).strip("\r\n\t ")
    if text.startswith("{"):
        return _unwrap_json(text)
    tag = ""
    for _ in range(_MAX_PREFIXES):
        for prefix in _PREFIXES:
            found = prefix.match(text)
            if found is not None:
                text = text[found.end() :].lstrip(" ")
                tag = _tag(found.groupdict()) or tag
                break
        else:
            break
    return Line(text, tag) if text else None


def _tag(groups: dict[str, str | None]) -> str:
    for name, value in groups.items():
        if value:
            return f"{name}:{value.strip()}"
    return ""


def _unwrap_json(text: str) -> Line | None:
    """llama-server's `--log-jsonl` (`msg`) and docker's json-file (`log`); another object is kept as it is."""
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    for key in ("msg", "log"):
        message = document.get(key)
        if isinstance(message, str):
            return _unwrap(message) if not message.startswith("{") else None
    return Line(text, "")
