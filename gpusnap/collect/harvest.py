"""What a backend brings home, before rows of several backends are merged into the document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host
    from gpusnap.model import BackendRow, SharedClient, Warning_
    from gpusnap.reading import Reading


class AdapterFacts:
    """One adapter as one backend sees it.

    `key` joins the views of several backends: the PCI address where there is one, the `id` of a partition
    else. `identity` holds document values (id, index, vendor, model, kind, uuid, pci_address, driver,
    driver_version, parent, partition, health, power_state); a missing or None value leaves it to other
    backends; a `Reading` is allowed too and says why it is null. `figures` maps dotted leaves
    (`memory.used_bytes`) to readings; a leaf that is missing becomes `null:not-exposed`. `beside` holds what the
    document has no place for (`visible_total_bytes`); `explain` shows it.
    """

    __slots__ = (
        "beside",
        "figures",
        "identity",
        "key",
        "lists_processes",
        "processes_listed",
        "shared_clients",
        "unified_only",
        "unreadable_pids",
    )

    def __init__(self, key: str) -> None:
        self.key = key
        self.identity: dict[str, object] = {}
        self.figures: dict[str, Reading] = {}
        self.beside: dict[str, Reading] = {}
        # True when this backend is one that lists the processes of this adapter.
        self.lists_processes = False
        # "complete" | "partial", or a null reading that says why the list is unavailable.
        self.processes_listed: str | Reading = "complete"
        # A count where the list comes from reading processes (None: hidden ones, nobody knows how many); 0
        # where the driver lists them.
        self.unreadable_pids: int | None = 0
        self.shared_clients: list[SharedClient] | Reading | None = None
        # Memory is unified and the adapter has no local memory of its own (Intel iGPU, Apple).
        self.unified_only = False


class ProcessFacts:
    """One process on one adapter as one backend sees it; leaves as in `fields.PROCESS_FIGURES`.

    `figures` may also hold `type`, `shared_with`, `role`, `name`, ... as readings. `pid_space` says whose
    numbers the pid is from: "here" (read from `proc`: certainly this namespace) or "driver" (the driver's own
    numbers, which are the host's). `committed` holds what Windows counts beside the document's figures; `explain`
    shows it.
    """

    __slots__ = ("adapter_key", "committed", "figures", "pid", "pid_space")

    def __init__(self, adapter_key: str, pid: int, pid_space: str) -> None:
        self.adapter_key = adapter_key
        self.pid = pid
        self.pid_space = pid_space
        self.figures: dict[str, Reading] = {}
        self.committed: dict[str, Reading] = {}


class Harvest:
    """One backend's whole answer for one sample."""

    __slots__ = ("adapters", "backend", "processes", "warnings")

    def __init__(self, backend: BackendRow) -> None:
        self.backend = backend
        self.adapters: list[AdapterFacts] = []
        self.processes: list[ProcessFacts] = []
        self.warnings: list[Warning_] = []


class Backend(Protocol):
    """One source of facts. Built once per run (`record` keeps it), asked once per sample.

    A backend touches the system through `host` alone, keeps what it needs between samples in itself (handles,
    the last counters for rates) and never raises for a sick device: its failure is its `BackendRow`.
    """

    name: str

    def __init__(self, host: Host, options: CollectOptions) -> None: ...

    def prime(self) -> Iterable[int] | None:
        """Read the counters of which a rate needs two samples; called once, `--window` before the first read.

        Returns the pids that it came across, so that their CPU time is read now too.
        """

    def read(self) -> Harvest: ...


def backend_row(
    name: str,
    status: str = "ok",
    *,
    version: str | None = None,
    driver_version: str | None = None,
    detail: str | None = None,
) -> BackendRow:
    row: BackendRow = {
        "name": name,
        "status": status,  # type: ignore[typeddict-item]
        "version": version,
        "driver_version": driver_version,
        "detail": detail,
    }
    return row


def warning(code: str, message: str, adapter: str | None = None, pid: int | None = None) -> Warning_:
    return {"code": code, "message": message, "adapter": adapter, "pid": pid}
