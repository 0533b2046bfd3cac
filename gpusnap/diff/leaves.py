"""Which leaves of a row are compared, which of them decide that a row changed, and which may restart.

Only memory fields, state, type, model and llm facts, health and ECC decide; the rest
(load, temperature, clocks, names) is listed without deciding, since it differs between any two samples.
Identity (pid, start stamp, uuid, index) is what rows are matched by and is not compared.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from gpusnap import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VRAM = "vram_bytes"
SPILL = "spill_bytes"
USED = "memory.used_bytes"
UNATTRIBUTED = "accounting.unattributed_bytes"

PROCESS_MEMORY = (VRAM, SPILL, "paged_bytes", "vram_shared_bytes")


class Compared:
    """The leaves of one kind of row, in the order in which changes are listed.

    `keys` are a row's own keys and `values_of` takes their values, all at once, since most rows of two samples are
    alike. `groups` says which leaves an object under a key has: {"load": (("load", ("gpu_percent", ..)), ..)}.
    """

    __slots__ = ("groups", "keys", "order", "values_of")

    def __init__(self, plain: tuple[str, ...], groups: dict[str, tuple[str, ...]]) -> None:
        self.groups: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {}
        for group, names in groups.items():
            key = group.partition(".")[0]
            self.groups[key] = (*self.groups.get(key, ()), (group, names))
        self.keys = (*plain, *self.groups)
        self.values_of: Callable[[Mapping[str, object]], tuple[object, ...]] = itemgetter(*self.keys)
        inner = (f"{group}.{name}" for group, names in groups.items() for name in names)
        self.order = {leaf: rank for rank, leaf in enumerate((*plain, *inner))}


PROCESS = Compared(
    (
        *("ppid", "name", "exe", "cmdline", "cwd", "uid", "user", "state"),
        # `started_at` follows from the start stamp and moves with the wall clock: no fact of its own.
        *("container_id", "pod_uid", "systemd_unit", "slurm_job_id", "type"),
        *PROCESS_MEMORY,
        *("shared_with", "gpu_percent", "cpu_percent", "rss_bytes", "category", "role", "runtimes"),
    ),
    {
        "engines_percent": fields.ENGINES,
        "model": (*fields.MODEL_TEXTS, *fields.MODEL_FIGURES),
        "llm": (*fields.LLM_TEXTS, *fields.LLM_FIGURES),
    },
)
ADAPTER = Compared(
    (
        *("model", "kind", "pci_address", "driver", "driver_version", "health", "power_state"),
        *("processes_listed", "unreadable_pids"),
    ),
    {
        "partition": ("gpu_instance", "compute_instance", "profile"),
        "memory": fields.ADAPTER_GROUPS["memory"],
        "load": ("gpu_percent", "memory_bandwidth_percent"),
        "load.engines_percent": fields.ENGINES,
        "temperature": fields.ADAPTER_GROUPS["temperature"],
        "power": fields.ADAPTER_GROUPS["power"],
        "clocks": fields.ADAPTER_GROUPS["clocks"],
        "pcie": fields.ADAPTER_GROUPS["pcie"],
        "ecc": fields.ADAPTER_GROUPS["ecc"],
        "accounting": fields.ACCOUNTING,
        "accounting.by_category": fields.CATEGORIES,
    },
)

_DECIDING = frozenset((*PROCESS_MEMORY, "state", "type", "health"))
_DECIDING_GROUPS = ("model.", "llm.", "memory.", "ecc.", "accounting.")
# Counters that start again with the driver or the machine; the others of their group only grow or are levels.
RESETTABLE = frozenset(("ecc.corrected_volatile", "ecc.uncorrected_volatile", "power.energy_joules"))
# Numbers of which a difference says nothing: names in the form of a number.
_NAMES = frozenset(("ppid", "uid", "partition.gpu_instance", "partition.compute_instance"))


def decides(leaf: str) -> bool:
    return leaf in _DECIDING or leaf.startswith(_DECIDING_GROUPS)


def is_bytes(leaf: str) -> bool:
    return leaf.endswith("_bytes") or leaf.startswith("accounting.by_category.")


def has_delta(leaf: str) -> bool:
    return leaf not in _NAMES
