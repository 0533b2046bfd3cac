"""Patterns of `-ot PATTERN=BUFFER`: `std::regex_search` over tensor names, in a time that no pattern can choose.

The pattern is a word of somebody's command line, and Python's `re` would search a hostile one for years. So it is
made into an automaton and followed letter by letter; states are made when a name needs them. A pattern that is
not understood (`pattern_syntax.py`) has no meaning here: None, and then no figure.
"""

from __future__ import annotations

from gpusnap.llm.pattern_syntax import Chain, Chars, Choice, Edge, Parser, Repeat, Unreadable

MAX_PATTERN = 1024
MAX_NODES = 4000
MAX_WORK = 400_000  # nodes visited while states are made, of one pattern


class TooCostly(Exception):
    """A pattern that needs more work than any real one."""


# A node of the automaton: letters and the node behind, or an edge and the node behind, or several nodes.
_Node = tuple[Chars | Edge, int] | list[int]
_FOUND = 0


class Pattern:
    """`Pattern("exps").found_in("blk.3.ffn_up_exps.weight")`."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise Unreadable("too long")
        self._nodes: list[_Node] = [[]]
        self._first = self._emit(Parser(text).parse(), _FOUND)
        self._work = 0
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._start = self._closure({self._first}, at_start=True)
        self._again = self._closure({self._first}, at_start=False)

    def found_in(self, name: str) -> bool:
        state = self._start
        for letter in name:
            if _FOUND in state:
                return True
            moved = self._moves.get((state, letter))
            if moved is None:
                moved = self._moves[(state, letter)] = self._move(state, letter)
            state = moved
        return _FOUND in state or _FOUND in self._closure(set(state), at_start=not name, at_end=True)

    def _add(self, node: _Node) -> int:
        if len(self._nodes) >= MAX_NODES:
            raise Unreadable("too large")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _emit(self, item: object, behind: int) -> int:
        """The nodes of a part, whose first is returned; made from its end to its beginning."""
        if isinstance(item, Chars | Edge):
            return self._add((item, behind))
        if isinstance(item, Choice):
            return self._add([self._emit(one, behind) for one in item.items])
        if isinstance(item, Repeat):
            return self._emit_repeat(item, behind)
        if not isinstance(item, Chain):
            raise TypeError(f"no part of a pattern: {item!r}")
        for one in reversed(item.items):
            behind = self._emit(one, behind)
        return behind

    def _emit_repeat(self, item: Repeat, behind: int) -> int:
        if item.high is None:
            loop: list[int] = [behind]
            behind = self._add(loop)
            loop.append(self._emit(item.item, behind))
        elif item.high > item.low:
            behind = self._add([self._emit(item.item, behind), behind])
        for _ in range(item.low):
            behind = self._emit(item.item, behind)
        return behind

    def _closure(self, nodes: set[int], *, at_start: bool = False, at_end: bool = False) -> frozenset[int]:
        """These nodes and what is reached from them without a letter."""
        todo, seen = list(nodes), set(nodes)
        while todo:
            self._work += 1
            if self._work > MAX_WORK:
                raise TooCostly
            node = self._nodes[todo.pop()]
            if isinstance(node, list):
                fresh = node
            elif isinstance(node[0], Edge) and (at_start if node[0].at_start else at_end):
                fresh = [node[1]]
            else:
                continue
            todo += [one for one in fresh if one not in seen]
            seen.update(fresh)
        return frozenset(seen)

    def _move(self, state: frozenset[int], letter: str) -> frozenset[int]:
        after = set(self._again)
        for number in state:
            self._work += 1
            node = self._nodes[number]
            letters = node[0] if isinstance(node, tuple) else None
            if isinstance(letters, Chars) and (letter in letters.letters) is not letters.negated:
                after.add(node[1])
        return self._closure(after)


def pattern_of(text: str) -> Pattern | None:
    try:
        return Pattern(text)
    except (Unreadable, TooCostly):
        return None
