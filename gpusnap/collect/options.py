"""What a caller wants collected."""

from __future__ import annotations


class CollectOptions:
    """Options of `snap`, shared by every command that takes a snapshot.

    `window` is the time between two samples of rate counters in seconds (0: no second sample). `cmdline` is
    redacted | none | full. `timeout` bounds each backend in seconds.
    """

    __slots__ = (
        "adapters",
        "api_key_file",
        "cmdline",
        "holders",
        "labels",
        "models",
        "probe",
        "processes",
        "timeout",
        "window",
    )

    def __init__(
        self,
        *,
        window: float = 0.0,
        adapters: tuple[str, ...] = (),
        processes: bool = True,
        cmdline: str = "redacted",
        models: bool = True,
        probe: bool = False,
        holders: bool = False,
        labels: dict[str, str] | None = None,
        timeout: float = 10.0,
        api_key_file: str | None = None,
    ) -> None:
        self.window = window
        self.adapters = adapters
        self.processes = processes
        self.cmdline = cmdline
        self.models = models
        self.probe = probe
        self.holders = holders
        self.labels = labels or {}
        self.timeout = timeout
        self.api_key_file = api_key_file
