"""Apple Silicon: `ioreg`'s accelerators and their clients, `sysctl`, and the kernel's ledger of own processes.

Memory is unified: there is no VRAM, what a process holds is in `spill_bytes`, and it is measured for processes of
the same user only (htop#1597: nothing public tells more). Resident memory is never taken for it
(claude-code#35804). GPU time is a counter of each client, so a share of it needs two samples; a client that is
new, or whose counter fell, has none until the next. Power is the growth of an energy counter, likewise.
"""

from __future__ import annotations

from errno import EFBIG
from typing import TYPE_CHECKING

from gpusnap.collect.harvest import AdapterFacts, Harvest, ProcessFacts, backend_row
from gpusnap.collect.ioreg import Accelerator, Client, UnknownPlist, parse_accelerators
from gpusnap.collect.ioreport_energy import Energy, energy_of, power_between
from gpusnap.collect.out_of_range import warn_out_of_range
from gpusnap.host import Unsupported
from gpusnap.reading import Reading, computed, inferred, measured, null
from gpusnap.text import clean

if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host

_IOREG = ["ioreg", "-a", "-r", "-l", "-w", "0", "-c", "IOAccelerator"]
_SYSCTL = ["sysctl", "hw.memsize", "iogpu.wired_limit_mb"]
_MAX_PLIST = 64 << 20
_UNIFIED = null("unified-memory")
_TWO_SAMPLES = null("needs-two-samples")
_NO_ENGINES = null("not-exposed", "ioreg tells no engines apart")
_USED = "In use system memory"
_BUSY = "Device Utilization %"
_ENGINES = ("graphics", "compute", "copy", "video_decode", "video_encode")


class AppleBackend:
    name = "apple"

    def __init__(self, host: Host, options: CollectOptions) -> None:
        self._host = host
        self._options = options
        self._sizes: dict[str, int] | None = None
        # Of the last sample: when, and entry number -> client.
        self._before: tuple[float, dict[int, Client]] | None = None
        self._energy: Energy | Reading | None = None

    def prime(self) -> set[int]:
        try:
            found = self._ask()
        except (OSError, TimeoutError, UnknownPlist):
            return set()
        clients = self._remember(found)
        if found:
            self._energy = self._read_energy()
        return {client.pid for client in clients.values()}

    def read(self) -> Harvest:
        before = self._before
        try:
            found = self._ask()
        except TimeoutError as late:
            return Harvest(backend_row(self.name, "timeout", detail=str(late)))
        except OSError as missing:
            status = "failed" if missing.errno == EFBIG else "absent"
            return Harvest(backend_row(self.name, status, detail=f"ioreg: {missing.strerror or missing}"))
        except UnknownPlist as wrong:
            return Harvest(backend_row(self.name, "failed", detail=clean(f"ioreg: {wrong}", 200)))
        if not found:
            return Harvest(backend_row(self.name, "absent", detail="ioreg: no IOAccelerator"))
        self._remember(found)
        harvest = Harvest(backend_row(self.name))
        earlier, self._energy = self._energy, self._read_energy()
        for index, accelerator in enumerate(found):
            facts = self._adapter(accelerator, index)
            facts.figures["power.draw_watts"] = _power(found, earlier, self._energy, facts.figures)
            self._processes(harvest, facts, accelerator, before)
            warn_out_of_range(facts, harvest, str(facts.identity["id"]))
            harvest.adapters.append(facts)
        return harvest

    def _ask(self) -> list[Accelerator]:
        answer = self._host.run(_IOREG, self._options.timeout, _MAX_PLIST)
        return parse_accelerators(answer.stdout)

    def _remember(self, found: list[Accelerator]) -> dict[int, Client]:
        clients = {client.entry: client for accelerator in found for client in accelerator.clients}
        self._before = (self._host.uptime(), clients)
        return clients

    def _read_energy(self) -> Energy | Reading:
        try:
            return energy_of(self._host.raw("energy"))
        except Unsupported as missing:
            return null("not-exposed", clean(str(missing), 100))
        except OSError as error:
            return null("failed", clean(f"IOReport: {error.strerror or error}", 100))

    def _adapter(self, accelerator: Accelerator, index: int) -> AdapterFacts:
        facts = AdapterFacts(f"apple-index:{index}")
        facts.identity = {
            "id": f"apple-index:{index}",
            "index": index,
            "vendor": "apple" if (accelerator.driver or "").startswith(("AGX", "Apple")) else "other",
            "model": None if accelerator.model is None else clean(accelerator.model),
            "kind": "integrated",
            "driver": None if accelerator.driver is None else clean(accelerator.driver),
            "driver_version": self._host.uname().get("kernel"),
            "power_state": "active",
        }
        facts.figures = self._figures(accelerator)
        facts.unified_only = True
        facts.lists_processes = True
        facts.shared_clients = null("not-exposed")
        return facts

    def _figures(self, accelerator: Accelerator) -> dict[str, Reading]:
        sizes = self._system_sizes()
        total = _size(sizes.get("hw.memsize"), "sysctl.hw.memsize")
        used = _statistic(accelerator, _USED)
        if isinstance(used.value, int) and isinstance(total.value, int) and not 0 <= used.value <= total.value:
            used = null("out-of-range", f"ioreg {_USED} says {used.value}")
        busy = _statistic(accelerator, _BUSY)
        if isinstance(busy.value, int) and not 0 <= busy.value <= 100:
            busy = null("out-of-range", f"ioreg {_BUSY} says {busy.value}")
        limit = sizes.get("iogpu.wired_limit_mb")
        return {
            "memory.total_bytes": total,
            "memory.used_bytes": used,
            "memory.free_bytes": _UNIFIED,
            "memory.kind": inferred("unified", "ioreg.IOAccelerator"),
            # What the GPU may take of the system's memory: a budget, not a size (fastfetch#1273).
            "memory.shared_total_bytes": measured(limit << 20, "sysctl.iogpu.wired_limit_mb")
            if limit
            else null("not-exposed", "iogpu.wired_limit_mb: the default, which only Metal tells"),
            "memory.shared_used_bytes": _UNIFIED,
            "load.gpu_percent": busy,
            **{f"load.engines_percent.{engine}": _NO_ENGINES for engine in _ENGINES},
        }

    def _system_sizes(self) -> dict[str, int]:
        """`name: number` lines; a name that this system lacks is an error on standard error and no line."""
        if self._sizes is None:
            self._sizes = {}
            try:
                answer = self._host.run(_SYSCTL, self._options.timeout)
            except (OSError, TimeoutError):
                return self._sizes
            # A last line without its end was cut short, and so may its number be.
            for line in answer.stdout.decode("utf-8", "replace").split("\n")[:-1]:
                name, _, value = line.partition(":")
                if value.strip().isdigit():
                    self._sizes[name.strip()] = int(value)
        return self._sizes

    def _processes(
        self,
        harvest: Harvest,
        facts: AdapterFacts,
        accelerator: Accelerator,
        before: tuple[float, dict[int, Client]] | None,
    ) -> None:
        if not self._options.processes:
            facts.processes_listed = null("not-requested", "--no-processes")
            return
        if not accelerator.clients:  # the window server alone has dozens
            facts.processes_listed = null("not-exposed", "ioreg shows no clients")
            return
        for pid in sorted({client.pid for client in accelerator.clients}):
            process = ProcessFacts(facts.key, pid, "here")
            footprint = self._footprint(pid)
            mine = [client for client in accelerator.clients if client.pid == pid]
            process.figures = {
                "vram_bytes": _UNIFIED,
                "spill_bytes": _ledger(footprint, "graphics_footprint"),
                "paged_bytes": _ledger(footprint, "graphics_footprint_compressed"),
                "gpu_percent": self._share(mine, before),
                **{f"engines_percent.{engine}": _NO_ENGINES for engine in _ENGINES},
            }
            warn_out_of_range(process, harvest, str(facts.identity["id"]))
            harvest.processes.append(process)

    def _footprint(self, pid: int) -> dict[str, int] | Reading:
        try:
            answer: dict[str, int] = self._host.raw("footprint", pid)
        except PermissionError:
            return null("no-permission", "task_name_for_pid")
        except ProcessLookupError:
            return null("exited")
        except Unsupported as missing:
            return null("not-exposed", clean(str(missing), 100))
        except OSError as error:
            return null("failed", clean(str(error), 100))
        return answer

    def _share(self, clients: list[Client], before: tuple[float, dict[int, Client]] | None) -> Reading:
        """Parallel queues may add up to more than 100 %: no figure, and the raw one in a warning."""
        now = self._host.uptime() if self._before is None else self._before[0]
        if before is None or now <= before[0]:
            return _TWO_SAMPLES
        spent = 0
        for client in clients:
            known = before[1].get(client.entry)
            if known is None or known.pid != client.pid or client.gpu_nanoseconds < known.gpu_nanoseconds:
                return _TWO_SAMPLES
            spent += client.gpu_nanoseconds - known.gpu_nanoseconds
        percent = round(100 * spent / ((now - before[0]) * 1e9), 1)
        if percent > 100:
            return null("out-of-range", f"ioreg accumulatedGPUTime says {percent} %")
        return computed(percent, "ioreg.accumulatedGPUTime")


def _power(
    found: list[Accelerator],
    before: Energy | Reading | None,
    after: Energy | Reading,
    figures: dict[str, Reading],
) -> Reading:
    """The counter is the chip's own GPU's and names none: no figure for another kind of accelerator, or two."""
    if len(found) > 1:
        return null("ambiguous", "one energy counter for several accelerators")
    if not (found[0].driver or "").startswith("AGX"):
        return null("not-exposed", "no GPU of Apple's chips")
    return power_between(before, after, figures["load.gpu_percent"])


def _statistic(accelerator: Accelerator, name: str) -> Reading:
    value = accelerator.statistics.get(name)
    if value is None:
        return null("not-exposed", f"ioreg {name}")
    if isinstance(value, bool) or not isinstance(value, int):
        return null("unknown-format", f"ioreg {name}")
    return measured(value, f"ioreg.{name}")


def _size(value: int | None, source: str) -> Reading:
    return null("not-exposed", source) if value is None else measured(value, source)


def _ledger(footprint: dict[str, int] | Reading, name: str) -> Reading:
    if isinstance(footprint, Reading):
        return footprint
    value = footprint.get(name)
    if value is None:
        return null("not-exposed", f"task_vm_info.{name}")
    source = f"task_vm_info.ledger_tag_{name}"
    return measured(value, source) if value >= 0 else null("out-of-range", f"{source} says {value}")
