"""Writes what a `SavingHost` remembers as a captured machine, without what is private.

Names of people, the host's name and secrets are replaced before anything is written: command lines and texts as
the document redacts them, of a process's environment only a model server's settings.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from gpusnap.raw_private import NOT_PRIVATE, Private, may_name, private_content, private_parts, redacted_text

if TYPE_CHECKING:
    from gpusnap.captured_tree import Entry
    from gpusnap.raw_private import Redact
    from gpusnap.saving import Layer, SavingHost

_HOMES = re.compile(r"(?:/home|/Users|/export/home)/([^/\s\"'\\\0:]+)|[A-Za-z]:\\+Users\\+([^\\/\s\"':]+)")
_FIRST_PERSON = 1000
_SYSTEM_ACCOUNTS = frozenset({"SYSTEM", "LOCAL SERVICE", "NETWORK SERVICE", "root"})


def write_raw(host: SavingHost, folder: str, redact: Redact) -> None:
    """Fill `folder`, which must not exist or be empty; FileExistsError, or any OSError of writing."""
    os.makedirs(folder, mode=0o750, exist_ok=True)
    if os.listdir(folder):
        raise FileExistsError(errno.EEXIST, "not an empty folder", folder)
    private = Private(_names(host), host.uname().get("hostname"))
    if host.perf:
        _write(folder, "perf.json", _json(_counters(host)))
    for number, layer in enumerate(host.layers, 1):
        suffix = "" if number == 1 else f".{number}"
        _write(folder, f"tree{suffix}.txt", _archive(layer, redact, private))
        if host.nvml_asked:
            answers: dict[str, object] = {"version": host.nvml_version, "init": host.nvml_init}
            answers["calls"] = layer.nvml
            _write(folder, f"nvml{suffix}.json", private.data(_json(answers)))
        for name in ("raw", "commands"):
            kept = {key: _redacted_json(value, redact) for key, value in getattr(layer, name).items()}
            if kept:
                _write(folder, f"{name}{suffix}.json", private.data(_json(kept)))
    for name in ("ioctls", "http"):
        merged: dict[str, object] = {}
        for layer in host.layers:
            merged |= getattr(layer, name)
        if merged:
            redacted = {key: _redacted_json(value, redact) for key, value in merged.items()}
            text = _json(redacted)
            _write(folder, f"{name}.json", private.data(text))
    _write(folder, "machine.json", private.data(_json(_machine(host))))


def _json(value: object) -> bytes:
    """Raw answers as they are: a driver's all-ones is past what a document may hold."""
    import json

    return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "surrogateescape")


def _names(host: SavingHost) -> list[str]:
    """People that the capture could name: users past the system's, owners of home folders."""
    found = {name for uid, name in host.users.items() if name is not None and uid >= _FIRST_PERSON}
    environ = host.environ()
    found |= {environ[key] for key in ("USER", "LOGNAME", "SUDO_USER", "USERNAME") if environ.get(key)}
    for layer in host.layers:
        for key, answer in layer.raw.items():
            if key.startswith("process ") and isinstance(answer, dict):
                found |= _names_of_process(answer)
        for path, entry in layer.entries.items():
            if entry is None or not may_name(path):
                continue
            contents = [entry.data or b"", *(part for part in entry.parts.values() if b"\0" not in part)]
            for text in (path, entry.target or "", *(data.decode("utf-8", "replace") for data in contents)):
                found |= {one or other for one, other in _HOMES.findall(text)}
    return sorted(found - NOT_PRIVATE)


def _names_of_process(facts: dict[str, object]) -> set[str]:
    """`DESK\\alice` and `C:\\Users\\alice` as psutil gives them; the system's own accounts are nobody."""
    user = facts.get("username")
    name = user.rpartition("\\")[2] if isinstance(user, str) else ""
    found = set() if name in _SYSTEM_ACCOUNTS or name.startswith(("DWM-", "UMFD-", "_")) else {name} - {""}
    for value in facts.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                found |= {one or other for one, other in _HOMES.findall(text)}
    return found


def _machine(host: SavingHost) -> dict[str, object]:
    wall, uptime = host.started
    users = {str(uid): name for uid, name in host.users.items() if name is not None}
    return {
        "platform": host.platform,
        "wall_time": wall,
        "uptime": uptime,
        "own_pid": host.own_pid(),
        "procfs_is_foreign": host.procfs_is_foreign(),
        "clock_ticks": host.clock_ticks(),
        "page_size": host.page_size(),
        "uname": {**host.uname(), "hostname": "host"},
        "users": users,
        "pids": sorted(host.alive),
        "existing": sorted(host.existing),
    }


def _redacted_json(value: object, redact: Redact) -> object:
    if isinstance(value, str):
        return redacted_text(value, redact)
    if isinstance(value, dict):
        return {key: _redacted_json(item, redact) for key, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):  # a command line
            return redact(value)
        return [_redacted_json(item, redact) for item in value]
    return value


def _counters(host: SavingHost) -> dict[str, object]:
    """`perf.json`: the value at each layer; one that a layer did not read is the last one's."""
    kept: dict[str, object] = {}
    for key, values in host.perf.items():
        if "errno" in values:
            kept[key] = values
            continue
        series: list[object] = []
        for number in range(1, len(host.layers) + 1):
            series.append(values.get(number, series[-1] if series else 0))  # type: ignore[call-overload]
        kept[key] = series
    return kept


def _archive(layer: Layer, redact: Redact, private: Private) -> bytes:
    parts: list[bytes] = []
    for path in sorted(layer.entries):
        entry = layer.entries[path]
        said = private.text(path) if may_name(path) else path
        if entry is None:
            parts.append(f"--- {_escaped_name(said)} gone\n".encode())
            continue
        # Before anything is written as escapes or base64, in which no name would be found.
        data = private_content(path, entry.data, redact, private)
        pieces, size = private_parts(path, entry, redact, private)
        target = entry.target
        if target is not None and may_name(path):
            target = private.text(target)
        parts += _lines(said, entry, target, data, pieces, size)
    return b"".join(parts)


def _lines(
    path: str, entry: Entry, target: str | None, data: bytes | None, pieces: dict[int, bytes], size: int | None
) -> list[bytes]:
    name = _escaped_name(path)
    if entry.error:
        return [f"--- {name} !{errno.errorcode[entry.error]}\n".encode()]
    if target is not None:
        return [f"--- {name} -> {_escaped_name(target)}\n".encode()]
    options = "".join(f" {word}" for word in _options(entry, size))
    if pieces:
        return [_part(name, options, at, part) for at, part in sorted(pieces.items())]
    if data is None:
        return [f"--- {name}/ dir{options}\n".encode()]
    form, content = _content(data)
    return [f"--- {name}{options}{form}\n".encode(), content]


def _options(entry: Entry, size: int | None) -> list[str]:
    words = []
    if size is not None:
        words.append(f"size={size}")
    if entry.mode is not None:
        words.append(f"mode={entry.mode:o}")
    if entry.uid:
        words.append(f"uid={entry.uid}")
    if entry.rdev is not None:
        words.append(f"rdev={entry.rdev[0]}:{entry.rdev[1]}")
    if entry.inode is not None:
        words.append(f"inode={entry.inode[0]}:{entry.inode[1]}")
    if entry.modified is not None:
        words.append(f"mtime={entry.modified!r}")
    return words


def _part(name: str, options: str, at: int, data: bytes) -> bytes:
    import base64

    return f"--- {name}{options} at={at} base64\n".encode() + base64.encodebytes(data)


def _content(data: bytes) -> tuple[str, bytes]:
    """Text as it is; what that would not give back to the letter escaped or as base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    plain = text.replace("\n", "").replace("\t", "").isprintable()
    whole = not data or data.endswith(b"\n")
    if plain and whole and b"--- " not in data:
        return "", data
    if len(data) <= 65536:
        return " escaped", _escape(data) + b"\n"
    import base64

    return " base64", base64.encodebytes(data)


def _escape(data: bytes) -> bytes:
    text = bytearray()
    for byte in data:
        if byte == 0x5C:
            text += b"\\\\"
        elif byte == 0:
            text += b"\\0"
        elif byte == 0x0A:
            text += b"\\n"
        elif 0x20 <= byte < 0x7F:
            text.append(byte)
        else:
            text += b"\\x%02x" % byte
    return bytes(text)


def _escaped_name(path: str) -> str:
    raw = os.fsencode(path)
    return "".join(chr(b) if 0x20 < b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in raw)


def _write(folder: str, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    fd = os.open(os.path.join(folder, name), flags, 0o640)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)
