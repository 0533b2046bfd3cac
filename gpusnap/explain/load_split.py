"""Growth by load: vllm#8413 grows while it is called and not while it idles."""

from __future__ import annotations

from math import sqrt

from gpusnap.explain.findings import thresholds as at


class LoadSplit:
    """How much a series moved while the card worked and while it idled; kept sample by sample."""

    __slots__ = ("_was_idle", "idle_delta", "idle_runs", "idle_seconds", "loaded_delta", "loaded_seconds")

    def __init__(self) -> None:
        self.loaded_delta = self.idle_delta = self.loaded_seconds = self.idle_seconds = 0.0
        self.idle_runs = 0
        self._was_idle = False

    def add(self, delta: float, seconds: float, load: float | None) -> None:
        """`load` is the higher one of both ends; None: not known, so neither."""
        if load is None:
            self._was_idle = False
        elif load > 0:
            self.loaded_delta += delta
            self.loaded_seconds += seconds
            self._was_idle = False
        else:
            self.idle_delta += delta
            self.idle_seconds += seconds
            self.idle_runs += not self._was_idle
            self._was_idle = True

    def grows_only_loaded(self, sigma: float) -> bool:
        """Both kinds of time were seen, and what idle time added is small, and is not lost in the noise.

        The noise inside an idle stretch cancels out; each stretch leaves that of its two ends.
        """
        total = self.loaded_seconds + self.idle_seconds
        growth = self.loaded_delta + self.idle_delta
        if min(self.loaded_seconds, self.idle_seconds) < at.LOAD_SEEN_SHARE * total or growth <= 0:
            return False
        blur = sigma * sqrt(2 * self.idle_runs)
        return self.idle_delta + blur <= (1 - at.LOADED_SHARE) * growth
