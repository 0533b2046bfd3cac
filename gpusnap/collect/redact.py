"""Secrets in command lines, replaced before the words enter the document. Pure.

Flag names stay, values go (charon#4688): `--api-key X`, `--token=X`, `HF_TOKEN=X cmd`, `://user:X@`, headers, JSON
arguments, query strings, whole command lines inside one word (`sh -c "…"`), and words that look like keys
(`key_shapes`). When in doubt about a value that a secret's name announces, it goes; a word that nothing
announces and that looks like no key stays to the letter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpusnap.collect.key_shapes import SHORTEST_KEY, mask_known_keys, mask_random_keys, may_hold_known_keys
from gpusnap.collect.secret_names import HINTS, is_secret_name, may_be_path

if TYPE_CHECKING:
    from collections.abc import Sequence

MASK = "***"
_MAX_DEPTH = 4

_FLAG = r"--?[A-Za-z][A-Za-z0-9]{0,23}([-_.][A-Za-z0-9]{1,24})*(=.*)?"
_MASKED = r"""\\*["']?\*\*\*(?:\\*["',;&}\])]|$)"""
_SCHEMES = ("bearer", "basic", "token", "digest", "negotiate")
# Values of `--auth` that name a method.
_METHODS = ("none", "basic", "digest", "true", "false", "on", "off", "0", "1", "")
_FILE_ENDS = (".pem", ".key", ".crt", ".cert", ".json", ".txt", ".p12", ".pfx", ".jar")


# What makes a word worth a closer look, besides the names of secrets.
_SIGNS = (*HINTS, "://", "login", " ", "\t", "\n")


def redact(words: Sequence[str]) -> list[str]:
    """argv as people may see it: the same number of words, secrets replaced by `***`."""
    return _sequence(words, 0)


def _sequence(words: Sequence[str], depth: int) -> list[str]:
    whole = "\0".join(words)
    marked = may_hold_known_keys(whole)
    whole = whole.lower()
    signs = [sign for sign in _SIGNS if sign in whole]
    many = "vllm" in whole
    done: list[str] = []
    awaited = ""  # the flag or header whose value comes next
    for index, word in enumerate(words):
        if awaited and not _is_flag(word):
            if word.lower() in _SCHEMES and index + 1 < len(words):
                done.append(word)
                continue
            done.append(_mask_value(awaited, word))
            if not (many and awaited.endswith("api-key")):  # vLLM takes several keys behind one --api-key
                awaited = ""
            continue
        awaited = ""
        if index >= 2 and words[index - 2] in ("+login", "-login") and not word.startswith(("+", "-")):
            done.append(MASK)  # steamcmd +login USER PASSWORD
            continue
        new = word
        if signs and _is_remarkable(word.lower(), signs):
            new, awaited = _word(word, depth)
        if len(new) >= SHORTEST_KEY:
            new = mask_random_keys(mask_known_keys(new, MASK) if marked else new, MASK)
        done.append(new)
    return done


def _is_remarkable(lower: str, signs: list[str]) -> bool:
    for sign in signs:  # noqa: SIM110 - any() over a generator costs three times as much
        if sign in lower:
            return True
    return False


def _word(word: str, depth: int) -> tuple[str, str]:
    """The word without its secrets, and the flag in it whose value is the next word ("" for none)."""
    if depth < _MAX_DEPTH and len(word) > 3:
        if '"' in word or "'" in word:
            word = _mask_json(word)
        if " " in word or "\t" in word or "\n" in word:
            return _command_line(word, depth + 1), ""
        if word[0] in "\"'" and word[-1] == word[0]:
            inner, awaited = _word(word[1:-1], depth + 1)
            return word[0] + inner + word[0], awaited
    name, sign, value = word.partition("=")
    if sign and "?" not in name and is_secret_name(name.rpartition("/")[2]):
        return f"{name}={_mask_value(name, value)}", ""
    if not sign and (word.startswith("-") or word.endswith(":")) and is_secret_name(word.rstrip(":")):
        return word, word.rstrip(":")
    if word.lower() in ("bearer", "authorization:"):
        return word, word
    if sign and depth < _MAX_DEPTH and name.startswith("-"):
        inner, _ = _word(value, depth + 1)
        return f"{name}={inner}", ""
    return (_mask_named(_mask_login(word)) if "=" in word or ":" in word else word), ""


def _command_line(word: str, depth: int) -> str:
    """A word that holds words: `sh -c "HF_TOKEN=X vllm serve"`, `Authorization: Bearer X`."""
    header, colon, value = word.partition(":")
    if colon and value[:1].isspace() and header.replace("-", "").isalnum() and is_secret_name(header):
        return f"{header}: {MASK}"
    pieces = re.findall(r"""\s+|(?:[^\s"']|"[^"]*"|'[^']*')+|\S+""", word)
    words = [piece for piece in pieces if not piece.isspace()]
    redacted = iter(_sequence(words, depth))
    return "".join(piece if piece.isspace() else next(redacted) for piece in pieces)


def _mask_value(name: str, value: str) -> str:
    bare = value.strip("\"'")
    if bare.strip("\"'\\,;}])") == MASK:
        return value
    if may_be_path(name):
        if bare.lower() in _METHODS:
            return value
        if bare.startswith(("/", "./", "../", "~/")) or bare[1:3] in (":\\", ":/") or bare.endswith(_FILE_ENDS):
            return value
    if name.rstrip(":").lower() in ("--pass", "-pass") and bare.isdigit() and len(bare) == 1:
        return value  # ffmpeg's two passes
    return MASK if bare else value


def _mask_json(word: str) -> str:
    """`{"api_key": "X"}`, quotes escaped or not; the value's own quotes stay."""

    def replace(found: re.Match[str]) -> str:
        return found[1] + found[4] + MASK + found[4] if is_secret_name(found[3]) else found[0]

    pattern = r"""((\\*["'])([\w.\- ]{1,64})\2\s*[:=]\s*)(\\*["'])(?:(?!\4)(?:\\.|[^\\])|(?!\4)\\)*\4"""
    return re.sub(pattern, replace, word, flags=re.DOTALL)


def _mask_login(word: str) -> str:
    """`scheme://user:X@host`: the name stays, the password goes, whatever characters it holds."""
    start = word.find("://")
    if start < 0 or "@" not in word[start:]:
        return word
    head, rest = word[: start + 3], word[start + 3 :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, colon, password = authority.partition("@")[0].partition(":")
    if not colon or ("@" not in authority and password.isdigit() and not _host_follows(rest)):
        # No password: `ssh://git@host/x`, `http://host:8000/model@main`.
        user = mask_random_keys(user, MASK) if "@" in authority else user
        return head + user + colon + password + _mask_login(rest[len(authority.partition("@")[0]) :])
    return f"{head}{user}:{MASK}{rest[rest.rfind('@') :]}"


def _host_follows(rest: str) -> bool:
    host = re.split(r"[/?#]", rest[rest.rfind("@") + 1 :], maxsplit=1)[0]
    return "." in host or ":" in host


def _mask_named(word: str) -> str:
    """Names inside a word: `?api_key=X&n=1`, `a=1,password=X`, `{token:X}`. Only a query's value ends early."""
    at = 0
    for found in re.finditer(r"""([A-Za-z_][\w.\-]*)(\\*["']?)([=:])""", word):
        if found.start() < at or not is_secret_name(found[1]):
            continue
        before = word[: found.start()][-1:]
        if found[3] == ":" and (found[1] == "key" or before not in ("", ",", "{", ";", '"', "'")):
            continue
        if re.match(_MASKED, word[found.end() :]):
            continue
        in_query = before in ("?", "&")
        tail = re.search(r"[&#]", word[found.end() :]) if in_query else None
        if tail is None:
            return word[: found.end()] + MASK
        at = found.end()
        return word[:at] + MASK + _mask_named(word[at + tail.start() :])
    return word


def _is_flag(word: str) -> bool:
    return word in ("-", "--", "|", "&&", ";") or re.fullmatch(_FLAG, word, re.DOTALL) is not None
