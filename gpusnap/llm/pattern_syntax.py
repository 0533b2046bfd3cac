"""The syntax of `-ot`'s patterns: what ECMAScript and everyday patterns share, read into a tree.

Literals, classes, groups, `|`, `* + ? {n}`, `^ $`. Everything else (look-ahead, references back) is Unreadable.
"""

from __future__ import annotations

import string
from typing import NamedTuple

MAX_DEPTH = 40

_DIGITS = frozenset(string.digits)
_CLASSES = {
    "d": _DIGITS,
    "w": _DIGITS | frozenset(string.ascii_letters + "_"),
    "s": frozenset(string.whitespace),
}
_META = frozenset("^$\\.*+?()[]{}|/-=:,_ ")


class Unreadable(Exception):
    """Not a pattern that is understood here."""


class Chars(NamedTuple):
    """One letter of these, or of all others."""

    letters: frozenset[str]
    negated: bool


class Edge(NamedTuple):
    """The beginning or the end of the name."""

    at_start: bool


class Chain(NamedTuple):
    items: list[object]


class Choice(NamedTuple):
    items: list[object]


class Repeat(NamedTuple):
    item: object
    low: int
    high: int | None


class Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> object:
        found = self._choice()
        if self._at < len(self._text):
            raise Unreadable("a bracket closes what was not opened")
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        letter = self._peek()
        if not letter:
            raise Unreadable("it ends too early")
        self._at += 1
        return letter

    def _choice(self) -> object:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("too many brackets")
        items = [self._chain()]
        while self._peek() == "|":
            self._at += 1
            items.append(self._chain())
        self._depth -= 1
        return items[0] if len(items) == 1 else Choice(items)

    def _chain(self) -> object:
        items: list[object] = []
        while self._peek() not in ("", "|", ")"):
            items.append(self._repeated(self._atom()))
        return Chain(items)

    def _repeated(self, item: object) -> object:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        letter = self._peek()
        if letter == "{":
            end = self._text.find("}", self._at)
            digits = self._text[self._at + 1 : end] if end > 0 else ""
            if not digits.isascii() or not digits.isdigit() or len(digits) > 3:
                raise Unreadable("an odd number of repetitions")
            self._at = end + 1
            low, high = int(digits), int(digits)
        elif letter in bounds and letter:
            self._at += 1
            low, high = bounds[letter]  # type: ignore[assignment]
        else:
            return item
        if isinstance(item, Edge):
            raise Unreadable("an edge can't be repeated")
        if self._peek() == "?":  # the shortest match is a match too
            self._at += 1
        if self._peek() and self._peek() in "*+{":
            raise Unreadable("repeated twice")
        return Repeat(item, low, high)

    def _atom(self) -> object:
        letter = self._next()
        if letter == "(":
            if self._peek() == "?":
                self._at += 1
                if self._next() != ":":
                    raise Unreadable("a look around")
            found = self._choice()
            if self._next() != ")":
                raise Unreadable("a bracket is not closed")
            return found
        if letter == "[":
            return self._class()
        if letter == ".":
            return Chars(frozenset("\n\r"), True)
        if letter in "^$":
            return Edge(letter == "^")
        if letter == "\\":
            return self._escape()
        if letter in "*+?{":
            raise Unreadable("nothing to repeat")
        return Chars(frozenset(letter), False)

    def _escape(self) -> Chars:
        letter = self._next()
        if letter.lower() in _CLASSES:
            return Chars(_CLASSES[letter.lower()], letter.isupper())
        if letter not in _META:
            raise Unreadable(f"\\{letter}")
        return Chars(frozenset(letter), False)

    def _class(self) -> Chars:
        negated = self._peek() == "^"
        self._at += negated
        letters: set[str] = set()
        if self._peek() == "]":
            raise Unreadable("an empty class")
        while self._peek() != "]":
            first = self._class_letters()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._class_letters()
                low, high = min(first), min(last)
                if len(first) != 1 or len(last) != 1 or not "\x20" <= low <= high <= "\x7e":
                    raise Unreadable("an odd range")
                letters |= {chr(code) for code in range(ord(low), ord(high) + 1)}
            else:
                letters |= first
        self._at += 1
        return Chars(frozenset(letters), negated)

    def _class_letters(self) -> frozenset[str]:
        letter = self._next()
        if letter == "[" and self._peek() in (":", ".", "="):
            raise Unreadable("a named class")
        if letter != "\\":
            return frozenset(letter)
        found = self._escape()
        if found.negated:
            raise Unreadable("a negated class in a class")
        return found.letters
