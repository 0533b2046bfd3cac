"""Which lines of a log are a process's own: the log may be its parent's, an earlier run's, or eight ranks'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.text import whole_number

if TYPE_CHECKING:
    from gpusnap.host import Host
    from gpusnap.llm.evidence import Evidence
    from gpusnap.llm.logs import vllm
    from gpusnap.llm.logs.lines import Line
    from gpusnap.llm.logs.load import Load
    from gpusnap.llm.workload import Workload


def take_log(evidence: Evidence, lines: list[Line], *, own: bool) -> bool:
    """Puts into the evidence what the lines say of its process; False: nothing."""
    server, program = evidence.workload.server, evidence.program
    if server == "vllm":
        from gpusnap.llm.logs import vllm

        evidence.rank = _own_rank(vllm.read(lines), _own_pids(program.host, program.pid), own=own)
    elif server == "sglang":
        from gpusnap.llm.logs import sglang

        ranks = sglang.read(lines)
        evidence.rank = ranks.get(f"rank:{evidence.workload.rank}") or ranks.get("")
    else:
        from gpusnap.llm.logs import llama_cpp

        chosen = _own_loads(llama_cpp.read(lines), evidence, own=own)
        load = llama_cpp.last_complete(chosen)
        evidence.load = load if load is not None and _is_of(load, evidence) else None
        if own and evidence.load is None:
            _take_projection(evidence, lines)
        _take_settings(evidence.workload, chosen[-1] if chosen and _is_of(chosen[-1], evidence) else None)
    return evidence.rank is not None or evidence.load is not None


def _take_projection(evidence: Evidence, lines: list[Line]) -> None:
    """The last table's cards: each card once, its last row."""
    from gpusnap.llm.logs import breakdown
    from gpusnap.llm.logs.load import is_host

    rows = {row.device: row for row in breakdown.read(lines) if not is_host(row.device)}
    evidence.projection = list(rows.values())


def _own_pids(host: Host, pid: int) -> set[int]:
    """The process's number here and in its own pid namespace, as it writes it into its log (`NSpid`)."""
    pids = {pid}
    try:
        for line in host.proc.read(f"{pid}/status").splitlines():
            if line.startswith(b"NSpid:"):
                pids |= {int(word) for word in line.split()[1:] if word.isdigit()}
    except OSError:
        return pids
    return pids


def _own_rank(ranks: dict[str, vllm.Rank], pids: set[int], *, own: bool) -> vllm.Rank | None:
    for pid in pids:
        if f"pid:{pid}" in ranks:
            return ranks[f"pid:{pid}"]
    known = [rank for rank in ranks.values() if rank.weights_bytes is not None]
    # Without a pid in front (0.4 to 0.8, one card) the only rank of the log is this one.
    return known[0] if len(known) == 1 and (own or known[0].tag == "") else None


def _own_loads(loads: list[Load], evidence: Evidence, *, own: bool) -> list[Load]:
    """The process's own loads: all of its own log, or of its parent's log those of its port or model."""
    if own:
        return [load for load in loads if not load.tag]
    port = evidence.workload.runner_port
    chosen = [load for load in loads if port is not None and (load.port == port or load.tag == f"port:{port}")]
    if not chosen and evidence.model is not None and len({load.port for load in loads}) <= 1:
        path = evidence.model.path
        chosen = [load for load in loads if any(model.path == path for model in load.models)]
    return chosen


def _take_settings(workload: Workload, load: Load | None) -> None:
    """What the log says and the flags do not: at the default verbosity only the slots are in it."""
    if load is None or load.failed or load.is_projection():
        return
    main = next((context for context in load.contexts if not context.draft), None)
    settings = main.settings if main is not None else {}
    for name, key in (("context", "n_ctx"), ("sequences", "n_seq_max"), ("ubatch", "n_ubatch")):
        value = whole_number(settings.get(key, ""))
        workload.put(name, (value, "log") if value is not None else None)
    unified = settings.get("kv_unified") or load.slots.get("kv_unified")
    workload.put("unified", (unified == "true", "log") if unified else None)
    slots = whole_number(load.slots.get("n_slots", ""))
    slot = whole_number(load.slots.get("n_ctx_slot", ""))
    if slots is not None and slot is not None:
        workload.put("sequences", (slots, "log"))
        workload.put("context", (slot * (1 if workload.unified else slots), "log"))
    cache = next((c for c in main.caches if c.part == "kv"), None) if main is not None else None
    if cache is not None:
        workload.put("type_k", (cache.type_k, "log") if cache.type_k else None)
        workload.put("type_v", (cache.type_v, "log") if cache.type_v else None)
    if load.build is not None:
        workload.api.setdefault("build_info", load.build)


def _is_of(load: Load, evidence: Evidence) -> bool:
    """A log may be of an earlier run of another model: name and weights must be the file's."""
    model = evidence.model
    paths = [one.path for one in load.models if one.role == "main" and one.path is not None]
    if model is not None and paths and _base(paths[-1]) != _base(model.path):
        return False
    if evidence.header is None or not any(one.buffers for one in load.models):
        return True
    stored = sum(tensor.size for tensor in evidence.header.tensors if tensor.size is not None)
    return load.total("weights") >= 0.9 * stored


def _base(path: str) -> str:
    return path.rpartition("/")[2]
