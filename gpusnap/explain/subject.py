"""What `explain WHAT` means: `pid:N`, `gpu:ID|N|model words`, `file:PATH`, or a bare word.

A bare word is a file if one of that name exists or it holds a slash, and `-` is standard input; a number is a pid
if only such a row exists, an adapter's index if only such exists, and an error that names both spellings else; any
other word is an adapter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.rows import card_name, model_name, program
from gpusnap.text import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.model import Adapter, Snapshot


_MOST_NAMED = 4
_MODEL_DIGITS = 3  # fewer are a slip in an index sooner than a model


class NoSuchSubject(Exception):
    """One line for people; the command ends with exit code 2."""


class Wish(NamedTuple):
    """`kind`: host, file, pid, gpu, or word (a number or a word that the rows decide)."""

    kind: str
    value: str


def parse(what: str | None, exists: Callable[[str], bool]) -> Wish:
    if what is None:
        return Wish("host", "")
    kind, colon, value = what.partition(":")
    if colon and kind in ("pid", "gpu", "file"):
        if not value:
            raise NoSuchSubject(f"{what!r}: nothing stands behind the colon")
        if kind == "pid" and whole_number(value) is None:
            raise NoSuchSubject(f"{what!r}: expected a number, as in pid:4711")
        return Wish(kind, value)
    if what == "-" or exists(what) or "/" in what:
        return Wish("file", what)
    return Wish("word", what)


class Chosen(NamedTuple):
    """The rows that are meant: a process on some adapters, one adapter, or everything."""

    kind: str  # host | adapter | process
    adapter: str | None = None
    pid: int | None = None


def choose(wish: Wish, document: Snapshot) -> Chosen:
    if wish.kind in ("host", "file"):
        return Chosen("host")
    if wish.kind == "pid":
        return _process(int(wish.value), document)
    if wish.kind == "gpu":
        return _adapter(wish.value, document)
    if whole_number(wish.value) is not None:
        return _number(wish.value, document)
    try:
        return _adapter(wish.value, document)
    except NoSuchSubject as fault:
        raise NoSuchSubject(f"{fault}{_else(wish.value, document)}") from None


def _process(pid: int, document: Snapshot) -> Chosen:
    if not _has_pid(pid, document):
        why = "processes could not be listed" if document["processes"] is None else "it holds no GPU that is seen"
        raise NoSuchSubject(f"no process {pid} in this snapshot: {why}")
    return Chosen("process", pid=pid)


def _has_pid(pid: int, document: Snapshot) -> bool:
    return any(row["pid"] == pid for row in document["processes"] or ())


def _number(text: str, document: Snapshot) -> Chosen:
    pid, index = _has_pid(int(text), document), _by_index(int(text), document["adapters"])
    if pid and index:
        raise NoSuchSubject(f"{text} is a process and an adapter: say pid:{text} or gpu:{text}")
    if pid:
        return Chosen("process", pid=int(text))
    if index:
        return _one(index, text)
    raise NoSuchSubject(f"no process and no adapter {text}: say pid:N or gpu:N; known: {_known(document)}")


def _adapter(text: str, document: Snapshot) -> Chosen:
    cards = document["adapters"]
    number = whole_number(text)
    matches = _by_index(number, cards) if number is not None else _by_name(text.lower(), cards)
    if number is not None and not matches and len(text) >= _MODEL_DIGITS:  # `gpu:4080`
        matches = [card for card in cards if text in (card["model"] or "").split()]
    if not matches:
        raise NoSuchSubject(f"no adapter {text!r}; known: {_known(document)}")
    return _one(matches, text)


def _by_index(index: int, cards: Sequence[Adapter]) -> list[Adapter]:
    """A partition's number is its own; a whole card is meant first."""
    found = [card for card in cards if card["index"] == index]
    whole = [card for card in found if card["partition"] is None]
    return whole or found


def _by_name(text: str, cards: Sequence[Adapter]) -> list[Adapter]:
    """The id or its beginning, a PCI address with or without its domain, words of the model."""
    if not text.strip():  # a variable that is not set
        return []
    exact = [card for card in cards if text in (card["id"].lower(), (card["pci_address"] or "").lower())]
    if exact:
        return exact
    found = [
        card
        for card in cards
        if card["id"].lower().startswith(text)
        or (card["uuid"] or "").lower().startswith((text, f"gpu-{text}"))
        or (card["pci_address"] or "").lower().endswith(":" + text)
    ]
    if found:
        return found
    words = text.split()
    return [card for card in cards if all(word in (card["model"] or "").lower() for word in words)]


def _else(word: str, document: Snapshot) -> str:
    """What a word that is no adapter may have been meant for: a program, or a file that is missing."""
    named = [(row["pid"], program(row) or "") for row in document["processes"] or ()]
    pids = dict.fromkeys(f"pid:{pid} ({name})" for pid, name in named if word.lower() in name.lower())
    if pids:
        return f"; a process is meant by its pid: {', '.join(list(pids)[:_MOST_NAMED])}"
    return "; nor is there such a file" if "." in word else ""


def _one(matches: list[Adapter], text: str) -> Chosen:
    if len(matches) > 1:
        names = ", ".join(f"gpu:{card['id']}" for card in matches)
        raise NoSuchSubject(f"{text!r} fits {len(matches)} adapters: say one of {names}")
    return Chosen("adapter", adapter=matches[0]["id"])


def _known(document: Snapshot) -> str:
    cards = [f"{card_name(card)} {model_name(card)}" for card in document["adapters"]]
    return ", ".join(cards) if cards else "no adapter at all"
