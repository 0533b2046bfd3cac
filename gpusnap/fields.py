"""The leaves of the document's rows in their fixed order, cheap to import; a test holds them to `model.py`.

A *leaf* is the dotted path of a value inside a row: `memory.used_bytes`. FIGURES always need an entry in the
row's provenance; TEXTS need one only while they are null.
"""

from __future__ import annotations

ENGINES = ("graphics", "compute", "copy", "video_decode", "video_encode")
CATEGORIES = ("desktop", "llm", "ai", "browser", "app", "system", "kernel", "unknown")

# Groups of an adapter row that hold leaves, in document order.
ADAPTER_GROUPS: dict[str, tuple[str, ...]] = {
    "memory": (
        "total_bytes",
        "used_bytes",
        "free_bytes",
        "reserved_bytes",
        "shared_total_bytes",
        "shared_used_bytes",
        "kind",
    ),
    "load": (
        "gpu_percent",
        "memory_bandwidth_percent",
        *(f"engines_percent.{engine}" for engine in ENGINES),
    ),
    "temperature": ("gpu_celsius", "memory_celsius", "fan_percent"),
    "power": ("draw_watts", "limit_watts", "energy_joules"),
    "clocks": ("graphics_mhz", "memory_mhz", "throttle_reasons"),
    "pcie": (
        "generation",
        "max_generation",
        "width",
        "max_width",
        "rx_bytes_per_second",
        "tx_bytes_per_second",
    ),
    "ecc": (
        "enabled",
        "corrected_volatile",
        "uncorrected_volatile",
        "corrected_aggregate",
        "uncorrected_aggregate",
        "retired_pages",
        "remapped_rows",
        "remap_pending",
        "remap_failed",
    ),
}
# `memory.kind` is text: it needs an entry only when null.
ADAPTER_FIGURES = tuple(
    f"{group}.{leaf}"
    for group, leaves in ADAPTER_GROUPS.items()
    for leaf in leaves
    if f"{group}.{leaf}" != "memory.kind"
)
ADAPTER_TEXTS = (
    "model",
    "kind",
    "uuid",
    "pci_address",
    "driver",
    "driver_version",
    "parent",
    "partition",
    "memory.kind",
)
ACCOUNTING = (
    "attributed_bytes",
    "attributed_private_bytes",
    "shared_bytes",
    "reserved_bytes",
    "unattributed_bytes",
    "unattributed_max_bytes",
    "free_bytes",
    "unmeasured_processes",
)

PROCESS_FIGURES = (
    "vram_bytes",
    "spill_bytes",
    "paged_bytes",
    "vram_shared_bytes",
    "gpu_percent",
    *(f"engines_percent.{engine}" for engine in ENGINES),
    "cpu_percent",
    "rss_bytes",
)
PROCESS_TEXTS = (
    "started_at",
    "name",
    "exe",
    "cmdline",
    "cwd",
    "user",
    "state",
    "container_id",
    "pod_uid",
    "systemd_unit",
    "slurm_job_id",
    "type",
    "shared_with",
    "role",
    "runtimes",
    "model",
    "llm",
)
PROCESS_KEYS = (
    "adapter",
    "pid",
    "pid_namespace",
    "start_ticks",
    "started_at",
    "ppid",
    "name",
    "exe",
    "cmdline",
    "cwd",
    "uid",
    "user",
    "state",
    "container_id",
    "pod_uid",
    "systemd_unit",
    "slurm_job_id",
    "self",
    "type",
    "vram_bytes",
    "spill_bytes",
    "paged_bytes",
    "vram_shared_bytes",
    "shared_with",
    "gpu_percent",
    "engines_percent",
    "cpu_percent",
    "rss_bytes",
    "category",
    "role",
    "runtimes",
    "model",
    "llm",
    "provenance",
)
# Identity numbers: null without an entry is allowed.
PROCESS_IDENTITY = ("start_ticks", "ppid", "uid")

MODEL_FIGURES = ("parameters", "layers", "context_trained", "file_bytes")
MODEL_TEXTS = ("name", "architecture", "quantization", "path")
LLM_FIGURES = (
    "context_tokens",
    "sequences",
    "kv_bytes_per_token",
    "weights_bytes",
    "kv_cache_bytes",
    "kv_cache_used_bytes",
    "compute_bytes",
    "overhead_bytes",
)
LLM_TEXTS = ("server", "kv_type_k", "kv_type_v")
