"""Reading settings from a command line and the environment behind it.

Only names that a server file asks for are looked up, for what they set; nothing of it is printed. The last
occurrence of a flag counts, `--flag value` and `--flag=value` alike; the command line overrules the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TRUE = frozenset({"on", "enabled", "true", "1"})
_FALSE = frozenset({"off", "disabled", "false", "0"})
# Beyond this a number is no setting: NVML's all-ones, a hash, a typing error.
_MAX_NUMBER = 1 << 40


class Flags:
    """`words` is argv without the program; `prefix` names the server's environment (`LLAMA_ARG_`)."""

    __slots__ = ("_environ", "_pairs", "_values", "_words_of")

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._environ = environ
        # Flag -> its last value; None where nothing followed or the next word is a flag itself.
        self._values: dict[str, str | None] = {}
        self._pairs: list[tuple[str, str | None]] = []
        self._words_of: dict[str, list[str]] = {}
        behind: list[str] = []
        for place, word in enumerate(words):
            if not word.startswith("-") or len(word) < 2:
                behind.append(word)
                continue
            name, equals, value = word.partition("=")
            if name.startswith("--"):
                name = name.replace("_", "-")  # llama.cpp and vLLM take both
            following = words[place + 1] if place + 1 < len(words) else None
            self._values[name] = value if equals else following
            self._pairs.append((name, self._values[name]))
            behind = self._words_of[name] = [value] if equals else []

    def text(self, *names: str, env: str = "") -> tuple[str, str] | None:
        """(value, "cmdline" | "environ"), or None: nobody said."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                return value, "cmdline"
        if env and self._environ.get(env):
            return self._environ[env], "environ"
        return None

    def several(self, *names: str) -> list[str]:
        """All words behind a flag up to the next one; none where it is not there."""
        return next((self._words_of[name] for name in names if name in self._words_of), [])

    def in_order(self, *names: str) -> list[tuple[str, str | None]]:
        """Every occurrence of these flags with its value, where all of them count."""
        return [pair for pair in self._pairs if pair[0] in names]

    def number(self, *names: str, env: str = "") -> tuple[int, str] | None:
        found = self.text(*names, env=env)
        if found is None:
            return None
        text = found[0].strip()
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 12 or int(digits) > _MAX_NUMBER:
            return None
        return int(text), found[1]

    def fraction(self, *names: str) -> tuple[float, str] | None:
        found = self.text(*names)
        try:
            value = float(found[0]) if found else None
        except ValueError:
            return None
        return (value, found[1]) if found and value is not None and 0 < value <= 1 else None

    def has(self, *names: str) -> bool:
        return any(name in self._values for name in names)

    def switch(self, on: Sequence[str], off: Sequence[str] = (), env: str = "") -> tuple[bool, str] | None:
        """A flag without a value (or with on/off), its opposite, or its variable."""
        for name in on:
            if name in self._values:
                return (self._values[name] or "").lower() not in _FALSE, "cmdline"
        if self.has(*off):
            return False, "cmdline"
        if env:
            return self._env_switch(env)
        return None

    def _env_switch(self, env: str) -> tuple[bool, str] | None:
        if env.startswith("LLAMA_ARG_") and env.replace("LLAMA_ARG_", "LLAMA_ARG_NO_", 1) in self._environ:
            return False, "environ"  # llama.cpp takes the negated name too
        value = self._environ.get(env, "").lower()
        if value in _TRUE:
            return True, "environ"
        return (False, "environ") if value in _FALSE else None


def environ_of(raw: bytes, wanted: Sequence[str]) -> dict[str, str]:
    """The wanted variables (or prefixes ending in `_`) of a `/proc/PID/environ`; the rest is not kept."""
    prefixes = tuple(name.encode() for name in wanted)
    found: dict[str, str] = {}
    for entry in raw.split(b"\0"):
        if entry.startswith(prefixes):
            name, _, value = entry.partition(b"=")
            text = name.decode("utf-8", "replace")
            if any(text == one or (one.endswith("_") and text.startswith(one)) for one in wanted):
                found[text] = value.decode("utf-8", "surrogateescape")
    return found
