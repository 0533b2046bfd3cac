"""`model`, `llm` and `runtimes` of the process rows: the one call that the collector makes.

    describer = Describer(host, options)
    notes = describer.describe(rows, table.raw_words)

What does not change while a process lives (mappings, files, header, log, flags) is read once per (pid, start,
program), and again every 60 samples; the API is asked and the split made anew at each sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpusnap.llm.gpu_row import Note
from gpusnap.llm.runtimes import loaded_runtimes, mapped_paths
from gpusnap.reading import Reading, inferred, null

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusnap.host import Host
    from gpusnap.llm.aside import Aside
    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.gather import Gatherer
    from gpusnap.llm.gpu_row import GpuRow

REFRESH_SAMPLES = 60
MAX_MAPS = 16 << 20
MAX_KEY = 4096


class Options(Protocol):
    @property
    def models(self) -> bool: ...

    @property
    def probe(self) -> bool: ...

    @property
    def api_key_file(self) -> str | None: ...


class _Known:
    __slots__ = ("age", "evidence", "runtimes")

    def __init__(self, runtimes: Reading, evidence: Evidence | None) -> None:
        self.runtimes = runtimes
        self.evidence = evidence
        self.age = 0


class Describer:
    """Kept over the samples of a run. `evidence` holds what the last sample rests on, for `explain`."""

    def __init__(self, host: Host, options: Options) -> None:
        self._host = host
        self._options = options
        self._known: dict[tuple[object, ...], _Known] = {}
        self._gatherer: Gatherer | None = None
        self.evidence: dict[int, Evidence] = {}
        self._rows: dict[int, list[GpuRow]] = {}

    def describe(self, rows: Sequence[GpuRow], words: Callable[[int], list[str]]) -> list[Note]:
        """Adds to the figures of each row; what is to be warned of comes back."""
        notes: list[Note] = []
        self.evidence, self._rows = {}, {}
        by_pid: dict[int, list[GpuRow]] = {}
        for row in rows:
            by_pid.setdefault(row.pid, []).append(row)
        seen: dict[tuple[object, ...], _Known] = {}
        for pid, mine in by_pid.items():
            reason = self._unknowable(mine[0])
            if reason is not None:
                _put_nothing(mine, reason, reason)
                continue
            key = _identity(mine[0])
            try:
                known = self._known_of(key, mine[0], words(pid))
                notes += self._put(mine, known)
            except Exception as fault:  # noqa: BLE001 - a fault in one model's reading must not cost the snapshot
                why = null("failed", f"internal error: {type(fault).__name__}")
                _put_nothing(mine, why, why)
                notes.append(Note("internal-error", f"model of pid {pid}: {fault!r}", None, pid))
                continue
            seen[key] = known
        self._known = seen
        return _each_once(notes)

    def _known_of(self, key: tuple[object, ...], row: GpuRow, words: list[str]) -> _Known:
        """What an earlier sample found, or a look now; a server that may be asked is asked each time."""
        known = self._known.get(key)
        if known is None or known.age >= REFRESH_SAMPLES:
            known = self._look(row, words)
        elif self._options.probe and known.evidence is not None and self._gatherer is not None:
            self._gatherer.ask(known.evidence)
        known.age += 1
        return known

    def aside(self, pid: int) -> Aside:
        """What `explain` says of a process beside the last sample's document."""
        from gpusnap.llm.aside import NOTHING

        evidence = self.evidence.get(pid)
        if evidence is None:
            return NOTHING
        from gpusnap.llm.asides import aside_of

        return aside_of(evidence, self._rows[pid], self._host.wall_time())

    def _unknowable(self, row: GpuRow) -> Reading | None:
        """A row of which nothing may be read: not asked for, another namespace's pid, a process that is gone."""
        if not self._options.models:
            return null("not-requested", "--no-models")
        name = row.figures.get("name")
        return name if name is not None and name.value is None else None

    def _look(self, row: GpuRow, words: list[str]) -> _Known:
        try:
            maps = self._host.proc.read(f"{row.pid}/maps", MAX_MAPS)
        except FileNotFoundError:
            runtimes, paths = null("not-exposed", "proc.maps"), set[bytes]()
        except ProcessLookupError:
            runtimes, paths = null("exited"), set[bytes]()
        except PermissionError:
            runtimes, paths = null("no-permission", "proc.maps"), set[bytes]()
        except OSError:
            runtimes, paths = null("failed", "proc.maps"), set[bytes]()
        else:
            paths = mapped_paths(maps)
            runtimes = inferred(loaded_runtimes(paths), "proc.maps")
        return _Known(runtimes, self._gather(row, words, paths))

    def _gather(self, row: GpuRow, words: list[str], paths: set[bytes]) -> Evidence | None:
        """None: nothing here speaks of a model; that costs no more than a look at the command line."""
        from gpusnap.llm.servers import may_be_server, recognise

        has_model = any(path.endswith((b".gguf", b".gguf (deleted)")) for path in paths)
        if not words or not (has_model or may_be_server(words)):
            return None
        from gpusnap.llm.program import Program

        program = Program(self._host, row.pid, words)
        found = recognise(program)
        if found is None and not has_model:
            return None
        if self._gatherer is None:
            from gpusnap.llm.gather import Gatherer

            self._gatherer = Gatherer(self._host, probe=self._options.probe, key=self._key())
        server, workload = found if found is not None else (None, None)
        return self._gatherer.gather(program, server, workload, paths, self._started(row))

    def _key(self) -> str | None:
        """The API key that the user hands over by `--api-key-file`."""
        path = self._options.api_key_file
        if path is None:
            return None
        try:
            return self._host.root.read(path.lstrip("/"), MAX_KEY).decode("utf-8", "replace").strip()
        except OSError:  # the command line checked it: another machine's root, under --replay
            return None

    def _started(self, row: GpuRow) -> float | None:
        ticks = row.figures.get("start_ticks")
        if ticks is None or not isinstance(ticks.value, int):
            return None
        if self._host.platform in ("windows", "macos"):  # µs since 1970
            return ticks.value / 1_000_000
        return self._host.wall_time() - self._host.uptime() + ticks.value / self._host.clock_ticks()

    def _put(self, rows: list[GpuRow], known: _Known) -> list[Note]:
        evidence = known.evidence
        if evidence is None:
            _put_nothing(rows, known.runtimes, null("none"))
            return []
        from gpusnap.llm.notices import notices_of
        from gpusnap.llm.split import split

        for row in rows:
            row.figures["runtimes"] = known.runtimes
        self.evidence[rows[0].pid] = evidence
        self._rows[rows[0].pid] = rows
        if self._gatherer is None:
            return []
        notes = split(evidence, rows, self._gatherer.header_of)
        return notes + notices_of(evidence, rows[0].pid, self._host.wall_time())


def _each_once(notes: list[Note]) -> list[Note]:
    """Eight ranks of one server have the same said of them once, by the first."""
    first = {(note.code, note.message, note.adapter): note for note in reversed(notes)}
    return [note for note in notes if first[(note.code, note.message, note.adapter)] is note]


def _identity(row: GpuRow) -> tuple[object, ...]:
    return (
        row.pid,
        *(row.figures[leaf].value if leaf in row.figures else None for leaf in ("start_ticks", "name")),
    )


def _put_nothing(rows: Sequence[GpuRow], runtimes: Reading, model: Reading) -> None:
    for row in rows:
        row.figures["runtimes"] = runtimes
        row.figures["model"] = model
        row.figures["llm"] = model
