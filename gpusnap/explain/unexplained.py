"""Used memory that no listed process holds, and its likely causes, each with the evidence for it.

Unlisted holders, another PID namespace, other users' unreadable processes, the driver's own
baseline, managed memory, the context of a pid that ended, exported surfaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.rows import entry_of, reason, reason_word
from gpusnap.explain.words import count_of, pid_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusnap.explain.view import CardView
    from gpusnap.model import Adapter, Holder, Process

# Programs that keep a device file open by their trade and hold next to nothing.
SERVICES = frozenset(
    {
        "nvidia-persiste",
        "nvidia-persistenced",
        "nvidia-powerd",
        "nv-hostengine",
        "nv-fabricmanager",
        "dcgm-exporter",
        "nvidia-smi",
        "nvtop",
        "nvitop",
        "gpustat",
        "gpusnap",
        "node_exporter",
        "prometheus-node",
        "telegraf",
        "rocm-smi",
        "amdgpu_top",
        "Xorg",
        "Xwayland",
        "systemd-logind",
        "plymouthd",
    }
)
ELSEWHERE = "Windows itself has the figures: run gpusnap on Windows, whose own counters it reads there."


class Cause(NamedTuple):
    says: str
    advice: str | None = None


def unexplained(view: CardView) -> int | None:
    """Bytes that nobody is known to hold: the unattributed rest, or all of used where there is no list."""
    if view.unattributed is not None:
        return view.unattributed
    why = reason(view.entry, "accounting.unattributed_bytes"), reason(view.entry, "processes_listed")
    if not {"partitioned", "not-requested"}.isdisjoint(why):
        return None  # it stands on the partitions, or nobody asked
    if not view.listed or view.card["accounting"]["attributed_bytes"] is None:
        return view.used
    return None  # over-attributed: "0 to X" is said by the account, it is no riddle


def is_baseline(view: CardView) -> bool:
    """A sibling of the same model shows the same small rest: the driver's own use.

    A large rest is never taken for it, since a killed run leaves the same on each card that it had. An Ascend
    chip's firmware takes about 3 GB, whether there is a sibling or not (vllm-ascend#1903).
    """
    rest, total = view.unattributed, view.total
    if rest is None or total is None:
        return False
    if view.card["vendor"] == "huawei" and rest <= at.ASCEND_FIRMWARE_BYTES:
        return True
    if rest > at.BASELINE_SHARE * total:
        return False
    others = [_known_rest(sibling) for sibling in view.siblings()]
    return any(other is not None and abs(rest - other) <= at.BASELINE_TOLERANCE_BYTES for other in others)


def suspects(view: CardView) -> list[Holder]:
    """Unlisted holders without the usual services."""
    return [holder for holder in view.unlisted() if holder["name"] not in SERVICES]


def causes(view: CardView) -> list[Cause]:
    """Likely causes, the best supported first; never empty."""
    return [*_of_its_rows(view), *_of_the_host(view), *_of_its_kind(view)] or [
        Cause(
            "memory of a process that ended without the driver freeing it, or the driver's own",
            "If it does not go away, unload the driver's module or reboot when nobody needs the card.",
        )
    ]


def _of_its_rows(view: CardView) -> Iterator[Cause]:
    """Rows without a figure, holders without a row."""
    unmeasured = [row for row in view.rows if row["vram_bytes"] is None]
    if unmeasured:
        why = reason(entry_of(view.document, unmeasured[0]), "vram_bytes")
        words = reason_word(entry_of(view.document, unmeasured[0]), "vram_bytes")
        number = count_of(len(unmeasured), "listed process", "listed processes")
        yield Cause(f"{number} without a figure: {words}", ELSEWHERE if why in ("wddm", "wsl") else None)
    held = suspects(view)
    if held:
        yield Cause(
            f"unlisted holders: pids {pid_list(holder['pid'] for holder in held)} have the device file open"
        )


def _of_the_host(view: CardView) -> Iterator[Cause]:
    """What can't be seen from here: beyond the container, ended, somebody else's, of another namespace."""
    contained = view.document["host"]["container"] is True
    if contained and not view.rows:
        yield Cause(
            "gpusnap runs inside a container, and the list is filtered to its own processes",
            "The host sees the rest, or share its PID namespace: docker run --pid=host; in Kubernetes "
            "`hostPID: true`.",
        )
    gone = [row for row in view.rows if _why_nameless(view, row) == "exited"]
    if gone:
        pids = pid_list(row["pid"] for row in gone)
        yield Cause(f"the context of a process that ended: pid {pids}", "It goes with the driver's clean-up.")
    unreadable = view.card["unreadable_pids"]
    if unreadable is not None and unreadable > 0:
        number = count_of(unreadable, "process", "processes")
        yield Cause(
            f"{number} of other users could not be looked into", "Run gpusnap as root to see whose they are."
        )
    elif view.viewer.uid not in (None, 0) and not contained and not suspects(view):
        yield Cause(
            "likely another user's leftover: without root, other users' open files can't be seen",
            "Only root can see whose it is.",
        )
    others = [row for row in view.rows if _why_nameless(view, row) == "other-pid-namespace"]
    if others:
        pids = pid_list(row["pid"] for row in others)
        yield Cause(f"processes of another PID namespace: {pids}", "Look from the host's namespace.")


def _of_its_kind(view: CardView) -> Iterator[Cause]:
    """What a driver of its kind charges to nobody."""
    if view.card["vendor"] == "nvidia" and any(row["type"] in ("compute", "both") for row in view.rows):
        yield Cause(
            "managed memory (cudaMallocManaged): NVML does not charge it to the process",
            "If a listed program uses managed memory, this is its own.",
        )
    if view.card["shared_clients"]:
        yield Cause("surfaces that programs export to the compositor", "They go with those programs.")


def likely(view: CardView) -> str | None:
    """What the unattributed rest probably is, in words; None where there is none or it is not known."""
    rest = view.unattributed
    if rest is None or rest <= 0:
        return None
    if is_baseline(view):
        return "like its siblings: the driver's own use"
    if rest < view.unexplained_limit() and not view.is_bounded:
        return "the driver's own use, most likely"
    return causes(view)[0].says


def _why_nameless(view: CardView, row: Process) -> str | None:
    return reason(entry_of(view.document, row), "name")


def _known_rest(sibling: Adapter) -> int | None:
    """The unattributed rest of a card whose processes are all listed and measured."""
    books = sibling["accounting"]
    if sibling["processes_listed"] != "complete" or books["unmeasured_processes"] != 0:
        return None
    return books["unattributed_bytes"]
