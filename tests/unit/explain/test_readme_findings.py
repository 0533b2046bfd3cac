"""README's table of findings holds every finding and the thresholds that are in force."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpusnap.explain.findings import thresholds as at
from gpusnap.explain.findings.registry import CODES
from gpusnap.render.metrics import FAMILIES, PIDS
from gpusnap.render.prometheus import exposed
from gpusnap.render.units import format_bytes

README = (Path(__file__).parents[3] / "README.md").read_text()
ROWS = {
    code: line
    for line in README.partition("#### Findings")[2].splitlines()
    if line.startswith("| `")
    for code in re.findall(r"`([a-z-]+)`", line.split("|")[1])
}


def short(count: float) -> str:
    """`1 GiB` where the figure is round."""
    return format_bytes(round(count)).replace(".0 ", " ")


def test_every_finding_has_a_row() -> None:
    assert set(CODES) <= ROWS.keys()


@pytest.mark.parametrize(
    ("code", "figures"),
    [
        ("ecc-growth", [f"{at.CORRECTED_ERRORS:,}"]),
        (
            "unattributed-memory",
            [
                short(at.UNATTRIBUTED_BYTES),
                f"{at.UNATTRIBUTED_SHARE:.0%}",
                short(at.BASELINE_TOLERANCE_BYTES),
                f"{at.BASELINE_SHARE:.0%}",
            ],
        ),
        ("leak", [short(at.GROWTH_BYTES), f"{at.GROWTH_NOISE:.0f} deviations", f"{at.SAMPLES} samples"]),
        ("step-leak", [f"{at.CYCLES} cycles", f"{at.STEPS} steps"]),
        ("residual", ["half", short(at.RESIDUAL_BYTES), f"{at.RESIDUAL_WAIT_SAMPLES} samples"]),
        ("idle-but-full", [f"{at.HELD_IDLE_SECONDS / 3600:.0f} h", f"{at.SAMPLES} samples"]),
        ("starved", [f"{at.STARVED_GPU_PERCENT} %", f"{at.STARVED_CPU_PERCENT} %"]),
        ("spill", [short(at.SPILL_BYTES)]),
        ("bare-contexts", [short(at.BARE_CONTEXT_BYTES), f"{at.BARE_CONTEXT_RATIO} times"]),
        ("kv-preemption", [f"{at.KV_FULL_SHARE:.0%}"]),
        ("grows-under-load", [f"{at.LOADED_SHARE:.0%}"]),
        ("kv-dominates", ["half"]),
        ("cache-not-leak", [short(at.CACHE_BYTES)]),
        ("context-only", [f"{at.CONTEXT_ONLY_LEAST_BYTES // at.MIB} to {at.CONTEXT_ONLY_BYTES // at.MIB} MiB"]),
        ("bandwidth-bound", [f"{at.BANDWIDTH_BOUND_PERCENT} %"]),
        ("reserved-by-driver", [short(at.RESERVED_BYTES)]),
        ("sawtooth", [f"{at.CYCLES} or more cycles"]),
        ("gap", [f"{at.CLOCK_STEP_SECONDS:.0f} s", f"{at.GAP_INTERVALS} intervals"]),
    ],
)
def test_the_thresholds_in_the_table_are_those_in_force(code: str, figures: list[str]) -> None:
    row = ROWS[code].replace(" %", "%")
    for figure in figures:
        assert figure.replace(" %", "%") in row
    assert (at.RESIDUAL_SHARE, at.KV_SHARE, at.FULL_SHARE) == (0.5, 0.5, 0.8)


def test_every_metric_is_listed() -> None:
    table = README.partition("## Many machines")[2].partition("\n## ")[0]
    listed = set()
    for name in re.findall(r"`(gpusnap_[a-z_{},]+)`", table):
        listed |= expanded(name)
    assert listed == {exposed(family) for family in FAMILIES.values()}
    assert f"the largest {PIDS}" in table


def expanded(name: str) -> set[str]:
    """A shell's braces: `a_{b,c}_d` is two names."""
    head, brace, rest = name.partition("{")
    if not brace:
        return {name}
    inside, _, tail = rest.partition("}")
    return {full for word in inside.split(",") for full in expanded(head + word + tail)}
