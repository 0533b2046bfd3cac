"""Figures that still add up when they are rounded: columns of tenths whose sums are the rounded totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.render.units import GIB, KIB, MIB, TIB

if TYPE_CHECKING:
    from collections.abc import Sequence

# The last digit that people see, in bytes.
STEP = {"TiB": TIB / 10, "GiB": GIB / 10, "MiB": MIB, "KiB": KIB, "B": 1}


def steps(count: int, unit: str) -> int:
    """The figure in units of its last shown digit: 9.04 GiB -> 90."""
    return round(count / STEP[unit])


def to_steps(counts: Sequence[int], target: int, unit: str) -> list[int]:
    """Steps of each part that sum to `target` steps: those that rounding moved most are moved back.

    A zero stays zero. Each part ends within one step of its figure wherever the target is the rounded sum.
    """
    parts = [steps(count, unit) for count in counts]
    missing = target - sum(parts)
    direction = 1 if missing > 0 else -1
    movable = [place for place, count in enumerate(counts) if count != 0]
    movable.sort(key=lambda place: (direction * (parts[place] - counts[place] / STEP[unit]), place))
    for place in movable[: abs(missing)]:
        parts[place] += direction
    return parts


def round_two_columns(
    before: Sequence[int], after: Sequence[int], totals: tuple[int, int], unit: str
) -> tuple[list[int], list[int]]:
    """Both columns in steps: each sums to its total, and what did not change reads the same in both.

    Where that can't be had without a change of the wrong sign, or where the parts are not the whole because
    something was not measured, each figure is rounded by itself.
    """
    plain = [steps(count, unit) for count in before], [steps(count, unit) for count in after]
    if (sum(before), sum(after)) != totals:
        return plain
    old = to_steps(before, steps(totals[0], unit), unit)
    moved = [place for place, count in enumerate(before) if count != after[place]]
    new = list(old)
    rest = steps(totals[1], unit) - sum(old) + sum(old[place] for place in moved)
    for place, part in zip(moved, to_steps([after[place] for place in moved], rest, unit), strict=True):
        new[place] = part
    exact = [(then - now) / STEP[unit] for then, now in zip(after, before, strict=True)]
    shown = [then - now for then, now in zip(new, old, strict=True)]
    agrees = all(abs(one - other) < 2 and one * other >= 0 for one, other in zip(shown, exact, strict=True))
    if not agrees or (sum(old), sum(new)) != (steps(totals[0], unit), steps(totals[1], unit)):
        return plain
    return old, new


def show_steps(number: int, unit: str) -> str:
    """`90` tenths of GiB -> `9.0`; zero is `0`."""
    if number == 0:
        return "0"
    return f"{number / 10:,.1f}" if unit in ("GiB", "TiB") else f"{number:,}"
