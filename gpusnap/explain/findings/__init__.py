"""One file a rule: its evidence, its advice. `registry` lists them, `thresholds` holds every number."""

from __future__ import annotations
