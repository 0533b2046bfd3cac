"""What is private in what `--save-raw` keeps, and what stands there then: secrets, names of people and host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.captured_tree import Entry

    Redact = Callable[[Sequence[str]], list[str]]

# Settings that model detection reads; everything else of an environment is left out.
_SETTINGS = ("LLAMA_ARG_", "OLLAMA_", "LLAMA_CACHE", "HF_HOME", "HF_HUB_CACHE", "CUDA_VISIBLE_DEVICES")
# Accounts of roles and makers, which name nobody: replaced, they take programs' and drivers' names along.
NOT_PRIVATE = frozenset(
    {
        *("localhost", "host", "root", "nobody", "shared", "Shared", "public", "Public", "linuxbrew", "user"),
        *("nvidia", "NVIDIA", "amd", "AMD", "intel", "GPU", "gpu", "cuda", "rocm", "docker", "ollama", "vllm"),
        *("ubuntu", "debian", "fedora", "linux", "Windows", "jovyan", "jupyter", "python", "node", "app", "llama"),
    }
)
# Files below /proc/PID that hold words of people; the others hold the kernel's and the driver's.
_OWN_WORDS = frozenset({"cmdline", "environ", "cwd", "exe", "root", "maps", "cgroup", "fd"})


class Private:
    """Replaces people's and the host's names wherever they stand as words."""

    def __init__(self, users: Sequence[str], hostname: str | None) -> None:
        self.replacements = {user: f"user{number}" for number, user in enumerate(users, 1)}
        whole = hostname or ""
        for name in (whole, whole.partition(".")[0]):  # `node12.example.org` calls itself node12, too
            if len(name) > 2 and name not in NOT_PRIVATE:
                self.replacements |= dict.fromkeys((name, name.lower(), name.upper()), "host")
        names = sorted(map(re.escape, self.replacements), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(names)})(?![A-Za-z0-9_])") if names else None

    def text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self.replacements[found[0]], text)

    def word(self, word: str) -> str:
        """A word of a command line: an option's own name is nobody's (`--max-tokens`, and a user called max)."""
        name, equals, value = word.partition("=")
        return name + equals + self.text(value) if word.startswith("-") else self.text(word)

    def data(self, data: bytes) -> bytes:
        return self.text(data.decode("latin-1")).encode("latin-1") if data.isascii() else self._utf8(data)

    def _utf8(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def redacted_text(text: str, redact: Redact) -> str:
    return "\n".join(" ".join(redact(line.split(" "))) for line in text.split("\n"))


def may_name(path: str) -> bool:
    """Whether people and hosts may be named there: what a process or a file says, not what a driver says."""
    parts = path.split("/")
    if path.startswith(("root/usr/share/", "root/dev/")):
        return False
    if parts[0] == "proc":
        return len(parts) > 2 and parts[2] in _OWN_WORDS
    return parts[0] == "root"


def private_content(path: str, data: bytes | None, redact: Redact, private: Private) -> bytes | None:
    """The content of a file without secrets and names; binary files hold none that words could tell."""
    if not data:
        return data
    leaf = path.rpartition("/")[2]
    if path.startswith("proc/") and leaf == "cmdline":
        words = data.rstrip(b"\0").decode("utf-8", "surrogateescape").split("\0")
        return "\0".join(map(private.word, redact(words))).encode("utf-8", "surrogateescape") + b"\0"
    if path.startswith("proc/") and leaf == "environ":
        words = [w for w in data.decode("utf-8", "surrogateescape").split("\0") if w.startswith(_SETTINGS)]
        data = "\0".join([*redact(words), ""]).encode("utf-8", "surrogateescape")
    if path.startswith("root/") and b"\0" not in data:
        data = redacted_text(data.decode("utf-8", "surrogateescape"), redact).encode("utf-8", "surrogateescape")
    return private.data(data) if may_name(path) else data


def private_parts(
    path: str, entry: Entry, redact: Redact, private: Private
) -> tuple[dict[int, bytes], int | None]:
    """The parts of a file that was read here and there, and its size: a log's text has lost secrets and names.

    A part's bytes are found by their place in the file. So what is longer or shorter now gives or takes lines at
    the part's inner end; a file that was read as a whole is just of another size.
    """
    size = entry.size
    kept: dict[int, bytes] = {}
    for at, part in entry.parts.items():
        if b"\0" in part or not part:
            kept[at] = part
            continue
        ends_file = size is not None and at + len(part) >= size
        # A line that the part's end cuts may be half a secret, which nothing would know for one.
        whole = part if ends_file else part[: part.rfind(b"\n") + 1]
        whole = whole if at == 0 else whole[whole.find(b"\n") + 1 :]
        text = private_content(path, whole, redact, private) or b""
        if at == 0 and ends_file:
            return {0: text}, len(text)
        missing = b"\n" * max(0, len(part) - len(text))
        kept[at] = (missing + text)[-len(part) :] if ends_file else (text + missing)[: len(part)]
    return kept, size
