"""What a bench is given: how often to measure, and where to say what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.measure import Cost, interleaved, medians

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Bench:
    """Passed to every `bench_*` function. Prints as it goes and keeps the verdicts."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.verdicts: list[tuple[str, bool]] = []

    def side_by_side(
        self, commands: Mapping[str, Sequence[str]], environ: Mapping[str, str], rounds: int | None = None
    ) -> dict[str, Cost]:
        """Medians of whole processes, measured in turn, printed as a table."""
        costs = {
            name: medians(each) for name, each in interleaved(commands, environ, rounds or self.rounds).items()
        }
        width = max(len(name) for name in costs)
        print(f"  {'':{width}}  {'CPU ms':>9}  {'wall ms':>9}  {'peak MiB':>9}")
        for name, cost in costs.items():
            print(f"  {name:{width}}  {cost.cpu_ms:9.1f}  {cost.wall_ms:9.1f}  {cost.peak_mib:9.1f}", flush=True)
        return costs

    def bound(self, what: str, found: float, *, at_most: float, aim: float | None = None, unit: str = "×") -> None:
        """One line of the README's table of bounds: a ratio (or a figure) against what it may be."""
        met = found <= at_most
        self.verdicts.append((what, met))
        goal = "" if aim is None else f", aim {aim:g} {'reached' if found <= aim else 'not reached'}"
        print(
            f"  {what}: {found:.2f} {unit} (at most {at_most:g}: {'met' if met else 'NOT MET'}{goal})", flush=True
        )

    def note(self, text: str) -> None:
        print(f"  {text}", flush=True)
