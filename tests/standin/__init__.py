"""The tests' own NVIDIA Management Library: a shared library in C that plays a machine from a file.

gpusnap, gpustat and nvitop load it through `LD_LIBRARY_PATH` and the real bindings, so the ctypes layer is tested
too: struct layouts, sentinels, symbols that old drivers lack. `scenario.h` tells the file's format.

    machine = Scenario(cards=[Card(processes=[Proc(pid=4711, bytes=8 << 30)])])
    subprocess.run(["gpusnap", "snap"], env=os.environ | machine.environment(tmp_path))
"""

from __future__ import annotations

from tests.standin.library import BEFORE_R450, BEFORE_R510, BEFORE_R535, build, build_cuda
from tests.standin.scenario import FOREVER, UNAVAILABLE, Card, Partition, Proc, Retired, Sample, Scenario

__all__ = [
    "BEFORE_R450",
    "BEFORE_R510",
    "BEFORE_R535",
    "FOREVER",
    "UNAVAILABLE",
    "Card",
    "Partition",
    "Proc",
    "Retired",
    "Sample",
    "Scenario",
    "build",
    "build_cuda",
]
