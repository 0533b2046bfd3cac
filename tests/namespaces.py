"""Where a test can play a driver that names real processes: in the host's pid namespace.

In a container a driver's pid is believed only of a process that holds a GPU device file, and a stand-in has none:
there such a row is nameless and pairs with nothing, as it should be.
"""

from __future__ import annotations

import os
import sys

import pytest

HOST = "pid:[4026531836]"  # include/linux/proc_ns.h: PROC_PID_INIT_INO

needs_host_pids = pytest.mark.skipif(
    sys.platform != "linux" or os.readlink("/proc/self/ns/pid") != HOST,
    reason="in a container a driver's pids are nobody's without a GPU device file",
)
