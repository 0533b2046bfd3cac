"""A recording in OpenMetrics text with timestamps, for `promtool tsdb create-blocks-from openmetrics`.

The format wants all samples of one series together, while a recording has all series of one moment together. So
each series' lines are gathered compressed in memory, a few bytes a line, and the file is read once.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from gpusnap.explain.words import count_of
from gpusnap.render.metrics import FAMILIES, Labels, line, samples_of
from gpusnap.timefmt import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpusnap.model import Snapshot

_CHUNK = 1 << 14
_SUFFIX = {"counter": "_total", "info": "_info"}


class _Lines:
    """The lines of one series, compressed chunk by chunk."""

    __slots__ = ("_loose", "_packed", "_size", "last")

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._loose: list[str] = []
        self._size = 0
        self.last = float("-inf")

    def add(self, text: str) -> None:
        self._loose.append(text)
        self._size += len(text)
        if self._size >= _CHUNK:
            self._packed.append(zlib.compress("".join(self._loose).encode(), 6))
            self._loose, self._size = [], 0

    def pieces(self) -> Iterator[bytes]:
        for packed in self._packed:
            yield zlib.decompress(packed)
        if self._loose:
            yield "".join(self._loose).encode()


class LeftOut:
    """How many samples of the recording could not be written, wholly or in part."""

    __slots__ = ("samples",)

    def __init__(self) -> None:
        self.samples = 0

    def message(self) -> str | None:
        """One line for people; None: nothing was left out."""
        if not self.samples:
            return None
        said = count_of(self.samples, "sample")
        return f"{said} left out: not later than one before, as when the clock is set back; Prometheus takes none"


def openmetrics(documents: Iterable[Snapshot], left_out: LeftOut | None = None) -> Iterator[bytes]:
    """Pieces of the text, ending in `# EOF`. A sample that is not later than the one before it is left out."""
    series: dict[str, dict[Labels, _Lines]] = {}
    for document in documents:
        moment = parse_rfc3339(document["taken_at"])
        stamp = f"{moment:.3f}"
        host = document["host"]["hostname"]
        is_whole = True
        common: Labels = (("host", host),) if host is not None else ()
        for sample in samples_of(document):
            labels = (*common, *sample.labels)
            lines = series.setdefault(sample.family, {}).setdefault(labels, _Lines())
            if moment <= lines.last:
                is_whole = False
                continue  # the wall clock was set back: Prometheus takes no sample twice
            lines.last = moment
            name = sample.family + _SUFFIX.get(FAMILIES[sample.family].kind, "")
            lines.add(line(name, labels, sample.value, stamp))
        if left_out is not None and not is_whole:
            left_out.samples += 1
    for family in FAMILIES.values():
        if family.name not in series:
            continue
        yield f"# HELP {family.name} {family.says}\n# TYPE {family.name} {family.kind}\n".encode()
        for labels in sorted(series[family.name]):
            yield from series[family.name][labels].pieces()
    yield b"# EOF\n"
