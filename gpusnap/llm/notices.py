"""What a server says of itself that the document warns of: a model that was to be unloaded, a cache too small."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.llm.gpu_row import Note
from gpusnap.text import clean
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from gpusnap.llm.evidence import Evidence

# ollama unloads within seconds; a request that runs keeps its model beyond the moment.
GRACE_SECONDS = 30


def notices_of(evidence: Evidence, pid: int, now: float) -> list[Note]:
    """`now`: seconds since 1970."""
    found = [_unload_pending(evidence, pid, now), _preemptions(evidence, pid)]
    return [note for note in found if note is not None]


def until(evidence: Evidence) -> float | None:
    """The moment by which ollama means to unload (`expires_at`); None where it is none, or no time."""
    try:
        moment = parse_rfc3339(str(evidence.workload.api.get("expires_at")))
    except (ValueError, OverflowError):
        return None
    return moment if moment > 0 else None  # Go's zero time: not set yet, the model is being loaded


def _unload_pending(evidence: Evidence, pid: int, now: float) -> Note | None:
    """ollama#7606: "Stopping..." for 40 minutes, and the memory stays."""
    moment = until(evidence)
    if moment is None or now - moment < GRACE_SECONDS:
        return None
    name, since = (clean(str(evidence.workload.api.get(key, ""))) for key in ("name", "expires_at"))
    said = f"{name or 'a model'}: unload pending since {since} (/api/ps): it still holds memory"
    return Note("unload-pending", f"{said}, for a request that runs or because its runner hangs", None, pid)


def _preemptions(evidence: Evidence, pid: int) -> Note | None:
    """vLLM counts them since its start, in `/metrics`; before V1 its log did."""
    count, source = evidence.workload.api.get("preemptions"), "/metrics"
    if not isinstance(count, int):
        count, source = getattr(evidence.rank, "preemptions", None), "its log"
    if not isinstance(count, int) or count <= 0:
        return None
    requests = "1 request was" if count == 1 else f"{count:,} requests were"
    said = f"{requests} preempted for want of KV cache since it started ({source})"
    front = evidence.workload.settings_pid
    return Note(
        "kv-preemption", f"{evidence.workload.server} {front if front is not None else pid}: {said}", None, pid
    )
