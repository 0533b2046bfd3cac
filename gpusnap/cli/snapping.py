"""Taking a snapshot for a command: which host, which options, which exit code. Imports no typer."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpusnap.cli import exits
from gpusnap.cli.io import CommandError, leave, say, write_out
from gpusnap.collect.options import CollectOptions

if TYPE_CHECKING:
    from gpusnap.collect import Collector
    from gpusnap.host import Host
    from gpusnap.model import Snapshot
    from gpusnap.saving import SavingHost

# Reasons that nobody can mend or needs to know: `--strict` passes them.
HARMLESS = frozenset({"none", "not-requested", "not-probed", "not-supported", "not-exposed", "unified-memory"})
_CMDLINES = ("redacted", "none", "full")


class Machine:
    """Which machine is meant: `--replay`, or `--procfs`/`--sysfs` and their variables, or this one."""

    def __init__(self, replay: str | None = None, procfs: str | None = None, sysfs: str | None = None) -> None:
        self.replay = replay
        self.procfs = procfs or os.environ.get("GPUSNAP_PROCFS") or None
        self.sysfs = sysfs or os.environ.get("GPUSNAP_SYSFS") or None

    def open(self) -> Host:
        if self.replay is not None:
            return self._captured()
        from gpusnap.live import LiveHost

        for option, folder in (("--procfs", self.procfs), ("--sysfs", self.sysfs)):
            if folder is not None and not os.path.isdir(folder):
                raise CommandError(f"{option} {folder}: not a folder")
        host = LiveHost(self.procfs, self.sysfs)
        try:
            host.uptime()
        except (OSError, ValueError, IndexError) as fault:
            raise CommandError(f"--procfs {self.procfs}: no proc file system: uptime can't be read") from fault
        return host

    def _captured(self) -> Host:
        from pathlib import Path

        from gpusnap.captured import CapturedHost

        folder = Path(str(self.replay))
        if not any((folder / name).is_file() for name in ("tree.txt", "machine.json", "nvml.json")):
            raise CommandError(f"--replay {folder}: no captured machine (tree.txt, machine.json or nvml.json)")
        try:
            return CapturedHost(folder)
        except (OSError, ValueError, KeyError) as fault:
            raise CommandError(f"--replay {folder}: {fault}") from fault


class SnapRequest:
    """What `gpusnap snap` was asked for."""

    def __init__(
        self,
        options: CollectOptions | None = None,
        *,
        machine: Machine | None = None,
        output: str | None = None,
        strict: bool = False,
        require_gpu: bool = False,
        verbose: bool = False,
        save_raw: str | None = None,
        output_format: str = "json",
        per_pid: bool = False,
    ) -> None:
        self.options = options or CollectOptions()
        self.machine = machine or Machine()
        self.output = output
        self.strict = strict
        self.require_gpu = require_gpu
        self.verbose = verbose
        self.save_raw = save_raw
        self.output_format = output_format
        self.per_pid = per_pid


def take(request: SnapRequest) -> tuple[Snapshot, Collector]:
    """One snapshot, and the collector that took it."""
    host = request.machine.open()
    saving = None if request.save_raw is None else _saving(host)
    collector = open_collector(host if saving is None else saving, request.options)
    document = sample(collector)
    if saving is not None:
        _write_raw(saving, str(request.save_raw))
    if request.verbose:
        say_backends(document)
    return document, collector


def open_collector(host: Host, options: CollectOptions) -> Collector:
    from gpusnap.collect import Collector

    if options.cmdline not in _CMDLINES:
        expected = ", ".join(_CMDLINES)
        raise CommandError(f"--cmdline {options.cmdline!r}: expected one of {expected}")
    if options.timeout <= 0:
        raise CommandError("--timeout: expected more than 0 seconds")
    return Collector(host, options)


def sample(collector: Collector) -> Snapshot:
    """One sample; a word of `--adapter` that names nothing is a usage error."""
    from gpusnap.collect.adapter_filter import NoSuchAdapter

    try:
        return collector.sample()
    except NoSuchAdapter as unknown:
        raise CommandError(str(unknown)) from unknown


def say_backends(document: Snapshot) -> None:
    """`-v`: what each backend found."""
    for row in document["backends"]:
        say(f"{row['name']}: {row['status']}{': ' + row['detail'] if row['detail'] else ''}")


def _saving(host: Host) -> SavingHost:
    from gpusnap.saving import SavingHost

    return SavingHost(host)


def _write_raw(host: SavingHost, folder: str) -> None:
    """`--save-raw`: what was read, without what is private, as a machine that `--replay` runs."""
    from gpusnap.collect.redact import redact
    from gpusnap.raw_folder import write_raw

    try:
        write_raw(host, folder, redact)
    except FileExistsError as fault:
        raise CommandError(f"--save-raw {folder}: {fault.strerror}") from fault
    except OSError as fault:
        message = f"--save-raw {folder}: {fault.strerror or fault}"
        raise CommandError(message, exits.NOTHING_COLLECTED) from fault


def snap(request: SnapRequest) -> int:
    if request.per_pid and request.output_format != "prometheus":
        raise CommandError("--per-pid is for --format prometheus: JSON holds every process already")
    if request.save_raw == "":
        raise CommandError("--save-raw: a folder without a name (an empty variable?)")
    if request.output is not None and request.output.endswith((".gz", ".zst")):
        raise CommandError(f"-o {request.output}: nothing is compressed here: name it .json, or pipe it into gzip")
    document, collector = take(request)
    if request.output_format == "prometheus":
        from gpusnap.render.prometheus import prometheus_text

        # node_exporter reads it as another user, and no command line stands in it.
        write_out(prometheus_text(document, per_pid=request.per_pid).encode(), request.output, mode=0o644)
    else:
        from gpusnap.codec import dumps

        pretty = request.output in (None, "-") and sys.stdout.isatty()
        write_out(dumps(document, indent=pretty) + b"\n", request.output)
    code = exit_code(document, request)
    if collector.hangs:
        leave(code)
    return code


def exit_code(document: Snapshot, request: SnapRequest) -> int:
    """0, 3 or 4 as the README's table says; 3 and 4 explain themselves in one line."""
    if request.require_gpu and not document["adapters"]:
        say("gpusnap: --require-gpu: no adapter found")
        return exits.NOTHING_COLLECTED
    failure = nothing_measured(document)
    if failure is not None:
        say(failure)
        return exits.NOTHING_COLLECTED
    if request.strict:
        nulls = mendable_nulls(document)
        if nulls:
            shown = ", ".join(nulls[:3]) + (f" and {len(nulls) - 3} more" if len(nulls) > 3 else "")
            say(f"gpusnap: --strict: {shown}")
            return exits.STRICT
    return exits.OK


def nothing_measured(document: Snapshot) -> str | None:
    """One line when a backend failed and no adapter has a figure; None where there is one, or nothing failed."""
    broken = [row for row in document["backends"] if row["status"] in ("failed", "denied", "timeout")]
    if not broken or any(_is_measured(dict(row)) for row in document["adapters"]):
        return None
    return "gpusnap: nothing could be measured: " + "; ".join(f"{r['name']}: {r['detail']}" for r in broken)


def _is_measured(adapter: dict[str, object]) -> bool:
    """Whether memory, load or temperature holds any figure."""
    for group in ("memory", "load", "temperature"):
        values = adapter[group]
        if isinstance(values, dict) and any(
            isinstance(value, int | float) for key, value in values.items() if key != "kind"
        ):
            return True
    return False


def mendable_nulls(document: Snapshot) -> list[str]:
    """`GPU-..: memory.used_bytes: no-permission ..` for each null that a person could mend or should know."""
    found: list[str] = []
    window = document["window_seconds"] is not None
    rows: list[tuple[str, int]] = [(row["id"], row["provenance"]) for row in document["adapters"]]
    rows += [(f"pid {row['pid']}", row["provenance"]) for row in document["processes"] or ()]
    for name, index in rows:
        for leaf, source in document["provenance"][index].items():
            if not source.startswith("null:"):
                continue
            reason = source[5:].partition(" ")[0]
            if reason in HARMLESS or (reason == "needs-two-samples" and not window):
                continue
            found.append(f"{name}: {leaf}: {source[5:]}")
    return found
