"""Pure reader of `ioreg -a -r -l -w 0 -c IOAccelerator`: a Mac's accelerators and the programs that use them.

A property list, one dictionary a registry entry, children below `IORegistryEntryChildren`. Values may be anything:
the text `IOCommand is not serializable`, wrapped negative numbers. Old Macs with other cards have other keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Registry entries deeper than this below an accelerator are none of its clients.
_MAX_DEPTH = 16


class Client(NamedTuple):
    """One user client: told by its registry entry's number, since a process has several and they come and go."""

    entry: int
    pid: int
    gpu_nanoseconds: int


class Accelerator(NamedTuple):
    model: str | None
    driver: str | None
    statistics: dict[str, Any]
    clients: list[Client]


class UnknownPlist(ValueError):
    """Not a property list of registry entries."""


def parse_accelerators(text: bytes) -> list[Accelerator]:
    """[] for no output at all, which is what a virtual machine without an accelerator gives, with exit code 0."""
    if not text.strip():
        return []
    import plistlib
    from xml.parsers.expat import ExpatError

    try:
        entries = plistlib.loads(text, fmt=plistlib.FMT_XML)
    except (ValueError, ExpatError, TypeError, AttributeError, IndexError) as wrong:
        raise UnknownPlist(f"property list: {wrong}") from wrong
    if not isinstance(entries, list):
        raise UnknownPlist("property list: no list of entries")
    return [_accelerator(entry) for entry in entries if isinstance(entry, dict)]


def _accelerator(entry: dict[str, Any]) -> Accelerator:
    statistics = entry.get("PerformanceStatistics")
    return Accelerator(
        _text(entry.get("model")),
        _text(entry.get("IOClass")),
        statistics if isinstance(statistics, dict) else {},
        list(_clients(entry, 0)),
    )


def _text(value: object) -> str | None:
    """`model` is data with a final NUL on some Macs."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "replace") or None
    return value if isinstance(value, str) and value else None


def _clients(entry: dict[str, Any], depth: int) -> Iterator[Client]:
    children = entry.get("IORegistryEntryChildren")
    if not isinstance(children, list) or depth > _MAX_DEPTH:
        return
    for child in children:
        if not isinstance(child, dict):
            continue
        client = _client(child)
        if client is not None:
            yield client
        yield from _clients(child, depth + 1)


def _client(entry: dict[str, Any]) -> Client | None:
    """`"IOUserClientCreator" = "pid 4245, python3.12"`: the name is cut short, so only the number is taken."""
    number, usage = entry.get("IORegistryEntryID"), entry.get("AppUsage")
    pid = _creator(entry.get("IOUserClientCreator"))
    if pid is None or not isinstance(number, int) or not isinstance(usage, list):
        return None
    times = [part.get("accumulatedGPUTime") for part in usage if isinstance(part, dict)]
    return Client(number, pid, sum(time for time in times if isinstance(time, int) and time >= 0))


def _creator(text: object) -> int | None:
    if not isinstance(text, str) or not text.startswith("pid "):
        return None
    word = text[4:].partition(",")[0].strip()
    return int(word) if word.isdigit() else None
