"""Builds the stand-in `libnvidia-ml.so.1` once for each set of symbols that a test wants left out."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCES = Path(__file__).parent
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")

_LISTS = tuple(f"nvmlDeviceGet{kind}RunningProcesses" for kind in ("Compute", "Graphics", "MPSCompute"))

BEFORE_R535 = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetSupportedClocksEventReasons",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlDeviceGetRunningProcessDetailList",
    "nvmlDeviceGetTemperatureV",
)
BEFORE_R510 = (*BEFORE_R535, "nvmlDeviceGetMemoryInfo_v2", *(f"{name}_v3" for name in _LISTS))
BEFORE_R450 = (*BEFORE_R510, *(f"{name}_v2" for name in _LISTS))


def build(directory: Path | None = None, *, missing: Iterable[str] = ()) -> Path:
    """The folder to put into `LD_LIBRARY_PATH`; `missing` are functions that this library does not export.

    Built under `directory` (a folder of the temporary one if None) and kept there by the hash of what it is
    made of, so that a test run compiles each variant once.
    """
    return _kept(directory, SOURCES, sorted(set(missing)), "libnvidia-ml.so.1")


def build_cuda(directory: Path | None = None) -> Path:
    """The same for a stand-in `libcuda.so.1` (cuda/cuda.c), in a folder of its own."""
    return _kept(directory, SOURCES / "cuda", [], "libcuda.so.1")


def _kept(directory: Path | None, folder: Path, absent: list[str], name: str) -> Path:
    sources = sorted(folder.glob("*.c"))
    parts = [path.read_bytes() for path in (*sources, *sorted(folder.glob("*.h")))]
    parts.append(repr((FLAGS, absent)).encode())
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    root = directory or Path(tempfile.gettempdir()) / f"gpusnap-standin-{os.getuid()}"
    library = root / digest / name
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        _compile(sources, absent, library)
    return library.parent


def _compile(sources: list[Path], absent: list[str], library: Path) -> None:
    # A function is left out by giving it another name: no linker script, so any cc will do.
    renames = [f"-D{name}=absent_{name}" for name in absent]
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        built = Path(folder) / library.name
        command = [os.environ.get("CC", "cc"), *FLAGS, f"-Wl,-soname,{library.name}", *renames]
        subprocess.run([*command, "-o", str(built), *map(str, sources)], check=True)
        # Renamed into place: two test processes may build the same variant at once.
        built.replace(library)
