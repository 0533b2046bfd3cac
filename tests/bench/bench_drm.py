"""The walk for DRM clients beside the barest walk that reads every descriptor's link."""

from __future__ import annotations

import os
import subprocess
import time
from statistics import median
from typing import TYPE_CHECKING

from gpusnap.collect.drm_walk import walk
from gpusnap.live import LiveHost
from tests.bench.measure import Failed, built

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.report import Bench

PROCESSES, DESCRIPTORS = 2000, 24
# A node that no GPU has and that the walk must look at more closely; every tenth process holds one.
LIKELY_NODES = ("/dev/hpet", "/dev/rtc0", "/dev/loop-control", "/dev/hwrng", "/dev/userfaultfd", "/dev/vsock")


def bench_drm_walk(bench: Bench) -> None:
    """2,000 processes / 48,000 descriptors"""
    node = next((path for path in LIKELY_NODES if os.access(path, os.R_OK)), "/dev/zero")
    argv = [built("descriptors"), str(PROCESSES), str(DESCRIPTORS), node, "10"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
        if crowd.stdout is None or crowd.stdout.read(1) != b".":
            raise Failed("the crowd of processes did not come up")
        host = LiveHost()
        descriptors, hits = bare_walk(), len(walk(host).hits)
        if descriptors < PROCESSES * DESCRIPTORS:
            raise Failed(f"{descriptors} descriptors, expected {PROCESSES * DESCRIPTORS}")
        times: dict[str, list[float]] = {"bare readlink walk": [], "gpusnap's walk": []}
        for _ in range(bench.rounds):
            times["bare readlink walk"].append(cpu_ms(bare_walk))
            times["gpusnap's walk"].append(cpu_ms(lambda: walk(host)))
        crowd.communicate()
    bare, ours = (median(each) for each in times.values())
    bench.note(f"{descriptors} descriptors, {hits} of them looked at more closely ({node})")
    bench.note(f"bare readlink walk {bare:.0f} ms, gpusnap's {ours:.0f} ms of CPU")
    bench.bound("gpusnap's walk beside the bare readlink walk", ours / bare, at_most=1.1)


def bare_walk() -> int:
    """Every link of every process by one descriptor of its folder: readlink is what it costs."""
    count = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            folder = os.open(f"/proc/{name}/fd", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            for fd in os.listdir(folder):
                try:
                    target = os.readlink(fd, dir_fd=folder)
                except OSError:
                    continue
                count += 1
                if target.startswith(("/dev/dri/", "/dev/accel/", "/dev/kfd")):
                    os.stat(fd, dir_fd=folder)
        except FileNotFoundError:  # a process that ended meanwhile
            continue
        finally:
            os.close(folder)
    return count


def cpu_ms(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return (time.process_time() - start) * 1000
