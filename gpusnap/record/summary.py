"""What a run took at its peak and what it left behind: `gpusnap.summary/1`.

Peaks come from the samples as they pass; what is left is the difference of the first and the last one, by
`diff`'s own rules (another boot, a lost card or a null on either side gives null, never 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gpusnap.model import Diff, Snapshot, Summary, SummaryAdapter, SummaryProcess, Warning_

SCHEMA = "gpusnap.summary/1"
# Rows kept per run: a build farm starts processes without end, and the small ones matter least.
MAX_PROCESSES = 4096

_Key = tuple[str, int, int | None]


class Peaks:
    """Sees every sample (a `Watcher`), keeps the first, the last and the peaks."""

    def __init__(self) -> None:
        self.first: Snapshot | None = None
        self.last: Snapshot | None = None
        self.samples = 0
        self.left_out = 0
        self._adapters: dict[str, SummaryAdapter] = {}
        self._seen = 0
        self._known: dict[str, int] = {}
        self._processes: dict[_Key, SummaryProcess] = {}

    def sampled(self, doc: Snapshot) -> None:
        if self.first is None:
            self.first = doc
        self.last = doc
        self._seen += 1
        for adapter in doc["adapters"]:
            self._see_adapter(adapter["id"], adapter["model"], adapter["memory"]["used_bytes"], doc["taken_at"])
        for row in doc["processes"] or ():
            vram = row["vram_bytes"]
            if vram is not None and not row["self"]:
                self._see_process((row["adapter"], row["pid"], row["start_ticks"]), row["name"], vram)

    def wrote(self, doc: Snapshot, count: int) -> None:  # noqa: ARG002 - a watcher
        self.samples += 1

    def failed(self, message: str) -> None:
        """What was not kept in the file was measured all the same."""

    def _see_adapter(self, key: str, model: str | None, used: int | None, taken_at: str) -> None:
        row = self._adapters.get(key)
        if row is None:
            row = self._adapters[key] = {
                "id": key,
                "model": model,
                "peak_bytes": None,
                "peak_at": None,
                "left_bytes": None,
                "processes": [],
            }
        if used is None:
            return
        self._known[key] = self._known.get(key, 0) + 1
        if row["peak_bytes"] is None or used > row["peak_bytes"]:
            row["peak_bytes"], row["peak_at"] = used, taken_at

    def _see_process(self, key: _Key, name: str | None, vram: int) -> None:
        row = self._processes.get(key)
        if row is None:
            if len(self._processes) >= MAX_PROCESSES:
                self._drop_smaller_half()
            self._processes[key] = {"pid": key[1], "start_ticks": key[2], "name": name, "peak_bytes": vram}
        elif row["peak_bytes"] is None or vram > row["peak_bytes"]:
            row["peak_bytes"] = vram

    def _drop_smaller_half(self) -> None:
        largest = sorted(self._processes.items(), key=_peak_of_item, reverse=True)[: MAX_PROCESSES // 2]
        self.left_out += len(self._processes) - len(largest)
        self._processes = dict(largest)

    def summary(
        self,
        version: str,
        command: list[str],
        exit_code: int,
        elapsed_seconds: float,
        difference: Diff | None,
    ) -> Summary:
        """`difference` is that of `first` and `last`; None where there are no two samples."""
        left = _left_bytes(difference, self.last)
        adapters: list[SummaryAdapter] = []
        for key, row in self._adapters.items():
            mine = [found for found in self._processes.items() if found[0][0] == key]
            mine.sort(key=_peak_of_item, reverse=True)
            adapters.append({**row, "left_bytes": left.get(key), "processes": [process for _, process in mine]})
        return {
            "schema": SCHEMA,
            "version": version,
            "command": command,
            "exit_code": exit_code,
            "elapsed_seconds": round(elapsed_seconds, 3),
            "samples": self.samples,
            "adapters": adapters,
            "warnings": self._warnings(left),
        }

    def _warnings(self, left: dict[str, int]) -> list[Warning_]:
        found: list[Warning_] = []
        for key in self._adapters:
            # A card whose backend failed is not in that sample at all.
            unknown = self._seen - self._known.get(key, 0)
            if unknown > 0:
                samples = "1 sample has" if unknown == 1 else f"{unknown} samples have"
                text = f"{samples} no figure for the memory used: the peak may be higher"
                found.append(_warning("peak-incomplete", text, key))
            if key not in left:
                text = "what was left behind is unknown: no figure before or after, or the card was lost"
                found.append(_warning("left-unknown", text, key))
        if self.left_out > 0:
            text = f"{self.left_out} processes with the smallest peaks are left out"
            found.append(_warning("processes-left-out", text, None))
        return found


def _left_bytes(difference: Diff | None, last: Snapshot | None) -> dict[str, int]:
    """Adapter id (as in the last sample) -> growth of its used memory; only where both sides were measured."""
    if difference is None or last is None:
        return {}
    used_last = {adapter["id"]: adapter["memory"]["used_bytes"] for adapter in last["adapters"]}
    left: dict[str, int] = {}
    for pair in difference["adapters"]:
        key = pair["after_id"]
        if pair["status"] != "matched" or key is None or used_last.get(key) is None:
            continue
        change = pair["changes"].get("memory.used_bytes")
        if change is None:
            left[key] = 0
        elif change["delta"] is not None:
            left[key] = int(change["delta"])
    return left


def _peak_of_item(item: tuple[_Key, SummaryProcess]) -> int:
    return cast("int", item[1]["peak_bytes"])


def _warning(code: str, message: str, adapter: str | None) -> Warning_:
    return {"code": code, "message": message, "adapter": adapter, "pid": None}
