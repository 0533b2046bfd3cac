"""The collector core that every command shares: a host and options in, one snapshot document out."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import gpusnap
from gpusnap.collect.accounting import account
from gpusnap.collect.adapter_filter import keep_adapters, keep_warnings
from gpusnap.collect.bounded import BoundedBackend, Worker
from gpusnap.collect.harvest import warning
from gpusnap.collect.holders import gpu_file_test
from gpusnap.collect.host_facts import boot_id, host_row
from gpusnap.collect.merge import NO_LIST, merge_adapters, merge_processes, use_final_ids
from gpusnap.collect.models import ModelRows
from gpusnap.collect.out_of_range import refuse_more_than_the_card
from gpusnap.collect.processes import open_table
from gpusnap.collect.program_class import ProgramClasses
from gpusnap.collect.registry import backends_for
from gpusnap.collect.row_memo import RowMemo
from gpusnap.collect.rows import ProvenanceTable, adapter_row
from gpusnap.reading import Reading, null
from gpusnap.timefmt import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusnap.collect.harvest import AdapterFacts, Backend, Harvest, ProcessFacts
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host
    from gpusnap.model import Adapter, Holder, Process, Snapshot, Warning_

SCHEMA = "gpusnap.snapshot/1"
_BROKEN = ("failed", "denied", "timeout")


def collect(host: Host, options: CollectOptions) -> Snapshot:
    """One snapshot of the machine."""
    return Collector(host, options).sample()


class Collector:
    """Takes samples; what does not change between them (handles, static process facts) is kept."""

    def __init__(self, host: Host, options: CollectOptions, backends: Sequence[Backend] | None = None) -> None:
        self._host = host
        self._options = options
        chosen = backends_for(host, options) if backends is None else backends
        idle: list[Worker] = []
        self._backends = [BoundedBackend(backend, options.timeout, idle) for backend in chosen]
        self._table = open_table(host, options)
        self._holds_gpu_file = gpu_file_test(host)
        self.models = ModelRows(host, options)
        self._classes = ProgramClasses(self._table)
        self._rows = RowMemo()
        self._host_row = host_row(host)
        self._boot_id = boot_id(host)
        self._last_sample: float | None = None
        self._sampled = False
        self._found: list[tuple[AdapterFacts, ProcessFacts]] = []
        self._adapters: list[AdapterFacts] = []

    @property
    def host(self) -> Host:
        """The machine that it reads."""
        return self._host

    @property
    def hangs(self) -> bool:
        """A driver call of some backend never came back: leave without cleaning up."""
        return any(backend.timed_out for backend in self._backends)

    def sample(self) -> Snapshot:
        host, options = self._host, self._options
        window = self._open_window()
        taken_at, started = host.wall_time(), host.uptime()
        harvests = [backend.read() for backend in self._backends]
        self._table.begin_sample()
        self._rows.begin_sample()
        warnings = [note for harvest in harvests for note in harvest.warnings]
        # A card that is pulled out while it is recorded is a sample without it, not a wrong option.
        names = [(facts, facts.identity["id"]) for harvest in harvests for facts in harvest.adapters]
        merged = merge_adapters(harvests)
        use_final_ids(warnings, names, merged)
        adapters = keep_adapters(merged, options.adapters, must_exist=not self._sampled)
        warnings = keep_warnings(warnings, merged, adapters)
        self._sampled = True
        provenance = ProvenanceTable()
        found = merge_processes(harvests)
        refuse_more_than_the_card(adapters, found, warnings)
        processes = self._describe(adapters, found, warnings)
        self._found, self._adapters = processes, adapters
        warnings += self.models.describe(processes, self._table.raw_words)
        rows = [self._process_row(adapter, process, provenance) for adapter, process in processes]
        documents = self._adapter_rows(adapters, processes, provenance, warnings)
        return {
            "schema": SCHEMA,
            "version": gpusnap.__version__,
            "taken_at": rfc3339(taken_at),
            "boot_id": self._boot_id,
            "uptime_seconds": round(started, 3),
            "duration_seconds": round(max(0.0, host.uptime() - started), 6),
            "window_seconds": window,
            "labels": options.labels,
            "host": self._host_row,
            "backends": [harvest.backend for harvest in harvests],
            "adapters": documents,
            "processes": rows if _lists_something(documents, harvests) else None,
            "recording": None,
            "warnings": warnings,
            "provenance": provenance.entries,
        }

    def committed(self, pid: int) -> dict[str, dict[str, Reading]]:
        """Adapter -> counter -> what Windows says that a process of the last sample has committed."""
        return {
            str(adapter.identity["id"]): facts.committed
            for adapter, facts in self._found
            if facts.pid == pid and facts.committed
        }

    def beside(self, adapter: str) -> dict[str, Reading]:
        """What the last sample knows of an adapter that the document has no place for."""
        return next((facts.beside for facts in self._adapters if facts.identity["id"] == adapter), {})

    def _open_window(self) -> float | None:
        """Wait between two samples of the rate counters; later samples of a run use the one before."""
        now = self._host.uptime()
        if self._last_sample is None and self._options.window > 0:
            pids = {pid for backend in self._backends for pid in backend.prime()}
            self._table.prime(pids)
            self._host.sleep(self._options.window)
            self._last_sample = now
            now = self._host.uptime()
        window = None if self._last_sample is None else round(now - self._last_sample, 3)
        self._last_sample = now
        return window

    def _describe(
        self, adapters: list[AdapterFacts], found: list[ProcessFacts], warnings: list[Warning_]
    ) -> list[tuple[AdapterFacts, ProcessFacts]]:
        """Add to each process what the system knows of it; sort by adapter, then by memory."""
        place = {facts.key: number for number, facts in enumerate(adapters)}
        kept = [facts for facts in found if facts.adapter_key in place]
        foreign: set[str] = set()
        for facts in kept:
            known = self._table.facts(facts.pid, facts.pid_space, self._holds_gpu_file)
            facts.figures = {**known, **facts.figures}
            facts.figures["category"], facts.figures["role"] = self._classes.of(facts.pid, facts.figures)
            if known["name"].provenance.startswith("null:other-pid-namespace"):
                foreign.add(facts.adapter_key)
        for adapter in adapters:
            if adapter.key in foreign:
                text = "its driver names processes by the host's pids, which are not those of this pid namespace"
                warnings.append(warning("other-pid-namespace", text, str(adapter.identity["id"])))
        kept.sort(key=lambda facts: (place[facts.adapter_key], _by_memory(facts), facts.pid))
        return [(adapters[place[facts.adapter_key]], facts) for facts in kept]

    def _process_row(self, adapter: AdapterFacts, facts: ProcessFacts, table: ProvenanceTable) -> Process:
        return self._rows.row(str(adapter.identity["id"]), facts.pid, facts.figures, self._is_own(facts), table)

    def _is_own(self, facts: ProcessFacts) -> bool:
        reading = facts.figures.get("self")
        return reading is not None and reading.value is True

    def _adapter_rows(
        self,
        adapters: list[AdapterFacts],
        processes: list[tuple[AdapterFacts, ProcessFacts]],
        provenance: ProvenanceTable,
        warnings: list[Warning_],
    ) -> list[Adapter]:
        parents = {facts.identity.get("parent") for facts in adapters} - {None}
        holders = self._holders(adapters, warnings)
        others: dict[str, list[dict[str, Reading]]] = {}
        for adapter, process in processes:
            if not self._is_own(process):
                others.setdefault(adapter.key, []).append(process.figures)
        rows = []
        for facts in adapters:
            listed = self._listed(facts)
            mine = others.get(facts.key, ())
            books = account(facts, mine, listed=listed, has_partitions=facts.identity["id"] in parents)
            rows.append(
                adapter_row(
                    facts,
                    processes_listed=listed,
                    accounting=books.leaves,
                    by_category=books.by_category,
                    holders=holders.get(facts.key, null("not-requested", "--holders")),
                    table=provenance,
                )
            )
        return rows

    def _listed(self, facts: AdapterFacts) -> str | Reading:
        if not self._options.processes:
            return null("not-requested", "--no-processes")
        return facts.processes_listed if facts.lists_processes else NO_LIST

    def _holders(
        self, adapters: list[AdapterFacts], warnings: list[Warning_]
    ) -> dict[str, list[Holder] | Reading]:
        if not self._options.holders:
            return {}
        from gpusnap.collect.holders import holders_of, some_are_hidden

        rows, unreadable = holders_of(self._host, self._table, adapters)
        causes = []
        if unreadable > 0:
            causes.append(f"{unreadable} process{'' if unreadable == 1 else 'es'} could not be looked into")
        if some_are_hidden(self._host):
            causes.append("hidepid hides the processes of others")
        if causes:
            text = f"{' and '.join(causes)}, so that some holders may be missing"
            warnings.append(warning("holders-incomplete", text))
        return rows


def _by_memory(facts: ProcessFacts) -> int:
    """Largest first, unmeasured last."""
    value = facts.figures["vram_bytes"].value if "vram_bytes" in facts.figures else None
    return -cast("int", value) if value is not None else 1


def _lists_something(adapters: list[Adapter], harvests: list[Harvest]) -> bool:
    """False: `processes` is null, since a list that could not be asked for is not an empty list."""
    if adapters:
        return any(row["processes_listed"] != "unavailable" for row in adapters)
    broken = any(harvest.backend["status"] in _BROKEN for harvest in harvests)
    return not broken
