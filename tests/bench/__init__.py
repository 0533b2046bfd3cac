"""Costs, measured side by side in one run: `python -m tests.bench [NAME..]`, `make bench`.

A bench is a function `bench_NAME(bench)` in a file `bench_*.py` of this folder; its first docstring line is its
title. It calls `bench.side_by_side` with whole processes and `bench.bound` with what came out.
"""
