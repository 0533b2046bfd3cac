"""gpusnap: a snapshot of GPU memory in which every byte is accounted for.

For programs: `gpusnap.take()` and `gpusnap.load(path)` give snapshot documents (`gpusnap.model.Snapshot`, plain
dictionaries), `gpusnap.diff.diff(before, after)` what changed between two.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpusnap.collect.options import CollectOptions
    from gpusnap.host import Host
    from gpusnap.model import Snapshot

__version__ = "0.1.0"


def take(options: CollectOptions | None = None, host: Host | None = None) -> Snapshot:
    """One snapshot of this machine, or of another host: a `CapturedHost`, a `LiveHost` with another procfs."""
    from gpusnap.collect import collect
    from gpusnap.collect.options import CollectOptions

    if host is None:
        from gpusnap.live import LiveHost

        host = LiveHost()
    return collect(host, options if options is not None else CollectOptions())


def load(argument: str) -> Snapshot:
    """A snapshot from a file, or a line of a recording (`rec.jsonl@last`); gpusnap.codec_read.DocumentError."""
    from gpusnap.sources import load_snapshot

    return load_snapshot(argument).doc
