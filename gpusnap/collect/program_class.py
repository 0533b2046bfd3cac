"""Category and role of each process, kept for as long as it runs the same program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.collect.roles import classify, is_spawned
from gpusnap.reading import Reading, inferred, null

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusnap.collect.processes import Table

    Class = tuple[Reading, Reading]

# A spawned worker spawns no deeper than this.
_MAX_PARENTS = 4
_MAX_KNOWN = 4096


class ProgramClasses:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[int, tuple[object, object, Class]] = {}

    def of(self, pid: int, facts: Mapping[str, Reading]) -> Class:
        """(category, role) from the program; anew when the pid is reused or the program changes by execve."""
        start, name = facts["start_ticks"].value, facts["name"].value
        if name is None:
            return inferred("unknown", "program"), facts["name"]
        known = self._known.get(pid)
        if known is None and len(self._known) >= _MAX_KNOWN:  # a recorder of weeks meets numbers without end
            self._known.clear()
        if known is None or known[:2] != (start, name):
            known = self._known[pid] = (start, name, self._classify(pid, facts))
        return known[2]

    def _classify(self, pid: int, facts: Mapping[str, Reading]) -> Class:
        category, role = own = self._by_program(pid, facts)
        source = "program"
        for _ in range(_MAX_PARENTS):
            # Workers that Python's multiprocessing starts say nothing of themselves: their parent does. An
            # orphan's parent is init or a service manager, which says nothing either.
            parent = facts["ppid"].value
            if category != "unknown" or not isinstance(parent, int) or not is_spawned(self._table.raw_words(pid)):
                break
            pid, facts = parent, self._table.facts(parent, "here", lambda _: True)
            category, role = self._by_program(pid, facts)
            source = "parent"
        if source == "parent" and category not in ("llm", "ai"):
            (category, role), source = own, "program"
        return inferred(category, source), null("none") if role is None else inferred(role, source)

    def _by_program(self, pid: int, facts: Mapping[str, Reading]) -> tuple[str, str | None]:
        name, exe, cwd = (_text(facts[leaf]) for leaf in ("name", "exe", "cwd"))
        words = self._table.raw_words(pid)
        found = classify(name, exe, words, is_kernel_thread=self._table.is_kernel_thread(pid), cwd=cwd)
        if found[0] != "unknown" or not (name or "").endswith(".exe"):
            return found
        # `C:\ComfyUI\python.exe ComfyUI\main.py` is what `python ComfyUI/main.py` is elsewhere.
        return classify(_unix(name), _unix(exe), [str(_unix(word)) for word in words], cwd=_unix(cwd))


def _text(reading: Reading) -> str | None:
    return None if reading.value is None else str(reading.value)


def _unix(text: str | None) -> str | None:
    return None if text is None else text.replace("\\", "/").removesuffix(".exe")
