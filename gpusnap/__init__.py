"""gpusnap: a snapshot of GPU memory in which every byte is accounted for."""

from __future__ import annotations

__version__ = "0.1.0"
