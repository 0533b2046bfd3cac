"""Writes what a `SavingHost` remembers as a captured machine, without what is private.

Names of people, the host's name and secrets are replaced before anything is written: command lines and texts as
the document redacts them, of a process's environment only a model server's settings.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from gpusnap.captured_tree import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.saving import Layer, SavingHost

    Redact = Callable[[Sequence[str]], list[str]]

# Settings that model detection reads; everything else of an environment is left out.
_SETTINGS = ("LLAMA_ARG_", "OLLAMA_", "LLAMA_CACHE", "HF_HOME", "HF_HUB_CACHE", "CUDA_VISIBLE_DEVICES")
_HOMES = re.compile(r"(?:/home|/Users|/export/home)/([^/\s\"'\\\0:]+)|[A-Za-z]:\\+Users\\+([^\\/\s\"':]+)")
_FIRST_PERSON = 1000
_SYSTEM_ACCOUNTS = frozenset({"SYSTEM", "LOCAL SERVICE", "NETWORK SERVICE", "root"})
_NOT_PRIVATE = frozenset(
    {"localhost", "host", "root", "nobody", "shared", "Shared", "public", "Public", "linuxbrew"}
)
# Files below /proc/PID that hold words of people; the others hold the kernel's and the driver's.
_OWN_WORDS = frozenset({"cmdline", "environ", "cwd", "exe", "root", "maps", "cgroup", "fd"})


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


class Private:
    """Replaces people's and the host's names wherever they stand as words."""

    def __init__(self, users: Sequence[str], hostname: str | None) -> None:
        self.replacements = {user: f"user{number}" for number, user in enumerate(users, 1)}
        if hostname is not None and len(hostname) > 2 and hostname not in _NOT_PRIVATE:
            self.replacements[hostname] = "host"
        names = sorted(map(re.escape, self.replacements), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(names)})(?![A-Za-z0-9_])") if names else None

    def text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self.replacements[found[0]], text)

    def data(self, data: bytes) -> bytes:
        return self.text(data.decode("latin-1")).encode("latin-1") if data.isascii() else self._utf8(data)

    def _utf8(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


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
            for text in (path, entry.target or "", (entry.data or b"").decode("utf-8", "replace")):
                found |= {one or other for one, other in _HOMES.findall(text)}
    return sorted(found - _NOT_PRIVATE)


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
        return _redacted_text(value, redact)
    if isinstance(value, dict):
        return {key: _redacted_json(item, redact) for key, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):  # a command line
            return redact(value)
        return [_redacted_json(item, redact) for item in value]
    return value


def _redacted_text(text: str, redact: Redact) -> str:
    return "\n".join(" ".join(redact(line.split(" "))) for line in text.split("\n"))


def may_name(path: str) -> bool:
    """Whether people and hosts may be named there: what a process or a file says, not what a driver says."""
    parts = path.split("/")
    if path.startswith(("root/usr/share/", "root/dev/")):
        return False
    if parts[0] == "proc":
        return len(parts) > 2 and parts[2] in _OWN_WORDS
    return parts[0] == "root"


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
        if entry is None:
            parts.append(f"--- {_escaped_name(path)} gone\n".encode())
            continue
        lines = _lines(path, entry, _private_content(path, entry, redact))
        parts += map(private.data, lines) if may_name(path) else lines
    return b"".join(parts)


def _private_content(path: str, entry: Entry, redact: Redact) -> bytes | None:
    """The content of a file without secrets; binary files hold none that words could tell."""
    data = entry.data
    if data is None or not data:
        return data
    leaf = path.rpartition("/")[2]
    if path.startswith("proc/") and leaf == "cmdline":
        words = data.rstrip(b"\0").decode("utf-8", "surrogateescape").split("\0")
        return "\0".join(redact(words)).encode("utf-8", "surrogateescape") + b"\0"
    if path.startswith("proc/") and leaf == "environ":
        words = [w for w in data.decode("utf-8", "surrogateescape").split("\0") if w.startswith(_SETTINGS)]
        return "\0".join([*redact(words), ""]).encode("utf-8", "surrogateescape")
    if path.startswith("root/") and b"\0" not in data:
        return _redacted_text(data.decode("utf-8", "surrogateescape"), redact).encode("utf-8", "surrogateescape")
    return data


def _lines(path: str, entry: Entry, data: bytes | None) -> list[bytes]:
    name = _escaped_name(path)
    if entry.error:
        return [f"--- {name} !{errno.errorcode[entry.error]}\n".encode()]
    if entry.target is not None:
        return [f"--- {name} -> {_escaped_name(entry.target)}\n".encode()]
    options = "".join(f" {word}" for word in _options(entry))
    if entry.parts:
        return [_part(name, options, at, part) for at, part in sorted(entry.parts.items())]
    if data is None:
        return [f"--- {name}/ dir{options}\n".encode()]
    form, content = _content(data)
    return [f"--- {name}{options}{form}\n".encode(), content]


def _options(entry: Entry) -> list[str]:
    words = []
    if entry.size is not None:
        words.append(f"size={entry.size}")
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
