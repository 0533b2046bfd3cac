"""Every module imports on Windows and macOS: nothing of one platform is needed at import time."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Run in a program of its own: it takes away what the other platform lacks, then imports every module.
_PROGRAM = r"""
import importlib, os, pkgutil, signal, sys, types
# What gpusnap imports of others is loaded first: they are ported already.
import ctypes, http.client, multiprocessing, plistlib, selectors, socket, subprocess, tempfile, threading, uuid
import gguf, msgspec, orjson, psutil, pynvml, tabulate, typer, wcwidth, zstandard, typer.testing

platform = sys.argv[1]
sys.platform = platform
if platform == "win32":
    for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog"):
        sys.modules[name] = None
    lacking = ("O_CLOEXEC O_NOCTTY O_NONBLOCK O_DIRECTORY O_SYNC pread pwrite sysconf uname getuid geteuid getgid "
               "getpgrp tcgetpgrp setsid killpg fork major minor fchmod mkfifo WEXITSTATUS")
    for name in lacking.split():
        if hasattr(os, name):
            delattr(os, name)
    for name in ("SIGPIPE", "SIGHUP", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGKILL", "SIGALRM", "SIGSTOP"):
        if hasattr(signal, name):
            delattr(signal, name)
    sys.modules["msvcrt"] = types.ModuleType("msvcrt")
else:
    for name in ("prlimit", "sched_getaffinity"):
        if hasattr(os, name):
            delattr(os, name)
import gpusnap
names = [found.name for found in pkgutil.walk_packages(gpusnap.__path__, "gpusnap.")]
for name in names:
    if name != "gpusnap.__main__":
        importlib.import_module(name)
print(len(names))
"""


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_every_module_imports_elsewhere(platform: str) -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM, platform], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 200


_SNAP = """
import sys
from gpusnap.collect import collect
from gpusnap.collect.options import CollectOptions
from gpusnap.live import LiveHost
collect(LiveHost(), CollectOptions())
print(*sorted(name for name in sys.modules if name.startswith("gpusnap")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="on each platform other modules are foreign")
def test_a_snapshot_loads_no_other_platforms_modules() -> None:
    done = subprocess.run([sys.executable, "-c", _SNAP], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "gpusnap.collect.backends.nvml" in loaded
    foreign = {f"gpusnap.collect.backends.{name}" for name in ("wddm", "apple", "wsl", "tegra")}
    libraries = ("raw", "pdh", "dxgi", "windows", "macos", "ioreport", "psutil", "dcmi")
    foreign |= {f"gpusnap.live_{name}" for name in libraries}
    foreign |= {"gpusnap.collect.processes_psutil", "gpusnap.collect.tegra"}
    assert not loaded & foreign
