"""Runs benches by name, or all. A bound that is not met is said, not an error; a command that fails is one."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Failed
from tests.bench.report import Bench

if TYPE_CHECKING:
    from collections.abc import Callable


def found() -> dict[str, Callable[[Bench], None]]:
    benches: dict[str, Callable[[Bench], None]] = {}
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        module = importlib.import_module(f"tests.bench.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("bench_") and callable(function):
                benches[name.removeprefix("bench_")] = function
    return benches


def chosen(names: list[str], benches: dict[str, Callable[[Bench], None]]) -> list[str]:
    """`snap` means every bench whose name begins so."""
    picked = [name for name in benches if not names or any(name.startswith(word) for word in names)]
    for word in names:
        if not any(name.startswith(word) for name in benches):
            sys.exit(f"no bench begins with {word!r}; there are: {', '.join(benches)}")
    return picked


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benches whose names begin so; all without")
    parser.add_argument("--rounds", type=int, default=15, help="times each command runs, in turn (15)")
    parser.add_argument("--list", action="store_true", help="say what there is")
    options = parser.parse_args()
    benches = found()
    if options.list:
        for name, function in benches.items():
            print(f"{name:24} {(function.__doc__ or '').splitlines()[0]}")
        return 0
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs (load {load}), Linux {platform.release()},", end=" "
    )
    print(f"Python {platform.python_version()}, medians of {options.rounds}")
    bench, failures = Bench(options.rounds), 0
    for name in chosen(options.names, benches):
        print(f"\n{name}: {(benches[name].__doc__ or '').splitlines()[0]}", flush=True)
        try:
            benches[name](bench)
        except Failed as problem:
            failures += 1
            print(f"  FAILED: {problem}", flush=True)
    missed = sum(not met for _, met in bench.verdicts)
    print(f"\n{len(bench.verdicts)} bounds, {missed} not met, {failures} benches failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
