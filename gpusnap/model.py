"""The document's types: what the README promises ("The document"), as mypy and msgspec see it.

Rows are plain dictionaries at run time. Only the strict reader and the schema generator import this module
while a program runs; everything else imports it for type checking, since defining the types costs start-up.
Units stand in the names: `_bytes` (integers), `_percent` (0-100), `_celsius`, `_watts`, `_joules`, `_mhz`,
`_seconds`, `_bytes_per_second`.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec

SNAPSHOT_SCHEMA = "gpusnap.snapshot/1"
DIFF_SCHEMA = "gpusnap.diff/1"
EXPLANATION_SCHEMA = "gpusnap.explanation/1"
SUMMARY_SCHEMA = "gpusnap.summary/1"

# Whatever reads JSON by doubles (jq, JavaScript) rounds what is larger.
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 53), le=1 << 53)]
Number = Integer | float
# What a leaf of a row can hold.
Value = bool | Integer | float | str | list[str | Integer] | None


class HostRow(TypedDict):
    hostname: str | None
    os: str | None
    kernel: str | None
    arch: str | None
    platform: Literal["linux", "wsl", "windows", "macos"]
    container: bool | None


class BackendRow(TypedDict):
    """One backend that was tried. `absent`: not there; `failed`: there and does not work."""

    name: str
    status: Literal["ok", "absent", "denied", "failed", "timeout"]
    version: str | None
    driver_version: str | None
    detail: str | None


class Partition(TypedDict):
    gpu_instance: Integer | None
    compute_instance: Integer | None
    profile: str | None


class Memory(TypedDict):
    total_bytes: Integer | None
    used_bytes: Integer | None
    free_bytes: Integer | None
    reserved_bytes: Integer | None
    shared_total_bytes: Integer | None
    shared_used_bytes: Integer | None
    kind: Literal["dedicated", "unified"] | None


class Engines(TypedDict):
    graphics: Number | None
    compute: Number | None
    copy: Number | None
    video_decode: Number | None
    video_encode: Number | None


class Load(TypedDict):
    gpu_percent: Number | None
    memory_bandwidth_percent: Number | None
    engines_percent: Engines


class Temperature(TypedDict):
    gpu_celsius: Number | None
    memory_celsius: Number | None
    fan_percent: Number | None


class Power(TypedDict):
    draw_watts: Number | None
    limit_watts: Number | None
    energy_joules: Number | None


class Clocks(TypedDict):
    graphics_mhz: Number | None
    memory_mhz: Number | None
    throttle_reasons: list[str] | None


class Pcie(TypedDict):
    generation: Integer | None
    max_generation: Integer | None
    width: Integer | None
    max_width: Integer | None
    rx_bytes_per_second: Number | None
    tx_bytes_per_second: Number | None


class Ecc(TypedDict):
    enabled: bool | None
    corrected_volatile: Integer | None
    uncorrected_volatile: Integer | None
    corrected_aggregate: Integer | None
    uncorrected_aggregate: Integer | None
    retired_pages: Integer | None
    remapped_rows: Integer | None
    remap_pending: bool | None
    remap_failed: bool | None


class Holder(TypedDict):
    """A process with a device file of the adapter open or mapped; `via` names the file."""

    pid: Integer
    start_ticks: Integer | None
    name: str | None
    user: str | None
    state: str | None
    via: str


class SharedClient(TypedDict):
    """Memory of several processes with no single owner."""

    client: str
    vram_bytes: Integer | None
    spill_bytes: Integer | None
    holders: list[Integer]


class ByCategory(TypedDict):
    desktop: Integer | None
    llm: Integer | None
    ai: Integer | None
    browser: Integer | None
    app: Integer | None
    system: Integer | None
    kernel: Integer | None
    unknown: Integer | None


class Accounting(TypedDict):
    attributed_bytes: Integer | None
    attributed_private_bytes: Integer | None
    shared_bytes: Integer | None
    reserved_bytes: Integer | None
    unattributed_bytes: Integer | None
    unattributed_max_bytes: Integer | None
    free_bytes: Integer | None
    unmeasured_processes: Integer | None
    by_category: ByCategory


class Adapter(TypedDict):
    id: str
    index: Integer | None
    vendor: Literal["nvidia", "amd", "intel", "apple", "huawei", "other"]
    model: str | None
    kind: Literal["discrete", "integrated", "npu", "partition"] | None
    uuid: str | None
    pci_address: str | None
    driver: str | None
    driver_version: str | None
    parent: str | None
    partition: Partition | None
    memory: Memory
    load: Load
    temperature: Temperature
    power: Power
    clocks: Clocks
    pcie: Pcie
    ecc: Ecc
    health: Literal["ok", "degraded", "lost", "error", "unknown"]
    power_state: Literal["active", "suspended", "unknown"]
    processes_listed: Literal["complete", "partial", "unavailable"]
    unreadable_pids: Integer | None
    holders: list[Holder] | None
    shared_clients: list[SharedClient] | None
    accounting: Accounting
    provenance: Integer


class ModelFacts(TypedDict):
    name: str | None
    architecture: str | None
    parameters: Integer | None
    quantization: str | None
    layers: Integer | None
    context_trained: Integer | None
    file_bytes: Integer | None
    path: str | None


class LlmFacts(TypedDict):
    server: str | None
    context_tokens: Integer | None
    sequences: Integer | None
    kv_type_k: str | None
    kv_type_v: str | None
    kv_bytes_per_token: Integer | None
    weights_bytes: Integer | None
    kv_cache_bytes: Integer | None
    kv_cache_used_bytes: Integer | None
    compute_bytes: Integer | None
    overhead_bytes: Integer | None


State = Literal["running", "sleeping", "disk-sleep", "stopped", "zombie", "dead"]
Category = Literal["desktop", "llm", "ai", "browser", "app", "system", "kernel", "unknown"]


class Process(TypedDict):
    """One row for each process on each adapter."""

    adapter: str
    pid: Integer
    pid_namespace: Literal["host", "container", "unknown"]
    start_ticks: Integer | None
    started_at: str | None
    ppid: Integer | None
    name: str | None
    exe: str | None
    cmdline: list[str] | None
    cwd: str | None
    uid: Integer | None
    user: str | None
    state: State | None
    container_id: str | None
    pod_uid: str | None
    systemd_unit: str | None
    slurm_job_id: str | None
    self: bool
    type: Literal["compute", "graphics", "both", "mps"] | None
    vram_bytes: Integer | None
    spill_bytes: Integer | None
    paged_bytes: Integer | None
    vram_shared_bytes: Integer | None
    shared_with: list[Integer] | None
    gpu_percent: Number | None
    engines_percent: Engines
    cpu_percent: Number | None
    rss_bytes: Integer | None
    category: Category
    role: str | None
    runtimes: list[str] | None
    model: ModelFacts | None
    llm: LlmFacts | None
    provenance: Integer


class Recording(TypedDict):
    writer_pid: Integer
    sequence: Integer
    missed_ticks: Integer
    late_seconds: float


class Warning_(TypedDict):  # noqa: N801 - `Warning` is a builtin
    code: str
    message: str
    adapter: str | None
    pid: Integer | None


class Group(TypedDict):
    key: str | None
    processes: Integer
    vram_bytes: Integer | None
    spill_bytes: Integer | None
    unmeasured: Integer


class Snapshot(TypedDict):
    schema: str
    version: str
    taken_at: str
    boot_id: str | None
    uptime_seconds: float | None
    duration_seconds: float
    window_seconds: float | None
    labels: dict[str, str]
    host: HostRow
    backends: list[BackendRow]
    adapters: list[Adapter]
    processes: list[Process] | None
    recording: Recording | None
    warnings: list[Warning_]
    provenance: list[dict[str, str]]
    groups: NotRequired[list[Group]]


class DiffSide(TypedDict):
    source: str
    taken_at: str
    boot_id: str | None
    hostname: str | None
    labels: dict[str, str]


class Change(TypedDict):
    """One field of a row that is not the same; `delta` is null when either side was not measured."""

    before: Value
    after: Value
    delta: Number | None
    reset: bool
    before_provenance: str | None
    after_provenance: str | None


class AdapterDiff(TypedDict):
    status: Literal["matched", "appeared", "disappeared", "lost"]
    matched_by: Literal["uuid", "pci", "model", "elimination"] | None
    before_id: str | None
    after_id: str | None
    model: str | None
    index_changed: bool
    changes: dict[str, Change]


class Replaced(TypedDict):
    pid: Integer
    start_ticks: Integer | None


class ProcessDiff(TypedDict):
    status: Literal["same", "changed", "appeared", "exited", "replaced", "unknown"]
    adapter: str
    pid: Integer
    start_ticks: Integer | None
    name: str | None
    user: str | None
    cmdline: list[str] | None
    changes: dict[str, Change]
    replaces: Replaced | None


class ExplainedBy(TypedDict):
    pid: Integer
    name: str | None
    bytes: Integer
    says: str


class UnattributedDiff(TypedDict):
    adapter: str
    before_bytes: Integer | None
    after_bytes: Integer | None
    delta_bytes: Integer | None
    explained_by: list[ExplainedBy]
    reason: str | None


class Diff(TypedDict):
    schema: str
    version: str
    before: DiffSide
    after: DiffSide
    elapsed_seconds: float | None
    adapters: list[AdapterDiff]
    processes: list[ProcessDiff]
    unattributed: list[UnattributedDiff]
    warnings: list[Warning_]


class Subject(TypedDict):
    kind: Literal["host", "adapter", "process", "recording"]
    adapter: str | None
    pid: Integer | None
    start_ticks: Integer | None
    source: str | None


class Figure(TypedDict):
    field: str
    value: Number | str | None
    unit: Literal["bytes", "percent", "celsius", "watts", "joules", "mhz", "tokens", "count", "text"]
    provenance: str
    says: str


class Finding(TypedDict):
    code: str
    severity: Literal["info", "notice", "warning", "critical"]
    subject: Subject
    title: str
    evidence: list[str]
    advice: list[str]


class ContextRow(TypedDict):
    tokens: Integer
    kv_cache_bytes: Integer | None
    fits: bool | None


class SeriesRow(TypedDict):
    adapter: str
    pid: Integer | None
    start_ticks: Integer | None
    samples: Integer
    unknown_samples: Integer
    first_bytes: Integer | None
    last_bytes: Integer | None
    min_bytes: Integer | None
    max_bytes: Integer | None
    slope_bytes_per_hour: Number | None
    verdict: str
    since: str | None


class Explanation(TypedDict):
    schema: str
    version: str
    subject: Subject
    answer: str
    figures: list[Figure]
    findings: list[Finding]
    context: list[ContextRow]
    series: list[SeriesRow]
    warnings: list[Warning_]


class SummaryProcess(TypedDict):
    pid: Integer
    start_ticks: Integer | None
    name: str | None
    peak_bytes: Integer | None


class SummaryAdapter(TypedDict):
    id: str
    model: str | None
    peak_bytes: Integer | None
    peak_at: str | None
    left_bytes: Integer | None
    processes: list[SummaryProcess]


class Summary(TypedDict):
    schema: str
    version: str
    command: list[str]
    exit_code: Integer
    elapsed_seconds: float
    samples: Integer
    adapters: list[SummaryAdapter]
    warnings: list[Warning_]
